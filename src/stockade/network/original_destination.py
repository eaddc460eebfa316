"""Where a connection was meant to go before the kernel redirected it.

Rules: Linux only; asked on the accepted socket, from any network namespace, while the connection lives. A connection
that was made to the listener itself was not redirected, and has no other destination: that is an ``OSError``, too.
Source of truth: SO_ORIGINAL_DST of linux/netfilter_ipv4.h, IP6T_SO_ORIGINAL_DST of linux/netfilter_ipv6/ip6_tables.h.
"""

from __future__ import annotations

import socket
from errno import ENOENT

from stockade.annotation import Final

_SO_ORIGINAL_DST: Final = 80  # the same number in both families
_SOCKADDR_IN: Final = 16
_SOCKADDR_IN6: Final = 28
_PORT: Final = slice(2, 4)
_IPV4: Final = slice(4, 8)
_IPV6: Final = slice(8, 24)


def original_destination(connection: socket.socket) -> tuple[str, int]:
    """Return the address and port that the client connected to; raises ``OSError`` if it was not redirected."""
    if connection.family == socket.AF_INET6:
        raw = connection.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, _SOCKADDR_IN6)
        place = _IPV6
    else:
        raw = connection.getsockopt(socket.IPPROTO_IP, _SO_ORIGINAL_DST, _SOCKADDR_IN)
        place = _IPV4
    found = socket.inet_ntop(connection.family, raw[place]), int.from_bytes(raw[_PORT], "big")
    if found == connection.getsockname()[:2]:
        raise OSError(ENOENT, "the connection was made to the listener itself")
    return found
