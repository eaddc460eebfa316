"""Commands that run without walls: plain processes of the host, with the same bounds as all others.

Each gets a process group of its own. When it ends, or is ended, what is left of the group goes with it, as inside;
what has left the group (a daemon) is beyond reach here, which is one more reason for the walls. A process is started
in one step, so that no cancelled task can leave one behind that nobody knows; and in the very directory that was
judged: a command inside may put a link in its place while somebody is asked.

Source of truth: pidfd_open(2), Linux 5.3; where there is none, a thread waits.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError
from stockade.suppress import suppress
from stockade.tool.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class OutsideRun:
    """One process with its group."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process that leads its own group; see ``start_outside``."""
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ending] = self._loop.create_future()
        self._waiting: asyncio.Future[None] | None = None
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            self._waiting = asyncio.ensure_future(self._wait_in_thread())
        else:
            self._loop.add_reader(self._descriptor, self._notice)

    async def wait(self) -> Ending:
        """Wait until it has ended."""
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """End the group."""
        if not self._ended.done():
            self._kill_group()

    def _notice(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._finish()

    async def _wait_in_thread(self) -> None:
        await asyncio.to_thread(os.waitid, os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._finish()

    def _finish(self) -> None:
        # As long as nobody has waited for the first process, nobody else gets the number of its group.
        self._kill_group()
        code = self._process.wait()
        if not self._ended.done():
            self._ended.set_result(Ending(code if code >= 0 else None, -code if code < 0 else None))

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def start_outside(words: Sequence[str], output: int, *, cwd: str, environment: Mapping[str, str]) -> OutsideRun:
    """Start words with nothing to read and one descriptor for all output. Raises StockadeError if that fails.

    ``cwd`` holds no links.
    """
    directory = -1
    try:
        directory = os.open(cwd, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        held = f"/proc/self/fd/{directory}"
        is_held = os.path.exists(held)
        if (os.readlink(held) if is_held else os.path.realpath(cwd)) != cwd:
            message = "the working directory was replaced while the command was judged"
            raise StockadeError(message, "call it again")
        process = subprocess.Popen(  # noqa: S603 - somebody has approved just this
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=held if is_held else cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        message = f"the command could not be started: {error.strerror}"
        raise StockadeError(message, "check the shell and the working directory") from error
    finally:
        if directory >= 0:
            os.close(directory)
    return OutsideRun(process)
