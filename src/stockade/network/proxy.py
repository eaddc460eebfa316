"""The proxy for programs that know proxies: HTTP and SOCKS 5 on the same listening sockets.

It is given sockets that listen already, which may have been made elsewhere: in the session's own network, to which this
process has no other way. Nothing that a client sends is trusted, and nothing that it sends can end more than its own
connection.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.network.client_connection import ClientConnection
from stockade.network.credentials import Entrance
from stockade.network.service import Service
from stockade.network.shortcut import Shortcuts

if TYPE_CHECKING:
    import socket

    from stockade.network.limits import Admissions, ProxyLimits
    from stockade.network.outlet import Outlet
    from stockade.network.service import Visit
    from stockade.policy.network_rules import NetworkRules


class Proxy:
    """Serves on any number of listening sockets, in one event loop."""

    def __init__(
        self,
        outlet: Outlet,
        entrance: Entrance | None = None,
        *,
        limits: ProxyLimits | None = None,
        admissions: Admissions | None = None,
    ) -> None:
        """Take the way out, and who knows whose connection it is; without, anybody's is served as nobody's."""
        self._outlet = outlet
        self._entrance = entrance or Entrance()
        self._service = Service(self._visited, limits, admissions, Shortcuts(outlet, self._entrance))

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._service)

    async def serve(self, listener: socket.socket) -> None:
        """Take in connections from now on; the socket is the proxy's own, and closed with it."""
        self._service.listen(listener)

    def update(self, rules: NetworkRules) -> None:
        """Use other rules from the next request on; tunnels that stand are left alone."""
        self._outlet.update(rules)

    async def close(self) -> None:
        """End every connection, and leave nothing behind."""
        self._outlet.close()
        await self._service.close()

    async def _visited(self, visit: Visit) -> None:
        await ClientConnection(visit, self._outlet, self._entrance).serve()
