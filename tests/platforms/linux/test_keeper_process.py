from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import bubblewrap, keeper_process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="the walls of Linux need Linux")

PATIENCE = 20.0
#: A program with handlers, open files and secrets of its own, which tells what its keeper has of them.
OWNER = """
import json, os, signal, sys, threading
from stockade.platforms.linux import keeper_process
from stockade.platforms.linux.jail import Jail
from stockade.platforms.linux.mount import JailSpec

signal.signal(signal.SIGUSR1, lambda *_: None)
signal.set_wakeup_fd(os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)[1])
os.dup(1)
over = threading.Event()
if "threads" in sys.argv:
    threading.Thread(target=over.wait).start()
possible = keeper_process.can_fork()
jail = Jail.fork("")
jail.build(JailSpec(()))
jail.wait_ready()

def of(name):
    with open(f"/proc/{jail.pid}/{name}", "rb") as file:
        return file.read().decode()

files = [os.readlink(f"/proc/{jail.pid}/fd/{number}") for number in os.listdir(f"/proc/{jail.pid}/fd")]
status = dict(line.split(":", 1) for line in of("status").splitlines())
told = {
    "possible": possible,
    "session": os.getsid(jail.pid) == jail.pid,
    "words": of("cmdline").rstrip("\\0"),
    "name": of("comm").strip(),
    "secrets": "hush" in of("environ") + of("cmdline"),
    "streams": {os.readlink(f"/proc/{jail.pid}/fd/{number}") for number in range(3)} == {"/dev/null"},
    "files": any("pipe" in name for name in files),
    "caught": bool(int(status["SigCgt"], 16) & 1 << signal.SIGUSR1 - 1),
    "blocked": int(status["SigBlk"], 16),
}
jail.close()
over.set()
print(json.dumps(told))
"""
FORKED = {
    "possible": True,
    "session": True,
    "words": "keeper of a sandbox",
    "name": "keeper",
    "secrets": False,
    "streams": True,
    "files": False,
    "caught": False,
    "blocked": 0,
}


def keeper_of(*words: str) -> dict[str, object]:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OWNER), "hush", *words],
        env={**os.environ, "SECRET": "hush"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    told: dict[str, object] = json.loads(ran.stdout)
    return told


def test_a_fork_has_nothing_of_its_owner() -> None:
    assert keeper_of() == FORKED


def test_a_process_with_threads_is_not_forked() -> None:
    told = keeper_of("threads")
    spawned = {"possible": False, "words": told["words"], "name": told["name"]}
    assert told == FORKED | spawned
    assert str(told["words"]).startswith(sys.executable)


def test_where_threads_cannot_be_counted_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert not keeper_process.can_fork()


def test_the_package_is_found_from_its_root() -> None:
    assert os.path.isfile(os.path.join(keeper_process.package_root(), "stockade", "__init__.py"))


@pytest.mark.parametrize("way", ["start", "fork"])
def test_a_keeper_that_is_killed_at_once_is_missed_in_words(way: str) -> None:
    program = f"""
import os, signal
from stockade.errors import UnavailableError
from stockade.platforms.linux.jail import Jail
from stockade.platforms.linux.mount import JailSpec

fork, spawn = os.fork, os.posix_spawn

def doomed(*arguments, **options):
    pid = spawn(*arguments, **options) if arguments else fork()
    if pid:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED)
    return pid

os.fork = os.posix_spawn = doomed
try:
    jail = Jail.{way}("")
    jail.build(JailSpec(()))
    jail.wait_ready()
except UnavailableError as error:
    print(error.hint)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "somebody killed them: try again\n", "")


def test_a_keeper_whose_bubblewrap_died_before_it_could_ask_to_die_with_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = tmp_path / "bwrap"
    hasty.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\n"$@" &\n')
    hasty.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "PLACES", (str(hasty),))
    pid, channel = keeper_process.spawn("bubblewrap", "")
    assert os.waitpid(pid, 0) == (pid, 0)
    ended, _, _ = select.select([channel.fileno()], [], [], PATIENCE)
    said = channel.receive(wait=False) if ended else "nothing: it goes on without its parent"
    channel.close()
    assert said is None
