"""Commands that run without walls: plain processes of the host, with the same bounds as all others.

Each gets a process group of its own. When it ends, or is ended, what is left of the group goes with it, as inside;
what has left the group (a daemon) is beyond reach here, which is one more reason for the walls.
"""

from __future__ import annotations

import asyncio
import os
import signal

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError
from stockade.suppress import suppress
from stockade.tool.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class OutsideRun:
    """One process with its group."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take a process that leads its own group; see ``start_outside``."""
        self._process = process
        self._ended = asyncio.ensure_future(self._end())

    async def wait(self) -> Ending:
        """Wait until it has ended."""
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """End the group."""
        if not self._ended.done():
            self._kill_group()

    async def _end(self) -> Ending:
        code = await self._process.wait()
        # The number of the group is not given away again as long as anybody is left in it.
        self._kill_group()
        return Ending(code if code >= 0 else None, -code if code < 0 else None)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


async def start_outside(words: Sequence[str], output: int, *, cwd: str, environment: Mapping[str, str]) -> OutsideRun:
    """Start words with nothing to read and one descriptor for all output. Raises StockadeError if that fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        message = f"the command could not be started: {error.strerror}"
        raise StockadeError(message, "check the shell and the working directory") from error
    return OutsideRun(process)
