"""A connected socket under one of asyncio's protocols, with less in between than asyncio's own transport.

What differs: it stands at once, without turns of the event loop; everything is read into one buffer that all of them
share, because nothing is ever left in it; several reads follow each other while the other side sends fast; what is
written may be a view of that buffer, for what cannot be sent at once is copied. TCP is never held back to be joined
with what may follow (``TCP_NODELAY``): asyncio leaves that out for sockets whose protocol number is not spelt out.

Rules: as for every transport: ``connection_lost`` is told once, and never from within a call of the protocol. A
buffered protocol must be done with its buffer when ``buffer_updated`` returns.

Source of truth: the manual of ``asyncio.Transport`` and ``asyncio.BufferedProtocol``, tcp(7).
"""

from __future__ import annotations

import asyncio
import socket

from stockade.annotation import Any, Final, TypeAlias, cast

#: What one read takes at most: large enough for few calls, small enough for the processor's cache.
PIECE: Final = 1 << 18
#: Reads in one turn of the event loop, after which others have theirs.
_READS: Final = 4
_HIGH_WATER: Final = 1 << 16
_SHARED: Final = memoryview(bytearray(PIECE))

Data: TypeAlias = bytes | bytearray | memoryview


def shared_buffer() -> memoryview:
    """Return the buffer that all read into; what is in it holds until the next read."""
    return _SHARED


class SocketTransport(asyncio.Transport):
    """One socket, which is the transport's own from now on."""

    def __init__(self, connection: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        """Begin to read; the socket must not block."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._socket = connection
        self._descriptor = connection.fileno()
        self._waiting = bytearray()
        self._sent = 0
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._reading = False
        self._ended = False
        self._eof = False
        self._full = False
        self._closing = False
        self._gone = False
        self.set_protocol(protocol)
        _hurry(connection)
        protocol.connection_made(self)
        self.resume_reading()

    # What asyncio's transports have

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the socket, or an address of it."""
        if name == "socket":
            return self._socket
        if name in {"peername", "sockname"}:
            try:
                return self._socket.getpeername() if name == "peername" else self._socket.getsockname()
            except OSError:
                return default
        return default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Tell another protocol from now on."""
        self._protocol = cast("asyncio.Protocol", protocol)
        self._buffered = cast("asyncio.BufferedProtocol", protocol)
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return who is told."""
        return self._protocol

    def is_closing(self) -> bool:
        """Say whether it is closed, or will be."""
        return self._closing

    def is_reading(self) -> bool:
        """Say whether what comes is read."""
        return self._reading

    def pause_reading(self) -> None:
        """Leave what comes where it is."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        """Read again, unless there is nothing more to come."""
        if not (self._reading or self._ended or self._closing):
            self._reading = True
            self._loop.add_reader(self._descriptor, self._readable)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say how much may wait to be sent."""
        self._high = (_HIGH_WATER if low is None else 4 * low) if high is None else high
        self._low = self._high // 4 if low is None else low
        self._tell_room()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return how much may wait to be sent: when it is little again, and when too much."""
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        """Return how much waits to be sent."""
        return len(self._waiting) - self._sent

    def write(self, data: Data) -> None:
        """Send at once what can be, and the rest as soon as it can be."""
        if self._eof:
            message = "nothing can be written behind the end"
            raise RuntimeError(message)
        if self._gone or not data:
            return
        if not self._waiting:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
            self._loop.add_writer(self._descriptor, self._writable)
        self._waiting += data
        self._tell_room()

    def can_write_eof(self) -> bool:
        """Say that one direction can be ended alone."""
        return True

    def write_eof(self) -> None:
        """End what is sent, after what waits; what comes is still read."""
        if not (self._eof or self._closing):
            self._eof = True
            if not self._waiting:
                self._shut()

    def close(self) -> None:
        """Close after what waits was sent."""
        if not self._closing:
            self.pause_reading()
            self._closing = True
            if not self._waiting:
                self._lose(None)

    def abort(self) -> None:
        """Close at once."""
        self._lose(None)

    # What the event loop tells

    def _readable(self) -> None:
        for _ in range(_READS):
            size = self._read()
            if size < PIECE or not self._reading:
                return

    def _read(self) -> int:
        """Read once and return how much came."""
        buffer = cast("memoryview", self._buffered.get_buffer(PIECE)) if self._is_buffered else _SHARED
        try:
            size = self._socket.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._lose(error)
            return 0
        if not size:
            self._end()
        elif self._is_buffered:
            self._buffered.buffer_updated(size)
        else:
            self._protocol.data_received(bytes(buffer[:size]))
        return size

    def _end(self) -> None:
        self.pause_reading()
        self._ended = True
        if not self._protocol.eof_received():
            self.close()

    def _writable(self) -> None:
        try:
            with memoryview(self._waiting) as view:
                self._sent += self._socket.send(view[self._sent :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if self._sent < len(self._waiting):
            self._tell_room()
            return
        self._waiting = bytearray()  # a cleared one would keep its memory
        self._sent = 0
        self._loop.remove_writer(self._descriptor)
        self._tell_room()
        if self._waiting:
            return  # the protocol had more to say
        if self._closing:
            self._lose(None)
        elif self._eof:
            self._shut()

    # How it ends

    def _tell_room(self) -> None:
        size = len(self._waiting) - self._sent
        if self._full and size <= self._low:
            self._full = False
            self._protocol.resume_writing()
        elif not self._full and size > self._high:
            self._full = True
            self._protocol.pause_writing()

    def _shut(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError | None) -> None:
        """Give the connection up; whoever is told is told in the loop's next turn."""
        if self._gone:
            return
        self.pause_reading()
        if self._waiting:
            self._loop.remove_writer(self._descriptor)
            self._waiting = bytearray()
            self._sent = 0
        self._gone = self._closing = True
        self._loop.call_soon(self._over, error)

    def _over(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()


def _hurry(connection: socket.socket) -> None:
    if connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
