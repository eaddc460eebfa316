from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.plumbing import PIPE, STDOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sandbox.conftest import Ground

WAITING = "touch up; while :; do sleep 0.01; done"


@pytest.fixture
def sandbox(ground: Ground) -> Iterator[BlockingSandbox]:
    with BlockingSandbox(ground.policy()) as opened:
        yield opened


def appears(path: Path) -> None:
    for _ in range(2000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"{path} did not appear")


def test_talking_with_a_command(sandbox: BlockingSandbox) -> None:
    with sandbox.spawn("while read line; do echo got $line; done; echo over >&2; exit 4", stdin=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got one\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.stderr.read() == b"over\n"
        assert process.wait(30).exit_code == 4
        assert process.poll() == process.wait()


def test_two_commands_at_once_each_get_their_own_end(sandbox: BlockingSandbox) -> None:
    first = sandbox.spawn("read x; exit $x", stdin=PIPE, stderr=STDOUT)
    second = sandbox.spawn("exit 6", stdout=None, stderr=None)
    assert second.wait(30).exit_code == 6
    assert first.stdin is not None
    first.stdin.write(b"5\n")
    first.stdin.close()
    assert first.wait(30).exit_code == 5
    first.close()


def test_waiting_has_an_end_without_ending_the_command(sandbox: BlockingSandbox, ground: Ground) -> None:
    with sandbox.spawn("while ! test -e go; do sleep 0.01; done; exit 5") as process:
        with pytest.raises(TimeoutError, match="still runs"):
            process.wait(0.05)
        (ground.project / "go").touch()
        assert process.wait(30).exit_code == 5


def test_signals_and_leaving_the_block(sandbox: BlockingSandbox, ground: Ground) -> None:
    with sandbox.spawn(f"trap 'exit 7' TERM; {WAITING}") as process:
        appears(ground.project / "up")
        process.terminate()
        assert process.wait(30).exit_code == 7
    (ground.project / "up").unlink()
    with sandbox.spawn(f"sleep 65 & {WAITING}", stdin=PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"never read")
        appears(ground.project / "up")
    assert process.wait().signal == signal.SIGKILL
    assert sandbox.run("ps ax -o args | grep -c '[s]leep 65'").output == "0\n"


def test_a_program_that_does_not_exist(sandbox: BlockingSandbox) -> None:
    process = sandbox.spawn(["no-such-program"], stdout=None, stderr=None)
    with pytest.raises(StockadeError, match="no-such-program: No such file"):
        process.wait(30)
    with process:
        """Leaving the block is quiet."""


def test_a_terminal(sandbox: BlockingSandbox) -> None:
    with sandbox.spawn("tty; read word; echo got $word", pty=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"/dev/pts/")
        process.resize(10, 20)
        assert os.get_terminal_size(process.terminal) == (20, 10)
        process.stdin.write(b"word\n")
        assert process.stdout.read() == b"word\r\ngot word\r\n"
        assert process.wait(30).ok
    with sandbox.spawn("true") as process, pytest.raises(StockadeError, match="no terminal"):
        process.resize(1, 1)


def test_nothing_is_left_open(sandbox: BlockingSandbox) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        with sandbox.spawn("true", stdin=PIPE):
            pass
    before = held()
    for _ in range(20):
        with sandbox.spawn("true", stdin=PIPE), sandbox.spawn("true", pty=True):
            pass
    assert held() == before


def test_a_signal_is_never_lost_at_whatever_moment_it_comes(sandbox: BlockingSandbox) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(150):
        with sandbox.spawn(["sleep", "3605"]) as process:
            time.sleep(chance.random() / 500)  # while it comes up, or just after
            process.signal(signal.SIGQUIT)
            assert process.wait(30).signal == signal.SIGQUIT
