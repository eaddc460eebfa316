"""One connection, read and written step by step, until it is closed or handed over to a pair that relays it.

Rules: what comes is kept until somebody reads it, and beyond ``HIGH_WATER`` no more is taken from the network; whoever
writes waits while as much waits to be sent. One reader and one writer at a time. The end of what the other side sends
is an empty read; a connection that is lost raises ``ConnectionError``, after what had come before was read.

``finish`` closes in such a way that the other side can read all it was sent: a socket that is closed while something
unread has come in is reset, and the answer that was on its way is lost with it.
"""

from __future__ import annotations

import asyncio
from collections import deque

from stockade.annotation import TYPE_CHECKING, cast
from stockade.network.relay import HIGH_WATER
from stockade.network.transport import SocketTransport, reset

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.relay import Side


class Stream(asyncio.Protocol):
    """One connection. ``moved`` counts what came in; ``ended`` says that no more will, ``lost`` that it is gone."""

    def __init__(self) -> None:
        """Wait for the connection."""
        self.moved = 0
        self.ended = False
        self.lost = False
        self.given = False
        self._when_lost: Callable[[], object] | None = None
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._goal = 0
        self._full = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        """Keep what came until it is read."""
        self.moved += len(data)
        self._keep(data)
        _wake(self._reader)

    def eof_received(self) -> bool:
        """Note the end; what is written still goes out, but for TLS, which knows no half-closed connection."""
        self.ended = True
        _wake(self._reader)
        return self._transport is None or self._transport.get_extra_info("ssl_object") is None

    def connection_lost(self, error: Exception | None) -> None:
        """Wake whoever waits."""
        self.lost = True
        self._error = error
        _wake(self._reader)
        _wake(self._writer)
        if self._when_lost is not None:
            self._when_lost()

    def pause_writing(self) -> None:
        """Let whoever writes wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Let whoever writes go on."""
        self._full = False
        _wake(self._writer)

    # What is done with it

    def when_lost(self, call: Callable[[], object]) -> None:
        """Have something done if the connection goes away by itself."""
        self._when_lost = call

    @property
    def began(self) -> bool:
        """Whether there has ever been a connection."""
        return self._transport is not None

    @property
    def readable(self) -> bool:
        """Whether something has come that was not read."""
        return bool(self._pieces)

    @property
    def stalled(self) -> bool:
        """Whether something waits because the other side does not take it."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._writer is not None or waiting > 0

    @property
    def address(self) -> str:
        """The address of the other side; empty if the connection is gone."""
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    async def wait(self, until: float | None = None) -> None:
        """Wait until there is something to be read, be it the end; past a point in time, raise ``TimeoutError``."""
        while not (self._pieces or self.ended or self.lost):
            loop = asyncio.get_running_loop()
            self._reader = loop.create_future()
            # A timer of its own costs a third of what asyncio.timeout does.
            timer = None if until is None else loop.call_at(until, _late, self._reader)
            try:
                await self._reader
            finally:
                self._reader = None
                if timer is not None:
                    timer.cancel()

    async def read(self) -> bytes:
        """Return what came next; nothing at the end."""
        await self.wait()
        if not self._pieces:
            if self.ended and self._error is None:
                return b""
            message = "the connection was lost"
            raise ConnectionResetError(message)
        data = self._pieces.popleft()
        self._kept -= len(data)
        if not self._pieces and not self.ended and not self.lost and self._transport is not None:
            self._transport.resume_reading()
        return data

    async def pour(self, sink: Stream, most: int) -> int:
        """Let what comes next go to another connection without being looked at; return how much that was.

        Ends after so many bytes, or when nothing more can be passed on: then reading goes on as ever, and tells why.
        """
        source, target = self._transport, sink._transport
        if not (isinstance(source, SocketTransport) and isinstance(target, SocketTransport)):
            return 0
        before = self.moved
        source.pour(target, most, self._poured)
        self._goal = before + most
        try:
            while self.moved < self._goal and not (self._pieces or self.ended or self.lost):
                self._reader = asyncio.get_running_loop().create_future()
                await self._reader
        finally:
            self._reader = None
            self._goal = 0
            source.stop_pouring()
        return self.moved - before - self._kept

    def _poured(self, size: int) -> None:
        self.moved += size
        if self.moved >= self._goal:
            _wake(self._reader)

    def put_back(self, data: bytes) -> None:
        """Let this be read next."""
        if data:
            self._pieces.appendleft(data)
            self._kept += len(data)

    async def write(self, data: bytes) -> None:
        """Send, and wait while too much is waiting to be sent."""
        if data and not self.lost:
            self._open().write(data)
        await self._room()

    async def finish(self, flush_seconds: float, linger_seconds: float) -> None:
        """Close once the other side has all that it was sent, or has had its time for that."""
        try:
            async with asyncio.timeout(flush_seconds):
                self._open().set_write_buffer_limits(high=0)
                await self._room()
            if self._open().can_write_eof():
                self._open().write_eof()
            async with asyncio.timeout(linger_seconds):
                while await self.read():
                    pass
        except OSError:  # a time-out is one too
            pass
        finally:
            self.abort()

    def abort(self) -> None:
        """Close at once."""
        self._when_lost = None
        if self._transport is not None and not self.given:
            self._transport.abort()

    def reset(self) -> None:
        """Close at once, such that the other side sees the connection refused rather than ended."""
        if self._transport is not None and not self.given and not self.lost:
            reset(self._transport)
        self.abort()

    def give(self, side: Side) -> None:
        """Hand the connection over, with what has come and was not read."""
        transport = self._open()
        self.given = True
        side.adopt(transport)
        while self._pieces:
            side.data_received(self._pieces.popleft())
        if self.ended:
            side.eof_received()

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._kept += len(data)
        if self._kept >= HIGH_WATER and self._transport is not None:
            self._transport.pause_reading()

    def _open(self) -> asyncio.Transport:
        if self.lost or self._transport is None:
            message = "the connection was lost"
            raise ConnectionResetError(message)
        return self._transport

    async def _room(self) -> None:
        while self._full and not self.lost:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        self._open()


def _late(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError())


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
