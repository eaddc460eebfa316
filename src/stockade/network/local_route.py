"""Whether a connection would end on this very host: asked of the kernel's routing table, for each destination.

Not every address of a host stands on an interface. ``ip route add local 198.51.100.0/24 dev lo`` makes a whole range
ours, and so can a table that only ``ip rule`` leads to. So the kernel is asked what it would do with this connection:
the same address, port, protocol and user as those of the dial, from the process that dials.

Rules: *local* and *anycast* routes lead here. Broadcast and multicast ones lead nowhere by TCP (connect(2) says
``ENETUNREACH``). Where there is no route, the dial will say so, in words of its own. Any other answer, and silence, is
an error, never "no": what cannot be judged is not dialled. Nothing waits: the kernel has answered when ``send``
returns. A socket lives for one question, so that no answer is taken for another's.

The answer names the source address that the kernel would take, and a rule may look at that: so the question is asked
again with it, as connect(2) does. A rule of ``ip rule`` that looks at the source port or at a firewall mark is not
foreseen: the dial has no mark, and its port is not chosen yet. Nor are rules that rewrite the destination on its way
out (nat in the output chain). On macOS there is no such question, and addresses of interfaces alone count.

Source of truth: rtnetlink(7), linux/rtnetlink.h; ``RTA_IP_PROTO`` and ``RTA_DPORT`` are since Linux 4.19, and before
that the kernel passes over them, as over the rules that they are for.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.policy.host import HostKind

if TYPE_CHECKING:
    from stockade.policy.destination import Destination

_NETLINK_ROUTE: Final = 0
_NLM_F_REQUEST: Final = 1
_NLMSG_ERROR: Final = 2
_RTM_NEWROUTE: Final = 24
_RTM_GETROUTE: Final = 26
_RTA_DST: Final = 1
_RTA_SRC: Final = 2
_RTA_PREFSRC: Final = 7
_RTA_IP_PROTO: Final = 27
_RTA_DPORT: Final = 29
_RTN_LOCAL: Final = 2
_RTN_ANYCAST: Final = 4
_HERE: Final = frozenset({_RTN_LOCAL, _RTN_ANYCAST})

_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, number, port
_ROUTE: Final = struct.Struct(
    "=BBBBBBBBI"
)  # rtmsg: family, two prefix lengths, tos, table, protocol, scope, type, flags
_TYPE_PLACE: Final = _HEADER.size + 7
_ERROR: Final = struct.Struct("=i")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ALIGNMENT: Final = 4
_ANSWER_BYTES: Final = 8192
_NUMBER: Final = 1

#: No route, or one that says "prohibited": a dial ends the same way, for it asks the same table.
_NO_ROUTE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES})
_HINT: Final = "allow this process to use netlink sockets (NETLINK_ROUTE), or allow the address itself"


def question(destination: Destination, source: bytes = b"") -> bytes:
    """Return what the kernel is asked about a destination, whose host is an address, and from which one."""
    family = socket.AF_INET if destination.host.kind is HostKind.IPV4 else socket.AF_INET6
    packed = socket.inet_pton(family, destination.host.text)
    body = _ROUTE.pack(family, len(packed) * 8, len(source) * 8, 0, 0, 0, 0, 0, 0)
    body += _attribute(_RTA_DST, packed)
    body += _attribute(_RTA_SRC, source) if source else b""
    body += _attribute(_RTA_IP_PROTO, bytes((socket.IPPROTO_TCP,)))
    body += _attribute(_RTA_DPORT, destination.port.number.to_bytes(2, "big"))
    return _HEADER.pack(_HEADER.size + len(body), _RTM_GETROUTE, _NLM_F_REQUEST, _NUMBER, 0) + body


def is_here(answer: bytes) -> bool:
    """Read the kernel's answer. Raises ``OSError`` if it says that it cannot tell, or is no answer."""
    if len(answer) >= _HEADER.size + _ERROR.size:
        _, kind, _, number, _ = _HEADER.unpack_from(answer)
        if kind == _RTM_NEWROUTE and number == _NUMBER and len(answer) >= _HEADER.size + _ROUTE.size:
            return answer[_TYPE_PLACE] in _HERE
        if kind == _NLMSG_ERROR and number == _NUMBER:
            code = -_ERROR.unpack_from(answer, _HEADER.size)[0]
            if code in _NO_ROUTE:
                return False
            raise OSError(code or errno.EPROTO, os.strerror(code or errno.EPROTO))
    raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))


def source_of(answer: bytes) -> bytes:
    """Return the source address that the kernel's answer names, or nothing."""
    at = _HEADER.size + _ROUTE.size
    while at + _ATTRIBUTE.size <= len(answer):
        length, number = _ATTRIBUTE.unpack_from(answer, at)
        if length < _ATTRIBUTE.size:
            break
        if number == _RTA_PREFSRC:
            return answer[at + _ATTRIBUTE.size : at + length]
        at += length + -length % _ALIGNMENT
    return b""


def leads_here(destination: Destination) -> bool:
    """Say whether a connection to this address and port would end on this host, or raise ``UnavailableError``."""
    if sys.platform != "linux":
        return False
    try:
        answer = _ask(question(destination))
        if is_here(answer):
            return True
        source = source_of(answer)
        return bool(source) and is_here(_ask(question(destination, source)))
    except OSError as error:
        message = f"where {destination.host} leads cannot be found out: {error.strerror or error}"
        raise UnavailableError(message, _HINT) from None


def _ask(request: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.setblocking(False)  # it answers before `sendto` returns
        kernel.sendto(request, (0, 0))
        answer, sender = kernel.recvfrom(_ANSWER_BYTES)
    if sender[0] != 0:  # another process may write to any netlink socket whose number it guesses
        raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
    return answer


def _attribute(number: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, number) + value + bytes(-length % _ALIGNMENT)
