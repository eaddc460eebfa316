"""Messages between the owner of a session and its proxy process, with open sockets attached.

A frame is a kind (1 byte), the number of descriptors (1), the length of its fields (4), and the fields: each its length
(4) and its bytes. A list within a field is packed the same way. The descriptors of a frame travel with its first byte.
Stream sockets, because macOS has no others that keep an order and tell the end.

Rules: neither side waits for the other longer than it has said; nothing is ever run or built from what comes but
bytes, and what is no frame ends the link. A link that has ended stays so: sending says ``False``, receiving gives
nothing. Each direction ends on its own, so that last words can be said to who says no more. Nothing here raises.
Whoever takes no descriptors gets none: the kernel drops them.

Source of truth: unix(7), cmsg(3).
"""

from __future__ import annotations

import _socket
import os
import select
import sys
import time
from collections import deque
from errno import ETOOMANYREFS

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The largest frame that a proxy says, and that an owner says: its rules may be many.
SMALL: Final = 1 << 16
LARGE: Final = 1 << 24
#: Descriptors that one frame may carry.
MOST_DESCRIPTORS: Final = 64
_HEAD: Final = 6
_LENGTH: Final = 4
_DESCRIPTOR: Final = 4
_MOST_UNCLAIMED: Final = 4 * MOST_DESCRIPTORS
_ONE_READ: Final = 1 << 16
_READS: Final = 64
_MANY: Final = 4096
_FAR_TOO_MANY: Final = 1 << 16
_BUFFER: Final = 1 << 18
_QUIETLY: Final[int] = getattr(_socket, "MSG_NOSIGNAL", 0)
_CLOSE_ON_EXEC: Final[int] = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
_SO_NOSIGPIPE: Final = 0x1022  # macOS, which has no MSG_NOSIGNAL; sys/socket.h


class Message(Value):
    """One message: its kind is one byte. Descriptors are not owned by it."""

    kind: bytes
    fields: tuple[bytes, ...] = ()
    descriptors: tuple[int, ...] = ()


def pack(fields: Iterable[bytes]) -> bytes:
    """Put fields in one row of bytes."""
    return b"".join(len(field).to_bytes(_LENGTH, "big") + field for field in fields)


def unpack(data: bytes) -> tuple[bytes, ...]:
    """Take packed fields apart, or raise ``ValueError``."""
    fields = []
    at = 0
    while at < len(data):
        start = at + _LENGTH
        at = start + int.from_bytes(data[at:start], "big")
        if start > len(data) or at > len(data):
            message = "a message ends within a field"
            raise ValueError(message)
        fields.append(data[start:at])
    return tuple(fields)


def encode(message: Message) -> bytes:
    """Return the frame of a message."""
    body = pack(message.fields)
    return message.kind + bytes((len(message.descriptors),)) + len(body).to_bytes(_LENGTH, "big") + body


class Decoder:
    """Cuts what comes into messages. ``broken`` says that something was no frame; nothing is read after that."""

    def __init__(self, largest: int) -> None:
        """Take no frame whose fields are longer than this."""
        self._largest = largest
        self._buffer = bytearray()
        self.unclaimed: deque[int] = deque()
        self.broken = False

    def receive(self, data: bytes, descriptors: Sequence[int] = ()) -> list[Message]:
        """Take bytes and what came with them; return the messages that are whole now."""
        self._buffer += data
        self.unclaimed.extend(descriptors)
        messages = []
        while not self.broken and (message := self._next()) is not None:
            messages.append(message)
        self.broken = self.broken or len(self.unclaimed) > _MOST_UNCLAIMED
        if self.broken:
            self._buffer.clear()
        return messages

    def _next(self) -> Message | None:
        if len(self._buffer) < _HEAD:
            return None
        count, size = self._buffer[1], int.from_bytes(self._buffer[2:_HEAD], "big")
        if size > self._largest or count > MOST_DESCRIPTORS or count > len(self.unclaimed):
            self.broken = True
            return None
        end = _HEAD + size
        if len(self._buffer) < end:
            return None
        try:
            fields = unpack(bytes(self._buffer[_HEAD:end]))
        except ValueError:
            self.broken = True
            return None
        kind = bytes(self._buffer[:1])
        del self._buffer[:end]
        return Message(kind, fields, tuple(self.unclaimed.popleft() for _ in range(count)))


