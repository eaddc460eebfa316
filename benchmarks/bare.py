"""The floor: the same line with no sandbox at all."""

from __future__ import annotations

import asyncio
import time

from contender import SHELL, Contender, FailedError, Ground, Spawned


class BareDirect(Spawned):
    """The program itself, without a shell."""

    name = "bare-direct"
    title = "bare `true`, posix_spawn, no shell"
    has_shell = False

    def prefix(self) -> tuple[str, ...]:
        """Return nothing: the line is the program."""
        return ()


class BareSpawn(Spawned):
    """A shell, spawned without going through asyncio."""

    name = "bare"
    title = "bare `bash -c true`, posix_spawn"

    def prefix(self) -> tuple[str, ...]:
        """Return the shell."""
        return (SHELL, "-c")


class BareAsyncio(Contender):
    """A shell, spawned as asyncio programs do it, with both outputs captured."""

    name = "bare-asyncio"
    title = "bare `bash -c true`, asyncio, output captured"

    async def start(self, ground: Ground) -> None:
        """Nothing stays between commands."""

    async def run(self, line: str) -> float:
        """Spawn, read both outputs to their end, wait."""
        began = time.perf_counter()
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(SHELL, "-c", line, stdin=nothing, stdout=pipe, stderr=pipe)
        await process.communicate()
        took = time.perf_counter() - began
        if process.returncode:
            message = f"bash ended with status {process.returncode}"
            raise FailedError(message)
        return took
