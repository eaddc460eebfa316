from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import keeper
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from collections.abc import Callable

    Outcome = Callable[..., tuple[int, str, str]]

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize("victim", ["keeper", "launcher", "first"])
def test_everything_ends_whoever_is_killed(jail: Jail, tmp_path: Path, victim: str) -> None:
    reader, writer = os.pipe()
    line = "(setsid sleep 60 &); touch up; sleep 60"
    jail.run(Request(("sh", "-c", line), ENVIRONMENT, str(tmp_path)), (reader, writer, writer))
    os.close(writer)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    launcher = launcher_of(jail)
    busy = next(p for p in children(launcher) if children(p))
    os.kill({"keeper": jail.pid, "launcher": launcher, "first": busy}[victim], signal.SIGKILL)
    assert select.select([reader], [], [], 10)[0], "the command's output is still held open"
    assert os.read(reader, 1) == b""
    os.close(reader)
    answer = jail.receive()
    assert answer is None if victim != "first" else isinstance(answer, Ended)


def test_when_the_owner_has_closed_a_jail_whose_keeper_was_killed_every_command_is_dead(tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for _ in range(5):
        jail = Jail.start()
        jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
        jail.wait_ready()
        (tmp_path / "up").unlink(missing_ok=True)
        line = "for i in $(seq 60); do sleep 60 & done; : >up; wait"
        jail.run(Request(("sh", "-c", line), ENVIRONMENT, str(tmp_path)), (nothing,) * 3)
        while not (tmp_path / "up").exists():
            time.sleep(0.001)
        commands = [child for first in children(launcher_of(jail)) for child in below(first)]
        os.kill(jail.pid, signal.SIGKILL)
        assert jail.receive() is None
        jail.close()
        assert [pid for pid in commands if Path(f"/proc/{pid}").exists()] == []
    os.close(nothing)


@pytest.mark.parametrize("says", [True, False])
def test_a_builder_that_dies_is_heard_of_though_its_launcher_holds_the_channel(*, says: bool) -> None:
    mine, theirs = Channel.pair()
    builder = os.fork()
    if builder == 0:
        if says:
            theirs.send(Packet(b"l", 7))
        os._exit(0)
    process = os.pidfd_open(builder)
    assert select.select([process], [], [], 20)[0]
    word = keeper._hear(mine, process)
    assert (word and word.number) == (7 if says else None)
    assert keeper._is_dead(process)
    os.waitpid(builder, 0)
    assert keeper._is_dead(process)
    os.close(process)
    mine.close()
    theirs.close()


def test_a_process_that_lives_is_not_dying() -> None:
    process = os.pidfd_open(os.getpid())
    assert not keeper._is_dying(process)
    assert not keeper._is_dead(process)
    os.close(process)


@pytest.mark.parametrize("copied", [pytest.param(False, id="alone"), pytest.param(True, id="a-fork-holds-the-channel")])
def test_everything_ends_with_the_owner(tmp_path: Path, *, copied: bool) -> None:
    reader, writer = os.pipe()
    watch, alive = os.pipe()
    owner = os.fork()
    if owner == 0:
        os.close(watch)
        jail = Jail.start()
        if copied and os.fork() == 0:
            os.close(writer)
            time.sleep(5)
            os._exit(0)
        os.close(alive)
        jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
        line = "(setsid sleep 60 &); touch up; sleep 60"
        jail.run(Request(("sh", "-c", line), ENVIRONMENT, str(tmp_path)), (0, writer, writer))
        os.close(writer)
        time.sleep(60)
        os._exit(0)
    os.close(writer)
    os.close(alive)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    assert select.select([reader], [], [], 10)[0], "the command's output is still held open"
    assert os.read(reader, 1) == b""
    assert bool(select.select([watch], [], [], 0)[0]) is not copied, "the fork must outlive the session"
    os.close(reader)
    os.close(watch)


def launcher_of(jail: Jail) -> int:
    (launcher,) = children(jail.pid)
    return launcher


def below(pid: int) -> list[int]:
    return [each for child in children(pid) for each in (child, *below(child))]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
