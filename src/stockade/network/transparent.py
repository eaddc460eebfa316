"""Connections of programs that know no proxy, carried to where they believe to be connected.

The network of a session leads every connection here. Where it was meant to go is an address that stands for a name
(``fake_address``), or a real one; that is judged as a proxy's request would be, the name is resolved outside, and the
bytes are joined.

Rules: a refusal is a connection that is reset at once. A name that the client gives itself must be the one that the
connection is for: the server name of TLS on any port (``screen``), the Host of each request on port 80. Where an
address was connected to there is no such name for TLS. The side that speaks first is passed on at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.network.forwarding import HttpConnection
from stockade.network.outlet import Closed
from stockade.network.service import Service
from stockade.policy.decision import Verdict

if TYPE_CHECKING:
    import socket

    from stockade.network.fake_address import FakeAddresses
    from stockade.network.limits import Admissions, ProxyLimits
    from stockade.network.outlet import Outlet
    from stockade.network.service import Visit

#: Returns the address and port that an accepted connection was made to; raises ``OSError`` if nobody knows.
Original: TypeAlias = Callable[["socket.socket"], tuple[str, int]]
#: Returns the id of the command that made an accepted connection, empty if nobody knows.
Whose: TypeAlias = Callable[["socket.socket"], str]

_HTTP_PORT: Final = 80


class TransparentProxy:
    """Serves on any number of listening sockets, in one event loop."""

    def __init__(
        self,
        outlet: Outlet,
        names: FakeAddresses,
        original: Original,
        *,
        whose: Whose = lambda _connection: "",
        limits: ProxyLimits | None = None,
        admissions: Admissions | None = None,
    ) -> None:
        """Take the way out, what addresses stand for, and who knows where a connection was meant to go."""
        self._outlet = outlet
        self._names = names
        self._original = original
        self._whose = whose
        self._service = Service(self._visited, limits, admissions)

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._service)

    async def serve(self, listener: socket.socket) -> None:
        """Take in connections from now on; the socket is the proxy's own, and closed with it."""
        self._service.listen(listener)

    async def close(self) -> None:
        """End every connection, and leave nothing behind."""
        await self._service.close()

    async def _visited(self, visit: Visit) -> None:
        address, port = self._original(visit.connection)
        name = self._names.hold(address)
        if name is not None:
            visit.when_over(lambda: self._names.release(address))
        command = self._whose(visit.connection)
        if visit.ticket.refused or visit.ticket.bind(command):
            visit.stream.reset()
            return
        await self._carry(visit, address if name is None else name.text, port, command)

    async def _carry(self, visit: Visit, host: str, port: int, command: str) -> None:
        caller = self._outlet.gate.caller(command)
        decision = await self._outlet.decide(caller, host, port)
        if decision.verdict is not Verdict.ALLOW or decision.destination is None:
            visit.stream.reset()
            return
        if port == _HTTP_PORT:
            deadline = asyncio.get_running_loop().time() + visit.limits.next_seconds
            connection = HttpConnection(visit, self._outlet, lambda _given: caller, decision.destination)
            await connection.serve(deadline)
            return
        opened = await self._outlet.open(caller, decision)
        if isinstance(opened, Closed):
            visit.stream.reset()
            return
        try:
            visit.join(opened.stream, self._outlet.screen(decision.destination, command))
        finally:
            opened.stream.abort()
