"""Where connections go inside a session: every address is here, and leads to the proxy.

Programs that know no proxy look a name up and connect to an address. In the session's network namespace every address
counts as local (a ``local default`` route on ``lo``), so none is unreachable; nftables then hands each TCP connection
to the transparent listener and each DNS question to the name server, both on the loopback address. What is meant for
the session's own addresses is left alone. Other UDP finds no listener, and the kernel says so at once.

Rules: needs ``CAP_NET_ADMIN`` over the current network namespace, and ``lo`` up; done once. A refusal is an ``OSError``
whose ``filename`` is the step in words. Without IPv6 in the kernel, IPv4 alone is carried.
Source of truth: rtnetlink(7), linux/rtnetlink.h and linux/if_addr.h (whose names the numbers have).
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6
from errno import EACCES, EAFNOSUPPORT, EINVAL, ENOENT, EOPNOTSUPP
from sys import byteorder

from stockade.platforms.linux.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, Request, attribute, perform
from stockade.platforms.linux.nftables import (
    NETLINK_NETFILTER,
    NFPROTO_INET,
    NFPROTO_IPV4,
    NFPROTO_IPV6,
    OPENING,
    Kept,
    redirection,
)

#: The session's own addresses: the lowest of those that stand for names (see ``network.fake_address``).
OWN_IPV4 = bytes((198, 18, 0, 1))
OWN_IPV6 = bytes.fromhex("fd73746f636b00000000000000000001")
#: 127.0.0.0/8, ::1, and the own addresses, where a program finds the servers that it started itself.
KEPT = Kept((b"\x7f", OWN_IPV4), (bytes(15) + b"\1", OWN_IPV6))

_NETLINK_ROUTE = 0
_RTM_NEWADDR = 20
_RTM_NEWROUTE = 24
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_F_NODAD = 0x02
_RT_SCOPE_UNIVERSE = 0
_RT_SCOPE_HOST = 254
_RT_TABLE_LOCAL = 255
_RTPROT_BOOT = 3
_RTN_LOCAL = 2
_RTA_OIF = 4
_RTA_PREFSRC = 7
_LOOPBACK_IFINDEX = 1

_NO_IPV6 = frozenset({EACCES, EAFNOSUPPORT, EOPNOTSUPP})
_NO_SUCH_FAMILY = frozenset({EAFNOSUPPORT, EINVAL, ENOENT, EOPNOTSUPP})


def carry(transparent_port: int, name_port: int) -> None:
    """Lead every TCP connection and DNS question of this network namespace to these ports of its loopback addresses."""
    perform(_NETLINK_ROUTE, everything_local(AF_INET), b"rtnetlink")
    both = True
    try:
        perform(_NETLINK_ROUTE, everything_local(AF_INET6), b"rtnetlink")
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        both = False
    try:
        redirect(NFPROTO_INET, transparent_port, name_port)
    except OSError as error:
        if error.errno not in _NO_SUCH_FAMILY:
            raise
        # Before Linux 5.2, and without IPv6, there is no such chain for both families at once.
        for family in (NFPROTO_IPV4, NFPROTO_IPV6)[: 1 + both]:
            redirect(family, transparent_port, name_port)


def redirect(family: int, transparent_port: int, name_port: int) -> None:
    """Make the nftables rules for one family of addresses, or for both at once."""
    perform(NETLINK_NETFILTER, redirection(family, KEPT, transparent_port, name_port), OPENING)


def everything_local(family: int) -> tuple[Request, ...]:
    """Return the requests that give ``lo`` the session's own address, and make all others local, too."""
    version, own = (b"IPv4", OWN_IPV4) if family == AF_INET else (b"IPv6", OWN_IPV6)
    index = _LOOPBACK_IFINDEX.to_bytes(4, byteorder)
    address = bytes((family, len(own) * 8, _IFA_F_NODAD, _RT_SCOPE_UNIVERSE)) + index
    address += attribute(_IFA_LOCAL, own) + attribute(_IFA_ADDRESS, own)
    route = bytes((family, 0, 0, 0, _RT_TABLE_LOCAL, _RTPROT_BOOT, _RT_SCOPE_HOST, _RTN_LOCAL)) + bytes(4)
    route += attribute(_RTA_OIF, index) + attribute(_RTA_PREFSRC, own)
    new = NLM_F_CREATE | NLM_F_EXCL
    return (
        Request(_RTM_NEWADDR, new, address, version + b" address on the loopback device"),
        Request(_RTM_NEWROUTE, new | NLM_F_ACK, route, version + b" route to the loopback device"),
    )
