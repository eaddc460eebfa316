"""Which unix sockets listen in a network namespace, by the files that they are bound to.

A file is known by its device and its number, not by its name: names can be changed, these cannot. The kernel answers
for the namespace in which the netlink socket was made, so what it lists was made in the session's own.

Rules: question and answer are pure functions of bytes; a short answer is refused, never guessed. The kernel has no
shorter answer than all sockets, of which commands may make thousands, while other callers wait: what cannot be about
the file in question is not taken apart.
Source of truth: sock_diag(7), ``linux/unix_diag.h``.
"""

from __future__ import annotations

import os
from _socket import AF_NETLINK, SOCK_CLOEXEC, SOCK_RAW, socket
from _struct import Struct
from _struct import error as short_error  # type: ignore[attr-defined] # it is there, only its stub is not
from fcntl import LOCK_EX, LOCK_UN, lockf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    #: By device: the names that somebody has bound a socket to.
    Bound = dict[int, set[bytes]]

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY = 20
_ERROR, _DONE = 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_UNIX = 1
_LISTENING = 1 << 10
_SHOW_NAME, _SHOW_FILE = 0x1, 0x2
_NAME, _FILE = 0, 1
_ANSWER_BYTES = 1 << 16

_HEADER = Struct("<IHHII")
_QUESTION = Struct("<BBHIIIQ")
_SOCKET_BYTES = 16
_LAST_BYTES = _HEADER.size + 4
_NUMBER_BYTES = 4
_ATTRIBUTE = Struct("<HH")
_PLACE = Struct("<II")
_ALIGNMENT = 4
_MINOR_BITS = 20


def question(*, names: bool = False) -> bytes:
    """Return the request for all listening sockets with their files, and with the names that they were bound to."""
    show = _SHOW_FILE | _SHOW_NAME if names else _SHOW_FILE
    body = _QUESTION.pack(_UNIX, 0, 0, _LISTENING, 0, show, 0xFFFF_FFFF_FFFF_FFFF)
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST | _DUMP, 1, 0) + body


def answer(data: bytes, number: int) -> tuple[dict[int, set[bytes]], bool]:
    """Read one datagram: the devices of files that have this number, and whether that was the last one.

    With each device come the names that its sockets were bound to, if they were asked for. A rename does not change
    them; one that does not begin with a slash was relative to where its server was then.
    """
    found: dict[int, set[bytes]] = {}
    if number.to_bytes(_NUMBER_BYTES, "little") not in data and not _may_end(data):
        return found, False
    position = 0
    try:
        while position < len(data):
            length, kind, _, _, _ = _HEADER.unpack_from(data, position)
            if kind in {_DONE, _ERROR} or length < _HEADER.size:
                return found, True
            start = position + _HEADER.size + _SOCKET_BYTES
            own, device, name = _file(data, start, min(position + length, len(data)))
            if own == number:
                found.setdefault(device, set()).add(name)
            position += _aligned(length)
    except short_error:
        return found, True
    return found, False


def _may_end(data: bytes) -> bool:
    """Tell whether the last message of all may be in here: it is the first, as an error, or stands at the end."""
    if len(data) < _LAST_BYTES:
        return True
    kinds = {_HEADER.unpack_from(data, position)[1] for position in (0, len(data) - _LAST_BYTES)}
    return not kinds.isdisjoint({_DONE, _ERROR})


def _file(data: bytes, position: int, end: int) -> tuple[int, int, bytes]:
    """Return number and device of a socket's file (-1: it has none), and the name that it was bound to."""
    number, device, name = -1, -1, b""
    while position + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        if length < _ATTRIBUTE.size:
            break
        if kind == _FILE and length >= _ATTRIBUTE.size + _PLACE.size:
            number, device = _PLACE.unpack_from(data, position + _ATTRIBUTE.size)
        elif kind == _NAME:
            name = data[position + _ATTRIBUTE.size : min(position + length, end)].partition(b"\0")[0]
        position += _aligned(length)
    return number, device, name


def kernel_device(major: int, minor: int) -> int:
    """Return a device as the kernel counts it within, which is how its answers name it."""
    return major << _MINOR_BITS | minor


def _aligned(length: int) -> int:
    return (length + _ALIGNMENT - 1) & -_ALIGNMENT


class Listeners:
    """Asks the kernel; made once, inside the namespace that is asked about."""

    def __init__(self) -> None:
        """Open the way to the kernel."""
        self._kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._kernel.fileno()

    def close(self) -> None:
        """Close it."""
        self._kernel.close()

    def devices(self, number: int) -> Bound:
        """Return the devices on which somebody listens now on a file of this number (the lower half of it).

        Raises ``OSError`` if the kernel does not say.
        """
        return self._ask(question(), number)

    def names(self, number: int) -> Bound:
        """Return the same, each device with the names that its sockets were bound to."""
        return self._ask(question(names=True), number)

    def _ask(self, words: bytes, number: int) -> Bound:
        self._kernel.send(words)
        found: Bound = {}
        last = False
        while not last:
            more, last = answer(self._kernel.recv(_ANSWER_BYTES), number)
            for device, names in more.items():
                found.setdefault(device, set()).update(names)
        return found


def in_turn(devices: Callable[[int], Bound]) -> Callable[[int], Bound]:
    """Return what asks when no deputy does: they share the way to the kernel, and must not hear each other's answers.

    Where the kernel cannot be asked there is no device: then nothing is the session's own.
    """
    turn = os.memfd_create("turn", os.MFD_CLOEXEC)

    def ask(number: int) -> Bound:
        try:
            lockf(turn, LOCK_EX)
            try:
                return devices(number)
            finally:
                lockf(turn, LOCK_UN)
        except OSError:
            return {}

    return ask
