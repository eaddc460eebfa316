"""The jail behind bubblewrap, and a machine on which there is no other way to one.

AppArmor cannot be had in a test, so it is played: a supervisor refuses ``unshare`` of a user namespace to whoever is
still in the one where the tests run, and lets go on who came through bubblewrap, as a profile would that hands its
rights on; or it refuses both, as the profile does that keeps them to itself.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.platforms.linux import passage
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
ROOT = Path(__file__).parents[2] / "src"

BARRED = r"""
import array, ctypes, fcntl, json, os, platform, select, socket, struct, sys
sys.path.insert(0, sys.argv[1])
from stockade.platforms.linux import kernel, passage
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.errors import UnavailableError

folder, hands_on = sys.argv[2], sys.argv[3] == "hands-on"
UNSHARE = {"x86_64": 272, "aarch64": 97}[platform.machine()]
code = b"".join(struct.pack("<HBBI", *one) for one in [
    (0x20, 0, 0, 0), (0x15, 0, 3, UNSHARE), (0x20, 0, 0, 16), (0x45, 0, 1, kernel.CLONE_NEWUSER),
    (6, 0, 0, 0x7FC00000), (6, 0, 0, 0x7FFF0000)])

def behave():
    nothing = os.open(os.devnull, os.O_RDWR)
    found = {}
    for turn in ("first", "second"):
        jail = Jail.start()
        try:
            jail.build(JailSpec((Mount("writable", folder),)))
            jail.wait_ready()
            jail.run(Request(("sh", "-c", "echo $$ > came; echo x > /etc/stockade-outside"),
                             {"PATH": "/usr/bin:/bin"}, folder), (nothing,) * 3)
            answer = jail.receive()
            found[turn] = [os.waitstatus_to_exitcode(answer.status), passage.usual()]
        except UnavailableError as error:
            found[turn] = [error.message, error.hint]
        finally:
            jail.close()
    print(json.dumps(found), flush=True)

mine, theirs = socket.socketpair()
child = os.fork()
if child == 0:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    listener = kernel.install_filter(code, listen=True)
    socket.send_fds(theirs, [b"x"], [listener])
    os.close(listener)
    mine.close(), theirs.close()
    try:
        behave()
    finally:
        sys.stdout.flush()
        os._exit(0)
theirs.close()
_, (listener,), _, _ = socket.recv_fds(mine, 1, 1)
RECEIVE, SEND = 0xC0502100, 0xC0182101
own = os.readlink("/proc/self/ns/user")
poller = select.poll()
poller.register(listener, select.POLLIN)
while True:
    ((_, event),) = poller.poll()
    if not event & select.POLLIN:
        break
    notice = bytearray(80)
    fcntl.ioctl(listener, RECEIVE, notice)
    number, pid = struct.unpack_from("<QI", notice)
    barred = not hands_on or os.readlink(f"/proc/{pid}/ns/user") == own
    fcntl.ioctl(listener, SEND, bytearray(struct.pack("<QqiI", number, 0, -1 if barred else 0, 0 if barred else 1)))
