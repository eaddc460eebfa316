"""The builder begins before there is a plan: what it has made by then must fit whatever plan comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}

# In a mount namespace of its own, as a root of its own: nothing is mounted for anybody else.
MOUNTED = """
import os, subprocess, sys, time
from pathlib import Path
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

folder, when = Path(sys.argv[1]), sys.argv[2]
jail = Jail.start()
children = Path(f"/proc/{jail.pid}/task/{jail.pid}/children")
while not any(Path(f"/proc/{pid}/task/{pid}/children").read_text() for pid in children.read_text().split()):
    time.sleep(0.01)  # until the builder has a process of its own, the last one that it makes before the plan
if when == "late":
    subprocess.run(["mount", "-t", "tmpfs", "late", folder / "place"], check=True)
    (folder / "place" / "file").write_text("mounted")
jail.build(JailSpec((Mount("writable", str(folder)),)))
jail.wait_ready()
states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children.read_text().split()]
assert "Z" not in states, states
out = os.open(folder / "out", os.O_RDWR | os.O_CREAT)
jail.run(Request(("cat", "place/file"), {"PATH": "/usr/bin:/bin"}, str(folder)), (0, out, 2))
assert isinstance(jail.receive(), Ended)
jail.close()
print((folder / "out").read_text())
"""


@pytest.fixture
def jail() -> Iterator[Jail]:
    jail = Jail.start()
    yield jail
    jail.close()


def _builder(jail: Jail) -> int:
    while not (found := _children(jail.pid)):
        time.sleep(0.01)
    return found[0]


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def _network(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def _until_apart(builder: int) -> None:
    until = time.monotonic() + 20
    while _network(builder) == _network(os.getpid()):
        assert time.monotonic() < until, "the builder waits for a plan"
        time.sleep(0.01)


def test_namespaces_are_made_before_there_is_a_plan(jail: Jail, tmp_path: Path) -> None:
    builder = _builder(jail)
    _until_apart(builder)
    made = _network(builder)
    jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
    jail.wait_ready()
    out = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
    jail.run(Request(("readlink", "/proc/self/ns/net"), ENVIRONMENT, str(tmp_path)), (0, out, 2))
    assert isinstance(jail.receive(), Ended)
    os.close(out)
    assert (tmp_path / "out").read_text().strip() == made


def test_a_later_jail_makes_nothing_before_it_knows_what_it_joins() -> None:
    jail = Jail.start(first=False)
    builder = _builder(jail)
    time.sleep(0.2)
    assert _network(builder) == _network(os.getpid())
    jail.close()
    assert not Path(f"/proc/{builder}").exists()


@pytest.mark.parametrize("when", ["early", "late"])
def test_what_the_host_mounts_before_the_plan_is_seen(tmp_path: Path, when: str) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "file").write_text("below")
    words = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", MOUNTED, str(tmp_path), when]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("mounted" if when == "late" else "below", "")


@pytest.mark.parametrize("prepared", [False, True])
def test_a_builder_that_is_killed_before_the_plan_is_a_loss_and_no_refusal(
    jail: Jail, tmp_path: Path, *, prepared: bool
) -> None:
    builder = _builder(jail)
    if prepared:
        _until_apart(builder)
    os.kill(builder, signal.SIGKILL)
    jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
    with pytest.raises(UnavailableError) as failure:
        jail.wait_ready()
    assert "helper ended while it built the walls" in str(failure.value)


def test_nothing_stays_without_a_plan_when_the_owner_is_killed_and_a_fork_of_it_lives() -> None:
    reader, writer = os.pipe()
    owner = os.fork()
    if owner == 0:
        jail = Jail.start()
        _until_apart(_builder(jail))
        fork = os.fork()
        if fork == 0:
            os.close(writer)
            time.sleep(60)
            os._exit(0)
        os.write(writer, f"{jail.pid} {_builder(jail)} {fork}".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    *helpers, fork = (int(word) for word in os.read(reader, 100).split())
    os.waitpid(owner, 0)
    try:
        until = time.monotonic() + 20
        while any(_lives(pid) for pid in helpers) and time.monotonic() < until:
            time.sleep(0.01)
        assert [pid for pid in helpers if _lives(pid)] == []
    finally:
        os.kill(fork, signal.SIGKILL)
        os.close(reader)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("ends", ["closed", "killed"])
def test_nothing_stays_of_a_session_that_never_has_a_plan(ends: str) -> None:
    jail = Jail.start()
    builder = _builder(jail)
    _until_apart(builder)
    if ends == "killed":
        os.kill(jail.pid, signal.SIGKILL)
    jail.close()
    until = time.monotonic() + 20
    while Path(f"/proc/{builder}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{builder}").exists()
