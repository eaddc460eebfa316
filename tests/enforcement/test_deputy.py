"""A command that makes the supervisor wait: it gets a deputy, and nobody else notices, nor does the command."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.slow_memory import SLOW_MEMORY

from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.enforcement.conftest import Ground

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.blocking_process import BlockingProcess
    from stockade.sandbox.result import Result

#: Whoever reads its memory sleeps once it is ready.
SLOW = (
    SLOW_MEMORY
    + """
import socket, sys, time

def refused():
    for place in ("a", "b"):
        try:
            os.mkdir(f"{sys.argv[2]}/{place}-{sys.argv[1]}")
        except OSError:
            pass

changing = threading.Thread(target=change)
print("ready", flush=True)
refused()
changing.start()
while not os.path.exists(f"stop-{sys.argv[1]}"):
    os.close(os.open(f"made-{sys.argv[1]}", os.O_CREAT | os.O_WRONLY))
stopped.set()
changing.join()
"""
)
#: What a command does that has a deputy by now.
AFTERWARDS = """
for _ in range(50):
    refused()
for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, "own.sock")):
    with socket.socket(family) as listener, socket.socket(family) as caller:
        listener.bind(address)
        listener.listen()
        caller.connect(listener.getsockname())
os.mkdir("folder")
os.chmod("folder", 0o2755)
print(oct(os.stat("folder").st_mode))
"""
#: A connection that waits while its command gets a deputy: the queue is full, and is emptied later.
WAITING = """
listener = socket.socket(socket.AF_UNIX)
listener.bind("full.sock")
listener.listen(0)
callers = [socket.socket(socket.AF_UNIX) for _ in range(4)]
threads = [threading.Thread(target=caller.connect, args=("full.sock",)) for caller in callers]
for thread in threads:
    thread.start()
"""
ACCEPTED = """
for _ in threads:
    listener.accept()[0].close()
for thread in threads:
    thread.join()
print("connected")
"""
PATIENCE = 60


def _numbers(pid: int) -> list[str]:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in status if line.startswith("NSpid:")).split()[1:]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found


def _below(pid: int) -> list[int]:
    found = []
    for child in _children(pid):
        try:
            found += [child, *_below(child)]
        except OSError:
            continue  # it has ended
    return found


def _deputies() -> list[int]:
    """Return the deputies below this process: as the supervisor they are in a jail's pid namespace, but it is 2."""
    depth = len(_numbers(os.getpid())) + 1
    found = []
    for pid in _below(os.getpid()):
        try:
            numbers = _numbers(pid)
        except (OSError, StopIteration):
            continue
        if len(numbers) == depth and int(numbers[-1]) > 1 and _is_fork_of_a_supervisor(pid, depth):
            found.append(pid)
    return found


def _is_fork_of_a_supervisor(pid: int, depth: int) -> bool:
    above = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    numbers = _numbers(above)
    return len(numbers) == depth and numbers[-1] != "1"


def _until(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def _start(ground: Ground, sandbox: BlockingSandbox, name: str, before: str = "", after: str = "") -> BlockingProcess:
    script = SLOW.replace("print(", f"{before}\nprint(", 1) + after
    process = sandbox.spawn(["python3", "-c", script, name, str(ground.outside)])
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _told(ground: Ground, done: Result) -> dict[str, int]:
    return {each.target.removeprefix(f"{ground.outside}/"): each.times for each in done.violations}


def _end(ground: Ground, process: BlockingProcess, name: str) -> tuple[bytes, Result]:
    (ground.project / f"stop-{name}").touch()
    assert process.stdout is not None
    said = process.stdout.read()
    return said, process.wait(PATIENCE)


def test_a_command_that_makes_the_supervisor_sleep_gets_a_deputy_of_its_own(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with _start(ground, sandbox, "x", after=AFTERWARDS) as process:
        _until(_deputies, "there is no deputy")
        innocent = sandbox.run(f"for n in 1 2 3; do mkdir $n; mkdir {ground.outside}/$n; done", timeout=PATIENCE)
        said, done = _end(ground, process, "x")
    assert said == b"0o42755\n", done
    # The first of each place was refused before, the rest by way of the deputy: nothing is lost, nothing told twice.
    assert _told(ground, done) == {"a-x": 51, "b-x": 51}
    assert _told(ground, innocent) == {"1": 1, "2": 1, "3": 1}
    _until(lambda: not _deputies(), "the deputy has outlived its command")
    assert sandbox.run("mkdir later", timeout=PATIENCE).ok


def test_several_commands_have_a_deputy_each(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with (
        _start(ground, sandbox, "x", after="refused()") as one,
        _start(ground, sandbox, "y", after="refused()") as other,
    ):
        _until(lambda: len(_deputies()) == 2, "there are not two deputies")
        _, done = _end(ground, other, "y")
        assert _told(ground, done) == {"a-y": 2, "b-y": 2}
        _until(lambda: len(_deputies()) == 1, "the deputy has outlived its command")
        _, done = _end(ground, one, "x")
        assert _told(ground, done) == {"a-x": 2, "b-x": 2}
    _until(lambda: not _deputies(), "a deputy has outlived its command")


def test_connections_that_wait_go_on_waiting_at_the_deputy(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with _start(ground, sandbox, "x", before=WAITING, after=ACCEPTED) as process:
        _until(_deputies, "there is no deputy")
        said, done = _end(ground, process, "x")
    assert said == b"connected\n", done


def test_a_command_that_is_killed_leaves_no_deputy(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with _start(ground, sandbox, "x") as process:
        _until(_deputies, "there is no deputy")
        process.kill()
        process.wait(PATIENCE)
    _until(lambda: not _deputies(), "the deputy has outlived its command")
    assert sandbox.run("mkdir later", timeout=PATIENCE).ok


def test_when_a_deputy_is_killed_the_command_ends_with_words(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with _start(ground, sandbox, "x") as process:
        _until(_deputies, "there is no deputy")
        for pid in _deputies():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(UnavailableError, match="helpers were killed"):
            process.wait(PATIENCE).ok  # noqa: B018 - to ask is what raises
    assert sandbox.run("true", timeout=PATIENCE).ok