os.waitpid(child, 0)
"""


@pytest.fixture(autouse=True)
def with_bubblewrap() -> None:
    if not passage.find():
        pytest.skip("bubblewrap is not installed")


@pytest.fixture
def jail(tmp_path: Path) -> Iterator[Jail]:
    jail = Jail.start(passage="bubblewrap")
    jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
    jail.wait_ready()
    yield jail
    jail.close()


def run(jail: Jail, line: str, folder: Path) -> tuple[int, str]:
    reader, writer = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    jail.run(Request(("sh", "-c", line), ENVIRONMENT, str(folder)), (nothing, writer, writer))
    os.close(writer)
    os.close(nothing)
    with open(reader, encoding="utf-8") as file:
        said = file.read()
    answer = jail.receive()
    assert isinstance(answer, Ended)
    return os.waitstatus_to_exitcode(answer.status), said


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("echo x > inside && cat inside", (0, "x\n"), id="writes"),
        pytest.param("touch /var/tmp/outside 2>&1 | grep -o Read-only", (0, "Read-only\n"), id="outside"),
        pytest.param("id -u", (0, f"{os.geteuid()}\n"), id="own-id"),
        pytest.param("set -- /proc/[0-9]*; echo $#", (0, "2\n"), id="own-processes"),
        pytest.param("grep -c . /proc/net/dev; ls /sys/class/net >/dev/null && echo ok", (0, "3\nok\n"), id="network"),
        pytest.param("grep CapEff /proc/self/status", (0, "CapEff:\t0000000000000000\n"), id="no-capability"),
        pytest.param("unshare -U true 2>/dev/null || echo refused", (0, "refused\n"), id="no-namespace"),
        pytest.param("ls /proc/self/fd | wc -l", (0, "4\n"), id="no-descriptor"),
        pytest.param(
            "script -qc tty /dev/null </dev/null | tr -d '\\r'", (0, "/dev/pts/0\n"), id="terminals-of-its-own"
        ),
    ],
)
def test_walls_are_the_same_behind_bubblewrap(jail: Jail, tmp_path: Path, line: str, expected: tuple[int, str]) -> None:
    assert run(jail, line, tmp_path) == expected


def test_a_place_that_is_denied_stays_so_behind_bubblewrap(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    jail = Jail.start(passage="bubblewrap")
    jail.build(JailSpec((Mount("writable", str(tmp_path)), Mount("hidden", str(tmp_path / "secret")))))
    jail.wait_ready()
    code, said = run(jail, "cat secret; chmod 700 secret; rm -f secret", tmp_path)
    jail.close()
    assert (code, said.count("Permission denied"), (tmp_path / "secret").read_text()) == (1, 1, "x")


@pytest.mark.parametrize("victim", ["bubblewrap", "keeper", "launcher"])
def test_everything_ends_whoever_is_killed(jail: Jail, tmp_path: Path, victim: str) -> None:
    reader, writer = os.pipe()
    line = "(setsid sleep 60 &); touch up; sleep 60"
    jail.run(Request(("sh", "-c", line), ENVIRONMENT, str(tmp_path)), (reader, writer, writer))
    os.close(writer)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    (keeper,) = children(jail.pid)
    (launcher,) = children(keeper)
    os.kill({"bubblewrap": jail.pid, "keeper": keeper, "launcher": launcher}[victim], signal.SIGKILL)
    assert select.select([reader], [], [], 10)[0], "the command's output is still held open"
    assert os.read(reader, 1) == b""
    os.close(reader)
    assert jail.receive() is None


def test_everything_ends_with_the_owner(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    owner = os.fork()
    if owner == 0:
        jail = Jail.start(passage="bubblewrap")
        jail.build(JailSpec((Mount("writable", str(tmp_path)),)))
        jail.run(Request(("sh", "-c", "touch up; sleep 60"), ENVIRONMENT, str(tmp_path)), (0, writer, writer))
        os.close(writer)
        time.sleep(60)
        os._exit(0)
    os.close(writer)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    assert select.select([reader], [], [], 10)[0], "the command's output is still held open"
    assert os.read(reader, 1) == b""
    os.close(reader)


def barred(folder: Path, profile: str) -> dict[str, list[Any]]:
    words = [sys.executable, "-I", "-c", BARRED, str(ROOT), str(folder), profile]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    found: dict[str, list[Any]] = json.loads(ran.stdout)
    return found


def test_where_only_bubblewrap_and_what_it_starts_may_the_walls_stand(tmp_path: Path) -> None:
    assert barred(tmp_path, "hands-on") == {"first": [2, "bubblewrap"], "second": [2, "bubblewrap"]}
    assert (tmp_path / "came").read_text() == "2\n"
    assert not Path("/etc/stockade-outside").exists()


def test_where_nobody_may_nothing_runs_and_the_cause_is_told(tmp_path: Path) -> None:
    for message, hint in barred(tmp_path, "keeps").values():
        assert message.startswith("cannot build the walls: user namespaces: a system call filter (seccomp) refuses it")
        assert "\n" not in message
        assert hint == "run `stockade doctor`: it names the cause and the exact commands"
    assert list(tmp_path.iterdir()) == []


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
