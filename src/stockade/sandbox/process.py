"""A command that runs while the program talks to it, for asyncio.

``async with await sandbox.spawn("make") as process: async for line in process.stdout: ...``

Rules: what the program does not read stays in the command's pipe, and the command waits; leaving ``async with`` ends
the command with all that it started; a cancelled task leaves the command running, unless it leaves ``async with``.
"""

from __future__ import annotations

import asyncio
import os
from errno import EIO

from stockade.annotation import TYPE_CHECKING, Final, Self
from stockade.errors import StockadeError
from stockade.sandbox import plumbing
from stockade.sandbox.limits import Limit
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from stockade.sandbox.plumbing import Plumbing
    from stockade.sandbox.result import Result
    from stockade.sandbox.session import Running, Session

_PIECE: Final = 1 << 16
_SIGTERM: Final = 15


class Writer:
    """The command's standard input: ``write``, then ``await drain()``, and ``close`` at the end."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        """Own the descriptor."""
        os.set_blocking(descriptor, False)
        self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115 - closed by close
        self._loop = loop
        self._unsent = bytearray()
        self._ending = False
        self._error: OSError | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until the command takes them; ``drain`` waits for that."""
        if self._ending:
            message = "the command's input is closed"
            raise StockadeError(message, "write before close()")
        if self._error is None:
            was_empty = not self._unsent
            self._unsent += data
            if was_empty:
                self._send()

    async def drain(self) -> None:
        """Wait until the command has taken everything. Raises BrokenPipeError if it takes no more."""
        if self._unsent:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        if self._error is not None:
            raise BrokenPipeError(self._error.errno, self._error.strerror)

    def close(self) -> None:
        """End the input, after what is still to be sent. A terminal has no such end: it takes Ctrl-D for one."""
        self._ending = True
        if not self._unsent:
            self._finish()

    def is_closing(self) -> bool:
        """Tell whether nothing more can be written."""
        return self._ending

    def abort(self) -> None:
        """End the input now, whatever was still to be sent."""
        self._ending = True
        self._finish()

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._file.fileno(), self._unsent[:_PIECE])]
        except BlockingIOError:
            self._loop.add_writer(self._file.fileno(), self._send)
            return
        except OSError as error:
            self._error = error
        self._settle()
        if self._ending:
            self._finish()

    def _settle(self) -> None:
        """Stop watching, forget what cannot be sent, and wake who waits."""
        self._loop.remove_writer(self._file.fileno())
        self._unsent.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _finish(self) -> None:
        if not self._file.closed:
            self._settle()
            self._file.close()


class _Intake(asyncio.ReadTransport):
    """Feeds a reader from a descriptor, and stops while the reader has enough."""

    def __init__(
        self,
        descriptor: int,
        reader: asyncio.StreamReader,
        loop: asyncio.AbstractEventLoop,
        tell: Callable[[int], None],
    ) -> None:
        super().__init__()
        os.set_blocking(descriptor, False)
        self._file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - closed at the end of the stream
        self._reader = reader
        self._loop = loop
        self._tell = tell
        self._reading = False
        reader.set_transport(self)
        self.resume_reading()

    def fileno(self) -> int:
        return self._file.fileno()

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._file.fileno())

    def resume_reading(self) -> None:
        if not self._reading and not self._file.closed:
            self._reading = True
            self._loop.add_reader(self._file.fileno(), self._read)

    def is_closing(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        if not self._file.closed:
            self.pause_reading()
            self._file.close()
            self._reader.feed_eof()

    def _read(self) -> None:
        try:
            piece = os.read(self._file.fileno(), _PIECE)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != EIO:  # so a terminal says that nobody is behind it any more
                self._reader.set_exception(error)
            piece = b""
        if not piece:
            self.close()
            return
        self._tell(len(piece))
        self._reader.feed_data(piece)


class Process:
    """One command that runs. ``stdin``, ``stdout`` and ``stderr`` are ``None`` where no pipe was asked for."""

    def __init__(self, session: Session, running: Running, ended: asyncio.Future[None], streams: Plumbing) -> None:
        """Take over a command that was just started; made by ``Sandbox.spawn``."""
        loop = ended.get_loop()
        self._session = session
        self._running = running
        self._ended = ended
        self._heard = 0
        self._terminal = streams.is_terminal
        self._intakes: list[_Intake] = []
        ended.add_done_callback(_retrieved)
        self.stdin = Writer(streams.stdin, loop) if streams.stdin >= 0 else None
        self.stdout = self._reader(streams.stdout, loop)
        self.stderr = self._reader(streams.stderr, loop)

    @property
    def command(self) -> str:
        """The command, as it was given."""
        return self._running.command

    async def __aenter__(self) -> Self:
        """Use it for as long as the block lasts."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the command if it still runs, wait for that, and close the streams."""
        self.kill()
        try:
            await asyncio.wait([self._ended])
        finally:
            if self.stdin is not None:
                self.stdin.abort()
            for intake in self._intakes:
                intake.close()

    async def wait(self) -> Result:
        """Wait until the command and all that it started are gone. Raises if it could not be started at all.

        A command that writes more than a pipe holds waits for a reader: read its streams, or use ``communicate``.
        """
        await asyncio.shield(self._ended)
        return self._running.result()

    async def communicate(self, data: bytes = b"") -> Result:
        """Write the input, end it, read everything, and wait; the output is in the result."""
        outputs = await asyncio.gather(self._give(data), _all_of(self.stdout), _all_of(self.stderr))
        await asyncio.shield(self._ended)
        return self._running.result(*outputs[1:])

    def signal(self, number: int) -> None:
        """Pass a signal on to the command and what it runs in front. Nothing happens once it has ended."""
        self._session.signal(self._running, number)

    def terminate(self) -> None:
        """Ask the command to end (SIGTERM)."""
        self.signal(_SIGTERM)

    def kill(self) -> None:
        """End the command and everything that it started."""
        self._session.end(self._running)

    def resize(self, rows: int, columns: int) -> None:
        """Tell the command how large its terminal is."""
        if not self._terminal:
            message = "the command has no terminal"
            raise StockadeError(message, "spawn it with pty=True")
        if not self._intakes[0].is_closing():
            plumbing.resize(self._intakes[0].fileno(), rows, columns)

    async def _give(self, data: bytes) -> bytes:
        if self.stdin is not None:
            if data:
                self.stdin.write(data)
            with suppress(BrokenPipeError):  # it did not want all of it, which is its own affair
                await self.stdin.drain()
            self.stdin.close()
        return b""

    def _reader(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader | None:
        if descriptor < 0:
            return None
        reader = asyncio.StreamReader(loop=loop)
        self._intakes.append(_Intake(descriptor, reader, loop, self._count))
        return reader

    def _count(self, size: int) -> None:
        self._heard += size
        limit = self._running.limits.output_bytes
        if limit is not None and self._heard > limit:
            self._session.end(self._running, Limit.OUTPUT)


async def _all_of(reader: asyncio.StreamReader | None) -> bytes:
    return b"" if reader is None else await reader.read()


def _retrieved(ended: asyncio.Future[None]) -> None:
    """Note that somebody looked at the outcome: a command that nobody waits for is no mistake."""
    if not ended.cancelled():
        ended.exception()
