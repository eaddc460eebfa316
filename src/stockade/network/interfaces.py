"""The addresses of this host, asked of the C library: no program is run, and no file of one system is read.

Rules: every address of every interface, up or down, counts. An address with a zone is kept without it. What
cannot be found out is an error, never an empty answer: the guard would take it for "no address is mine".
Routes that make a whole range local without an address on an interface are not seen here: see ``local_route``, which
Linux alone has.

Source of truth: getifaddrs(3). The first four fields of ``struct ifaddrs`` and the places of the addresses in
``sockaddr_in`` and ``sockaddr_in6`` are the same on Linux, macOS and the BSDs; the family's place is not.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from ipaddress import IPv4Address, IPv6Address
from socket import AF_INET, AF_INET6

from stockade.annotation import TYPE_CHECKING, ClassVar, Final
from stockade.errors import UnavailableError
from stockade.policy.host import Host, HostKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_V4_OFFSET: Final = 4
_V6_OFFSET: Final = 8
_V4_LENGTH: Final = 4
#: This host's, even while the interface has no address: so no two answers are the same (empty) object.
_LOOPBACK: Final = Host("127.0.0.1", HostKind.IPV4)
_V6_LENGTH: Final = 16


class _Entry(ctypes.Structure):
    _fields_: ClassVar = [
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
        ("address", ctypes.c_void_p),
    ]


def own_addresses() -> frozenset[Host]:
    """Return every address of this host, or raise ``UnavailableError``."""
    library = ctypes.CDLL(None, use_errno=True)
    library.freeifaddrs.argtypes = [ctypes.c_void_p]
    library.freeifaddrs.restype = None
    first = ctypes.c_void_p()
    if library.getifaddrs(ctypes.byref(first)) != 0:
        message = f"the addresses of this host cannot be read: {os.strerror(ctypes.get_errno())}"
        raise UnavailableError(message, "allow this process to use netlink sockets")
    try:
        return frozenset({_LOOPBACK, *_hosts(first.value)})
    finally:
        library.freeifaddrs(first)


def _hosts(place: int | None) -> Iterator[Host]:
    while place:
        entry = _Entry.from_address(place)
        if entry.address:
            host = _host(entry.address)
            if host is not None:
                yield host
        place = entry.next


def _host(place: int) -> Host | None:
    if sys.platform == "linux":
        family = ctypes.c_uint16.from_address(place).value
    else:
        family = ctypes.c_uint8.from_address(place + 1).value
    if family == AF_INET:
        packed = ctypes.string_at(place + _V4_OFFSET, _V4_LENGTH)
        return Host(str(IPv4Address(packed)), HostKind.IPV4)
    if family == AF_INET6:
        packed = ctypes.string_at(place + _V6_OFFSET, _V6_LENGTH)
        return Host(IPv6Address(packed).compressed, HostKind.IPV6)
    return None


class OwnAddresses:
    """The addresses of this host, read again when they are older than ``seconds``."""

    def __init__(
        self,
        read: Callable[[], frozenset[Host]] = own_addresses,
        *,
        seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take how to read them; nothing is read before the first call."""
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._known: frozenset[Host] = frozenset()
        self._until = float("-inf")

    def __call__(self) -> frozenset[Host]:
        """Return the addresses; if they cannot be read now, raise rather than answer with old ones."""
        now = self._clock()
        if now >= self._until:
            self._known = self._read()
            self._until = now + self._seconds
        return self._known
