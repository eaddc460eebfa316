"""Packets between a session and its launcher: a kind, a number, fields, and open files.

One packet is one message of a ``SOCK_SEQPACKET`` pair: kind (1 byte), number (8), place (1), fields.
Each field is its length (4 bytes) and its bytes; a list within a field is packed the same way.
Fields that would not fit into a message travel in a memory file, sent as the last descriptor.

Rules: encoding and decoding do no I/O; what does not decode raises ``ValueError``; received
descriptors never survive an exec. Source of truth: unix(7), cmsg(3).
"""

from __future__ import annotations

import os
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    MSG_CTRUNC,
    MSG_DONTWAIT,
    SCM_RIGHTS,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)
from errno import ETOOMANYREFS

INLINE_BYTES = 32 * 1024
MAXIMUM_DESCRIPTORS = 253  # SCM_MAX_FD
_HEADER_BYTES = 10
_LENGTH_BYTES = 4
_DESCRIPTOR_BYTES = 4
_INLINE = 0
_IN_FILE = 1


def pack(fields: list[bytes]) -> bytes:
    """Put fields in one row of bytes."""
    parts = []
    for field in fields:
        parts.append(len(field).to_bytes(_LENGTH_BYTES, "little"))
        parts.append(field)
    return b"".join(parts)


def unpack(data: bytes) -> list[bytes]:
    """Take packed fields apart."""
    fields = []
    position = 0
    while position < len(data):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(data[position:start], "little")
        if start > len(data) or position > len(data):
            message = "a packet ends within a field"
            raise ValueError(message)
        fields.append(data[start:position])
    return fields


class Packet:
    """One message: what it is, whom it concerns, and its body still packed.

    ``cut``: descriptors that came with it are lost, because this process had no room for them.
    """

    __slots__ = ("body", "cut", "descriptors", "kind", "number")

    def __init__(self, kind: bytes, number: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> None:
        """Take ``kind`` as one byte; the descriptors are not owned by the packet."""
        self.kind = kind
        self.number = number
        self.body = body
        self.descriptors = descriptors
        self.cut = False

    def fields(self) -> list[bytes]:
        """Return the unpacked body."""
        return unpack(self.body)

    def close(self) -> None:
        """Close the descriptors that came with it."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()


def encode(packet: Packet, place: int = _INLINE) -> bytes:
    """Return the bytes of one message."""
    header = packet.kind + packet.number.to_bytes(8, "little") + bytes((place,))
    return header if place == _IN_FILE else header + packet.body


def decode(data: bytes) -> tuple[Packet, bool]:
    """Return the packet of one message, and whether its body is still in a file."""
    if len(data) < _HEADER_BYTES or data[_HEADER_BYTES - 1] not in (_INLINE, _IN_FILE):
        message = "a packet has no valid header"
        raise ValueError(message)
    number = int.from_bytes(data[1:9], "little")
    return Packet(data[:1], number, data[_HEADER_BYTES:]), data[_HEADER_BYTES - 1] == _IN_FILE


class Channel:
    """One end of a pair; whole packets in, whole packets out."""

    __slots__ = ("_socket",)

    def __init__(self, end: socket) -> None:
        """Own the socket from here on."""
        self._socket = end

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Make two ends that lead to each other."""
        one, other = socketpair(AF_UNIX, SOCK_SEQPACKET, 0)
        return cls(one), cls(other)

    @classmethod
    def adopt(cls, descriptor: int) -> Channel:
        """Make an end of an inherited descriptor."""
        return cls(socket(AF_UNIX, SOCK_SEQPACKET, 0, descriptor))

    def fileno(self) -> int:
        """Return the descriptor, for waiting on it."""
        return self._socket.fileno()

    def close(self) -> None:
        """Give the end up; the other one reads its end then."""
        self._socket.close()

    def send(self, packet: Packet, *, wait: bool = True) -> None:
        """Send a packet; its descriptors are copied, not taken. ``BlockingIOError`` if that would need waiting."""
        flags = 0 if wait else MSG_DONTWAIT
        if len(packet.body) <= INLINE_BYTES:
            self._send(encode(packet), packet.descriptors, flags)
            return
        file = os.memfd_create("stockade-packet", os.MFD_CLOEXEC)
        try:
            _write_all(file, packet.body)
            self._send(encode(packet, _IN_FILE), (*packet.descriptors, file), flags)
        finally:
            os.close(file)

    def _send(self, data: bytes, descriptors: tuple[int, ...], flags: int) -> None:
        rights = b"".join(descriptor.to_bytes(_DESCRIPTOR_BYTES, "little") for descriptor in descriptors)
        ancillary = [(SOL_SOCKET, SCM_RIGHTS, rights)] if rights else []
        try:
            self._socket.sendmsg([data], ancillary, flags)
        except OSError as error:
            if error.errno != ETOOMANYREFS:
                raise
            from stockade.passing import send_again

            send_again(self._socket, data, ancillary, flags)

    def receive(self, *, wait: bool = True) -> Packet | None:
        """Wait for the next packet; ``None`` once the other end is gone, or if there is none to wait for."""
        space = CMSG_SPACE(MAXIMUM_DESCRIPTORS * _DESCRIPTOR_BYTES)
        flags = MSG_CMSG_CLOEXEC if wait else MSG_CMSG_CLOEXEC | MSG_DONTWAIT
        try:
            try:
                data, ancillary, shown, _ = self._socket.recvmsg(INLINE_BYTES + _HEADER_BYTES, space, flags)
            except ConnectionResetError:
                # The other end is gone and has not read everything. The kernel says that once, and first; what was said
                # before is still there.
                data, ancillary, shown, _ = self._socket.recvmsg(INLINE_BYTES + _HEADER_BYTES, space, flags)
        except (ConnectionResetError, BlockingIOError):
            return None
        descriptors = _descriptors(ancillary)
        if not data:
            return None
        packet, in_file = decode(data)
        packet.cut = bool(shown & MSG_CTRUNC)
        if in_file and descriptors and not packet.cut:
            file = descriptors.pop()
            packet.body = _read_all(file)
            os.close(file)
        packet.descriptors = tuple(descriptors)
        return packet


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            whole = len(data) - len(data) % _DESCRIPTOR_BYTES
            found += (
                int.from_bytes(data[at : at + _DESCRIPTOR_BYTES], "little") for at in range(0, whole, _DESCRIPTOR_BYTES)
            )
    return found


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _read_all(file: int) -> bytes:
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    while len(data) < size:
        more = os.pread(file, size - len(data), len(data))
        if not more:
            break
        data += more
    return data
