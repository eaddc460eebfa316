from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
