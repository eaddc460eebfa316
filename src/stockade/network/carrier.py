"""Connections carried to a place that is known before they come: a port of the host, or one inside.

Rules: bytes are joined and not looked at. Where there is nobody to connect to, or may not be, the connection is reset,
unless there are words for whoever made it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from stockade.annotation import TYPE_CHECKING, TypeAlias
from stockade.network.failure import ConnectError
from stockade.network.service import Service

if TYPE_CHECKING:
    import socket

    from stockade.network.limits import Admissions, ProxyLimits
    from stockade.network.service import Visit
    from stockade.network.stream import Stream

#: Connects to where a visit leads; ``None`` if it may not. Raises ``ConnectError`` or ``OSError`` if it cannot.
Reach: TypeAlias = Callable[["Visit"], Awaitable["Stream | None"]]


class Carrier:
    """Serves on any number of listening sockets, in one event loop."""

    def __init__(
        self,
        reach: Reach,
        *,
        limits: ProxyLimits | None = None,
        admissions: Admissions | None = None,
        words: bytes = b"",
    ) -> None:
        """Take how the place is reached, and what is said where it cannot be."""
        self._reach = reach
        self._words = words
        self._service = Service(self._visited, limits, admissions)

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._service)

    async def serve(self, listener: socket.socket) -> None:
        """Take in connections from now on; the socket is the carrier's own, and closed with it."""
        self._service.listen(listener)

    async def close(self) -> None:
        """End every connection, and leave nothing behind."""
        await self._service.close()

    async def _visited(self, visit: Visit) -> None:
        server = None if visit.ticket.refused else await self._reached(visit)
        if server is None and self._words:
            await visit.stream.write(self._words)
            await visit.finish()
            return
        if server is None:
            visit.stream.reset()
            return
        try:
            visit.join(server)
        finally:
            server.abort()

    async def _reached(self, visit: Visit) -> Stream | None:
        try:
            return await self._reach(visit)
        except (ConnectError, OSError):
            return None