class Link:
    """One end of a link. ``ended`` says that nothing more will come, ``broken`` that nothing can be sent any more."""

    def __init__(self, end: _socket.socket, *, largest: int = SMALL, takes_descriptors: bool = False) -> None:
        """Own the socket from here on."""
        end.setblocking(False)
        for option in (_socket.SO_SNDBUF, _socket.SO_RCVBUF):
            # macOS gives 8 KiB otherwise; a limit of the administrator is no reason to fail.
            _try_option(end, option, _BUFFER)
        if sys.platform == "darwin":
            _try_option(end, _SO_NOSIGPIPE, 1)
        self._socket = end
        self._takes_descriptors = takes_descriptors
        self._decoder = Decoder(largest)
        self._unsent: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self.unsent = 0
        self.ended = False
        self.broken = False

    @classmethod
    def pair(cls) -> tuple[Link, _socket.socket]:
        """Return an owner's end, and the socket that the other end adopts."""
        mine, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
        for end in (mine, theirs):
            os.set_inheritable(end.fileno(), False)
        return cls(mine), theirs

    @classmethod
    def adopt(cls, descriptor: int) -> Link:
        """Return a proxy's end, of an inherited descriptor: it takes large messages, and descriptors."""
        os.set_inheritable(descriptor, False)
        end = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)
        return cls(end, largest=LARGE, takes_descriptors=True)

    def fileno(self) -> int:
        """Return the descriptor, for waiting on it."""
        return self._socket.fileno()

    def send(self, message: Message, seconds: float) -> bool:
        """Send a message, and wait for room at most so long; after that the link has ended.

        Its descriptors are copied, and may be closed afterwards.
        """
        self._put(message)
        return self.finish(seconds)

    def post(self, message: Message, room: int) -> bool:
        """Send without waiting; say ``False`` if more than ``room`` bytes are waiting already. No descriptors."""
        if self.broken or self.unsent > room:
            return False
        self._put(message)
        self.flush()
        return True

    def finish(self, seconds: float) -> bool:
        """Wait until all is sent, at most so long; after that the link has ended."""
        deadline = time.monotonic() + seconds
        self.flush()
        while self.unsent and not self.broken:
            left = deadline - time.monotonic()
            if left <= 0 or not self._wait(select.POLLOUT, left):
                self.abandon()
                break
            self.flush()
        return not self.broken

    def flush(self) -> None:
        """Send as much as can be sent without waiting."""
        while self._unsent and not self.broken:
            data, descriptors = self._unsent[0]
            try:
                sent = _sent(self._socket, data[:_BUFFER], _rights(descriptors))
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._break()
                return
            self.unsent -= sent
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = (data[sent:], ())

    def receive_available(self) -> list[Message]:
        """Return the messages that are there, without waiting; a part of them if there are very many."""
        messages: list[Message] = []
        for _ in range(_READS):
            if self.ended or len(messages) >= _MANY:
                break
            try:
                data, descriptors = self._read()
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self.abandon()
                break
            self.ended = not data
            messages += self._decoder.receive(data, descriptors)
            if self._decoder.broken:
                self.abandon()
        return messages

    def receive_until_end(self, seconds: float) -> list[Message]:
        """Return the messages until the other side ends the link, for at most so long."""
        deadline = time.monotonic() + seconds
        messages = self.receive_available()
        while not self.ended and (left := deadline - time.monotonic()) > 0 and self._wait(select.POLLIN, left):
            messages += self.receive_available()
            if len(messages) > _FAR_TOO_MANY:
                self.abandon()
        return messages

    def end(self) -> None:
        """Tell the other side that nothing more will be said; it may still say something."""
        try:
            self._socket.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # it is gone already

    def abandon(self) -> None:
        """Treat the other side as gone, and let it know."""
        self.ended = True
        self._break()
        try:
            self._socket.shutdown(_socket.SHUT_RDWR)
        except OSError:
            return  # it is gone already

    def close(self) -> None:
        """Give the end up."""
        self.ended = True
        self._break()
        while self._decoder.unclaimed:
            os.close(self._decoder.unclaimed.popleft())
        self._socket.close()

    def _put(self, message: Message) -> None:
        if not self.broken:
            data = memoryview(encode(message))
            self._unsent.append((data, message.descriptors))
            self.unsent += len(data)

    def _break(self) -> None:
        self.broken = True
        self._unsent.clear()
        self.unsent = 0

    def _wait(self, events: int, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._socket.fileno(), events)
        return bool(poller.poll(seconds * 1000))

    def _read(self) -> tuple[bytes, Sequence[int]]:
        if not self._takes_descriptors:
            return self._socket.recv(_ONE_READ), ()
        space = _socket.CMSG_SPACE(MOST_DESCRIPTORS * _DESCRIPTOR)
        data, ancillary, _flags, _address = self._socket.recvmsg(_ONE_READ, space, _CLOSE_ON_EXEC)
        return data, received(ancillary)


def _sent(end: _socket.socket, data: memoryview, rights: list[tuple[int, int, bytes]]) -> int:
    try:
        return end.sendmsg([data], rights, _QUIETLY)
    except OSError as error:
        if error.errno != ETOOMANYREFS:
            raise
    from stockade.passing import send_again

    return send_again(end, data, rights, _QUIETLY)


def received(ancillary: Iterable[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came with a message, none of which survives an exec."""
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            whole = len(data) - len(data) % _DESCRIPTOR
            pieces = (data[at : at + _DESCRIPTOR] for at in range(0, whole, _DESCRIPTOR))
            found += (int.from_bytes(piece, sys.byteorder) for piece in pieces)
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    return found


def _rights(descriptors: tuple[int, ...]) -> list[tuple[int, int, bytes]]:
    if not descriptors:
        return []
    packed = b"".join(descriptor.to_bytes(_DESCRIPTOR, sys.byteorder) for descriptor in descriptors)
    return [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]


def _try_option(end: _socket.socket, option: int, value: int) -> None:
    try:
        end.setsockopt(_socket.SOL_SOCKET, option, value)
    except OSError:
        return
