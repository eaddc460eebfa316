"""Answers to the DNS questions of a session: from policy, and from nowhere else.

A name that could be reached gets an address that stands for it; every other name does not exist, and that it was asked
for is told. No question leaves this host by way of this: what a program hides in a name reaches nobody.

Rules: localhost is this session's own, and never a violation to ask for; nor is the name of an address, which programs
ask for on their own and which nobody here knows. Records other than addresses exist for no name. Over TCP a connection
may ask many questions, one after the other.

Source of truth: RFC 1035, RFC 6761 section 6.3 (localhost), RFC 7766.
"""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias, cast
from stockade.network.dns import Code, Frames, Query, Rejected, answer, frame, read_query
from stockade.network.fake_address import TIME_TO_LIVE
from stockade.network.service import Service
from stockade.policy.decision import Verdict
from stockade.policy.host import HostKind

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from stockade.network.fake_address import FakeAddresses
    from stockade.network.limits import Admissions, ProxyLimits
    from stockade.network.outlet import Outlet
    from stockade.network.service import Visit

_Address: TypeAlias = IPv4Address | IPv6Address

_LOCALHOST: Final[tuple[_Address, ...]] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_REVERSE: Final = (".in-addr.arpa", ".ip6.arpa")


class Answerer:
    """Makes the answer to one message, without I/O."""

    def __init__(self, outlet: Outlet, names: FakeAddresses, whose: Callable[[], str] = str) -> None:
        """Take who judges and is told, what gives addresses to names, and who knows which command asks."""
        self._outlet = outlet
        self._names = names
        self._whose = whose

    def answer(self, message: bytes, *, over_udp: bool) -> bytes:
        """Return what to send, nothing if the message is best ignored."""
        query = read_query(message)
        if isinstance(query, Rejected):
            return query.answer
        code, addresses = self._judged(query)
        return answer(query, code, addresses, time_to_live=TIME_TO_LIVE, over_udp=over_udp)

    def _judged(self, query: Query) -> tuple[Code, tuple[_Address, ...]]:
        name = query.name.lower()
        if name == "localhost" or name.endswith(".localhost"):
            return Code.NO_ERROR, _LOCALHOST
        decision = self._outlet.gate.decide_name(query.name)
        if decision.verdict is Verdict.DENY:
            if not name.endswith(_REVERSE):
                asked = decision.asked if decision.destination is None else str(decision.destination.host)
                self._outlet.tell(decision.but(asked=asked), self._whose())
            return Code.NO_SUCH_NAME, ()
        host = None if decision.destination is None else decision.destination.host
        if host is None or host.kind is not HostKind.NAME:
            return Code.NO_SUCH_NAME, ()
        address = self._names.assign(host)
        return (Code.FAILED, ()) if address is None else (Code.NO_ERROR, (address.ipv4, address.ipv6))


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._transport: asyncio.DatagramTransport | None = None
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own is none by its class.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[object, ...]) -> None:
        reply = self._answerer.answer(data, over_udp=True)
        # Programs that do not take their answers must not fill our memory with them.
        if reply and self._transport is not None and not self._full:
            self._transport.sendto(reply, address)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False


class NameServer:
    """Answers on any number of UDP sockets and listening TCP sockets, in one event loop."""

    def __init__(
        self,
        outlet: Outlet,
        names: FakeAddresses,
        *,
        whose: Callable[[], str] = str,
        limits: ProxyLimits | None = None,
        admissions: Admissions | None = None,
    ) -> None:
        """Take who judges and is told, what gives addresses to names, and who knows which command asks."""
        self._answerer = Answerer(outlet, names, whose)
        self._whose = whose
        self._service = Service(self._visited, limits, admissions)
        self._transports: list[asyncio.DatagramTransport] = []

    async def serve_udp(self, bound: socket.socket) -> None:
        """Answer datagrams from now on; the socket is the server's own, and closed with it."""
        bound.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Datagrams(self._answerer), sock=bound
        )
        self._transports.append(transport)

    async def serve_tcp(self, listener: socket.socket) -> None:
        """Take in connections from now on; the socket is the server's own, and closed with it."""
        self._service.listen(listener)

    async def close(self) -> None:
        """Answer no more, and leave nothing behind."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()
        await self._service.close()

    async def _visited(self, visit: Visit) -> None:
        frames = Frames()
        if visit.ticket.bind(self._whose()):
            return
        while not frames.broken:
            async with asyncio.timeout(visit.limits.handshake_seconds):
                data = await visit.stream.read()
            if not data:
                break
            for message in frames.receive(data):
                reply = self._answerer.answer(message, over_udp=False)
                if reply:
                    await visit.stream.write(frame(reply))
        await visit.finish()
