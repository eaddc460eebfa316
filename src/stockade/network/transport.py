"""A connected socket under one of asyncio's protocols, with less in between than asyncio's own transport.

What differs: it stands at once, without turns of the event loop; everything is read into one buffer that all of them
share, because nothing is ever left in it; TCP is never held back to be joined with what may follow (``TCP_NODELAY``):
asyncio leaves that out for sockets whose protocol number is not spelt out. And it can be poured into another one: what
comes goes on to that without the protocol, no faster than it is taken; where much comes at once, inside the kernel.

Rules: as for every transport: ``connection_lost`` is told once, and never from within a call of the protocol.

Source of truth: the manual of ``asyncio.Transport``, tcp(7), splice(2).
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct

from stockade.annotation import TYPE_CHECKING, Any, Final, TypeAlias, cast
from stockade.network.pipe import Pipes

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.pipe import Pipe

#: What one read takes at most: large enough for few calls, small enough for the processor's cache.
PIECE: Final = 1 << 18
#: Fillings of a pipe in one turn of the event loop, after which others have theirs.
_FILLINGS: Final = 4
_HIGH_WATER: Final = 1 << 16
_UNABLE: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP})
_SHARED: Final = memoryview(bytearray(PIECE))
_PIPES: Final = Pipes()
_NO_LINGER: Final = struct.pack("ii", 1, 0)

Data: TypeAlias = bytes | bytearray | memoryview


class SocketTransport(asyncio.Transport):
    """One socket, which is the transport's own from now on."""

    def __init__(self, connection: socket.socket, protocol: asyncio.BaseProtocol, *, reading: bool = True) -> None:
        """Begin to read, unless that is to wait for ``resume_reading``; the socket must not block."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._socket = connection
        self._descriptor = connection.fileno()
        self._pipe: Pipe | None = None
        self._waiting = bytearray()
        self._sent = 0
        self._sink: SocketTransport | None = None
        self._source: SocketTransport | None = None
        self._left = 0
        self._poured: Callable[[int], None] = _ignore
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
        if reading:
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
        return len(self._waiting) - self._sent + (0 if self._pipe is None else self._pipe.held)

    def write(self, data: Data) -> None:
        """Send at once what can be, and copy the rest, to be sent as soon as it can be."""
        if self._eof:
            message = "nothing can be written behind the end"
            raise RuntimeError(message)
        if self._gone or not data:
            return
        if not self._waiting and self._pipe is None:
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
            if not self.get_write_buffer_size():
                self._shut()

    def close(self) -> None:
        """Close after what waits was sent."""
        if not self._closing:
            self.pause_reading()
            self._closing = True
            if not self.get_write_buffer_size():
                self._lose(None)

    def abort(self) -> None:
        """Close at once."""
        self._lose(None)

    def take(self) -> bytes:
        """Return what has come already and is not being read; the end and the loss are told as ever, if it is."""
        try:
            size = self._socket.recv_into(_SHARED, PIECE)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError as error:
            self._lose(error)
            return b""
        return bytes(_SHARED[:size])

    def discard(self) -> None:
        """Close at once and tell nobody: for whoever ends it, and knows already."""
        if not self._gone:
            self._let_go()
            self._socket.close()

    def pour(self, sink: SocketTransport, most: int, poured: Callable[[int], None]) -> None:
        """Let what comes go to another transport, at most so many bytes; each time ``poured`` is told how many.

        What comes after those, the end and the loss of the connection are told to the protocol as ever.
        """
        self._sink, self._left, self._poured = sink, most, poured
        sink._source = self

    def stop_pouring(self) -> None:
        """Tell the protocol again what comes."""
        sink, self._sink, self._poured = self._sink, None, _ignore
        if sink is not None:
            sink._source = None  # noqa: SLF001 - the other end of the same thing

    # What the event loop tells

    def _readable(self) -> None:
        sink = self._sink
        if sink is None:
            size = self._receive(PIECE)
            if size > 0:
                self._protocol.data_received(bytes(_SHARED[:size]))
            return
        most = min(PIECE, self._left)
        size = self._receive(most)
        if size > 0:
            sink.write(_SHARED[:size])
            self._count(size, sink)
            if size == PIECE and self._reading and self._sink is sink:
                self._splice(sink)

    def _receive(self, most: int) -> int:
        """Read into the shared buffer and return how much came; -1 if nothing did."""
        try:
            size = self._socket.recv_into(_SHARED, most)
        except (BlockingIOError, InterruptedError):
            return -1
        except OSError as error:
            self._lose(error)
            return -1
        if not size:
            self._end()
        return size

    def _splice(self, sink: SocketTransport) -> None:
        """Pass on through a pipe what comes fast; how it ends is left to the next read."""
        for _ in range(_FILLINGS):
            pipe = _PIPES.borrow()
            if pipe is None:
                return
            try:
                size = pipe.fill(self._descriptor, self._left)
            except OSError as error:
                _PIPES.give_back(pipe)
                if error.errno in _UNABLE:
                    _PIPES.give_up()
                return
            sink._send_pipe(pipe)
            if size:
                self._count(size, sink)
            if not size or not self._reading or self._sink is not sink:
                return

    def _count(self, size: int, sink: SocketTransport) -> None:
        self._left -= size
        if sink.get_write_buffer_size():
            self.pause_reading()
        poured = self._poured
        if not self._left:
            self.stop_pouring()
            self.resume_reading()
        poured(size)

    def _send_pipe(self, pipe: Pipe) -> None:
        """Send what is in a pipe; what cannot be sent at once stays in it until it can be."""
        if self._gone:
            _PIPES.drop(pipe)
            return
        try:
            pipe.empty(self._descriptor)
        except (BlockingIOError, InterruptedError):
            self._pipe = pipe
            self._loop.add_writer(self._descriptor, self._writable)
            self._tell_room()
        except OSError as error:
            _PIPES.drop(pipe)
            self._lose(error)
        else:
            _PIPES.give_back(pipe)

    def _end(self) -> None:
        self.pause_reading()
        self._ended = True
        if not self._protocol.eof_received():
            self.close()

    def _writable(self) -> None:
        try:
            self._send_waiting()
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
        if self._source is not None:
            self._source.resume_reading()
        if self.get_write_buffer_size():
            return  # the protocol had more to say
        if self._closing:
            self._lose(None)
        elif self._eof:
            self._shut()

    def _send_waiting(self) -> None:
        if self._pipe is not None:
            self._pipe.empty(self._descriptor)
            _PIPES.give_back(self._pipe)
            self._pipe = None
        if self._waiting:
            with memoryview(self._waiting) as view:
                self._sent += self._socket.send(view[self._sent :])

    # How it ends

    def _tell_room(self) -> None:
        size = self.get_write_buffer_size()
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
        if not self._gone:
            self._let_go()
            self._loop.call_soon(self._over, error)

    def _let_go(self) -> None:
        self.pause_reading()
        if self.get_write_buffer_size():
            self._loop.remove_writer(self._descriptor)
            self._waiting = bytearray()
            self._sent = 0
        if self._pipe is not None:
            _PIPES.drop(self._pipe)
            self._pipe = None
        self.stop_pouring()
        if self._source is not None:
            self._source.stop_pouring()
        self._gone = self._closing = True

    def _over(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()


def reset(transport: asyncio.Transport) -> None:
    """Close at once, such that the other side sees the connection refused rather than ended."""
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is not None and not transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


def _ignore(_size: int) -> None:
    return


def _hurry(connection: socket.socket) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        return  # it is not TCP
