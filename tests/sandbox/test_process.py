from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.limits import Limit, Limits
from stockade.sandbox.plumbing import PIPE, STDOUT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.sandbox.conftest import Ground

    from stockade.sandbox.process import Process

PATIENCE = 20.0


def run(ground: Ground, body: Callable[[Sandbox], Awaitable[None]], limits: Limits | None = None) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Sandbox(ground.policy(), limits=limits or Limits()) as sandbox:
            await body(sandbox)

    asyncio.run(main())


async def appears(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(path):  # noqa: ASYNC240 - a question that costs nothing
        assert time.monotonic() < deadline, f"{path} did not appear"
        await asyncio.sleep(0.01)


async def read_until(process: Process, pattern: bytes) -> bytes:
    """Read from a terminal until the pattern has come."""
    assert process.stdout is not None
    heard = b""
    while not re.search(pattern, heard, re.DOTALL):
        try:
            piece = await asyncio.wait_for(process.stdout.read(4096), PATIENCE)
        except TimeoutError:
            pytest.fail(f"{pattern!r} did not come: {heard!r}")
        assert piece, f"ended without {pattern!r}: {heard!r}"
        heard += piece
    return heard


def say(process: Process, text: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(text)


def test_talking_with_a_command(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn("while read line; do echo got $line; done; echo over >&2; exit 4", stdin=PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdin is not None
        for word in (b"one", b"two"):
            process.stdin.write(word + b"\n")
            await process.stdin.drain()
            assert await process.stdout.readline() == b"got " + word + b"\n"
        process.stdin.close()
        assert await process.stderr.read() == b"over\n"
        result = await process.wait()
        assert (result.exit_code, result.stdout, result.command) == (4, b"", process.command)
        assert await process.wait() == result
        assert await process.stdout.read() == b""

    run(ground, body)


def test_communicate_writes_and_reads_more_than_pipes_hold(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        data = os.urandom(1 << 20)
        process = await sandbox.spawn("cat | tee /dev/stderr", stdin=PIPE)
        result = await process.communicate(data)
        assert (result.exit_code, result.stdout == data, result.stderr == data) == (0, True, True)

    run(ground, body)


def test_streams_may_be_descriptors_nothing_or_one(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        kept = ground.project / "kept"
        with kept.open("wb") as file:
            process = await sandbox.spawn("cat; echo a; echo b >&2", stdout=file.fileno(), stderr=STDOUT)
            assert (process.stdin, process.stdout, process.stderr) == (None, None, None)
            assert (await process.wait()).ok
        assert kept.read_bytes() == b"a\nb\n"
        assert (await (await sandbox.spawn("echo x", stdout=None, stderr=None)).wait()).ok
        with pytest.raises(StockadeError, match="stdin cannot be -2"):
            await sandbox.spawn("true", stdin=STDOUT)

    run(ground, body)


def test_a_slow_reader_holds_the_command_back(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        async with await sandbox.spawn(
            "dd if=/dev/zero bs=64k count=16384 status=none & touch up; wait; touch done"
        ) as process:
            assert process.stdout is not None
            await appears(ground.project / "up")
            await asyncio.sleep(0.3)
            assert len(process.stdout._buffer) < 1 << 19  # type: ignore[attr-defined] # what is held is the point
            assert len(await process.stdout.readexactly(20 << 20)) == 20 << 20
            assert not (ground.project / "done").exists()
            size = 20 << 20
            while piece := await process.stdout.read(1 << 20):
                size += len(piece)
            assert size == 1 << 30
            assert (await process.wait()).ok

    run(ground, body)


def test_input_that_is_not_taken(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn("exec <&-; sleep 0.1", stdin=PIPE)
        assert process.stdin is not None
        process.stdin.write(bytes(1 << 20))
        with pytest.raises(BrokenPipeError):
            await process.stdin.drain()
        process.stdin.close()
        with pytest.raises(StockadeError, match="input is closed"):
            process.stdin.write(b"more")
        assert (await process.wait()).ok

    run(ground, body)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param(lambda process: process.terminate(), (7, None), id="terminate"),
        pytest.param(lambda process: process.signal(signal.SIGUSR1), (8, None), id="signal"),
        pytest.param(lambda process: process.kill(), (None, 9), id="kill"),
    ],
)
def test_signals(ground: Ground, end: Callable[[Process], None], expected: tuple[int | None, int | None]) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn(
            "trap 'exit 7' TERM; trap 'exit 8' USR1; setsid sleep 61 & touch up; while :; do sleep 0.01; done"
        )
        await appears(ground.project / "up")
        end(process)
        result = await process.wait()
        assert (result.exit_code, result.signal) == expected
        end(process)
        assert (await sandbox.run("ps ax -o args | grep -c '[s]leep 61'")).output == "0\n"

    run(ground, body)


def test_leaving_the_block_ends_the_command(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        async with await sandbox.spawn("touch up; sleep 62", stdin=PIPE) as process:
            await appears(ground.project / "up")
        assert (await process.wait()).cancelled
        assert (await sandbox.run("ps ax -o args | grep -c '[s]leep 62'")).output == "0\n"

    run(ground, body)


def test_a_cancelled_task_in_the_block_ends_the_command(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        async def talk() -> None:
            async with await sandbox.spawn("touch up; sleep 63") as process:
                await process.wait()

        task = asyncio.create_task(talk())
        await appears(ground.project / "up")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await sandbox.run("ps ax -o args | grep -c '[s]leep 63'")).output == "0\n"

    run(ground, body)


def test_waiting_may_be_given_up_without_ending_the_command(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn("while ! test -e go; do sleep 0.01; done; exit 5")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await process.wait()
        (ground.project / "go").touch()
        assert (await process.wait()).exit_code == 5

    run(ground, body)


def test_a_program_that_does_not_exist(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn(["no-such-program"])
        assert process.stdout is not None
        assert await process.stdout.read() == b""
        with pytest.raises(StockadeError, match="no-such-program: No such file"):
            await process.wait()

    run(ground, body)


def test_the_output_limit_counts_what_was_read(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn("yes")
        assert (await process.communicate()).limit is Limit.OUTPUT

    run(ground, body, Limits(output_bytes=1 << 20))


def test_closing_the_sandbox_ends_what_was_spawned(ground: Ground) -> None:
    async def main() -> None:
        sandbox = Sandbox(ground.policy())
        await sandbox.open()
        process = await sandbox.spawn("sleep 64")
        unheeded = await sandbox.spawn("sleep 64")
        await sandbox.close()
        with pytest.raises(UnavailableError, match="closed while the command ran"):
            await process.wait()
        for each in (process, unheeded):
            assert each.stdout is not None
            assert each.stderr is not None
            assert await each.stdout.read() == b""
            assert await each.stderr.read() == b""
            each.kill()

    asyncio.run(main())


def test_a_terminal_has_a_name_a_size_and_is_the_controlling_one(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        async with await sandbox.spawn(
            "trap 'stty size' WINCH; tty; echo there >$(tty); echo here >/dev/tty; while :; do sleep 0.01; done",
            pty=True,
        ) as process:
            assert process.stderr is None
            assert re.search(rb"/dev/pts/\d+\r\nthere\r\nhere\r\n", await read_until(process, rb"\nhere\r\n"))
            process.resize(33, 101)
            assert b"33 101" in await read_until(process, b"33 101")
        assert (await process.wait()).signal == signal.SIGKILL

    run(ground, body)


def test_a_terminal_ends_with_its_command(ground: Ground) -> None:
    async def body(sandbox: Sandbox) -> None:
        process = await sandbox.spawn("seq 20000", pty=True)
        assert process.stdout is not None
        assert process.stdin is not None
        assert (await process.stdout.read()).split() == [b"%d" % number for number in range(1, 20001)]
        assert (await process.wait()).ok
        process.resize(1, 1)
        process.stdin.close()
        plain = await sandbox.spawn("true")
        with pytest.raises(StockadeError, match="no terminal"):
            plain.resize(1, 1)
        await plain.communicate()

    run(ground, body)


def test_job_control(ground: Ground) -> None:
    """The keys reach what runs in front, and the shell gets the terminal back."""

    async def body(sandbox: Sandbox) -> None:
        words = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
        async with await sandbox.spawn(words, env={"PS1": "ready$ ", "TERM": "dumb"}, pty=True) as process:
            await read_until(process, rb"ready\$ $")
            say(process, b"sleep 100 &\n")
            await read_until(process, rb"\[1\] \d+\r\n.*ready\$ $")
            say(process, b"jobs\n")
            await read_until(process, rb"\[1\].*Running +sleep 100.*ready\$ $")
            say(process, b"cat\n")
            say(process, b"one\n")
            await read_until(process, rb"one\r\n.*one\r\n$")
            say(process, b"\x1a")
            await read_until(process, rb"Stopped +cat\r\n.*ready\$ $")
            say(process, b"fg\n")
            say(process, b"two\n")
            await read_until(process, rb"two\r\n.*two\r\n$")
            say(process, b"\x03")
            await read_until(process, rb"ready\$ $")
            say(process, b"echo status $?\n")
            await read_until(process, rb"\nstatus 130\r\nready\$ $")
            say(process, b"echo still here; exit 6\n")
            await read_until(process, rb"\nstill here\r\n")
            assert (await process.wait()).exit_code == 6

    run(ground, body)
