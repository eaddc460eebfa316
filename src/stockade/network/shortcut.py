"""Tunnels that need nothing to be waited for: what the first bytes of a connection ask for, judged at once.

Most tunnels are alike: a plain CONNECT that comes in one piece, by a command that is known, to a place that a rule
allows and whose only address is known. Such a one is served without a task (see ``arrival``). Everything else is
no shortcut: ``None`` says nothing about it, and whoever serves it begins anew with the same bytes.

Rules: nothing is decided here. Whose connection it is, how many there may be, and where it may lead is asked of those
who are asked for every other connection, each time anew. Only what a head means is remembered, for it means the same
whenever it comes.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network.http import HttpConversation, TunnelAccepted
from stockade.network.http_message import TunnelRequested
from stockade.network.outlet import Closed

if TYPE_CHECKING:
    import socket

    from stockade.network.credentials import Entrance
    from stockade.network.failure import Failure
    from stockade.network.limits import Ticket
    from stockade.network.outlet import Outlet
    from stockade.network.route import Route
    from stockade.network.screen import Screen
    from stockade.network.service import Visit

_CONNECT: Final = b"CONNECT "
_END: Final = b"\r\n\r\n"
_LONGEST_KEPT: Final = 2048
_KEPT: Final = 256


class Shortcut:
    """A tunnel that may be made: its only way, what the client is answered, and what it has sent for the server.

    ``screen`` stands before it, if it leads to a name.
    """

    __slots__ = ("answer", "rest", "route", "screen")

    def __init__(self, route: Route, answer: bytes, rest: bytes, screen: Screen | None = None) -> None:
        """Keep them."""
        self.route = route
        self.screen = screen
        self.answer = answer
        self.rest = rest


class Shortcuts:
    """Finds them for one proxy."""

    def __init__(self, outlet: Outlet, entrance: Entrance) -> None:
        """Take the way out, and who knows whose connection it is."""
        self._outlet = outlet
        self._entrance = entrance
        self._heads: dict[bytes, tuple[TunnelRequested, bytes]] = {}

    def find(self, data: bytes, ticket: Ticket) -> Shortcut | None:
        """Return the tunnel that the first bytes of a connection ask for, counted for its command."""
        end = data.find(_END) + len(_END)
        if end < len(_END) or ticket.refused or not data.startswith(_CONNECT):
            return None
        head, rest = (data, b"") if end == len(data) else (data[:end], data[end:])
        read = self._heads.get(head) or self._read(head)
        if read is None:
            return None
        request, answer = read
        command = self._entrance.command_of(request.credentials)
        if command is None or ticket.bind(command):
            return None
        route = self._outlet.direct(request.host_text, request.port_text)
        if route is None:
            return None
        return Shortcut(route, answer, rest, self._outlet.screen(route.destination, command))

    async def finish(self, visit: Visit, shortcut: Shortcut, begun: socket.socket | Failure) -> None:
        """Go on with one whose server does not answer at once, or not at all."""
        outcome = await self._outlet.complete(shortcut.route, begun)
        if isinstance(outcome, Closed):
            await visit.stream.write(outcome.refusal.render())
            await visit.finish()
            return
        try:
            await visit.stream.write(shortcut.answer)
            visit.stream.put_back(shortcut.rest)
            visit.join(outcome.stream, shortcut.screen)
        finally:
            outcome.stream.abort()

    def _read(self, head: bytes) -> tuple[TunnelRequested, bytes] | None:
        conversation = HttpConversation()
        events = conversation.receive(head)
        if len(events) != 1 or not isinstance(events[0], TunnelRequested):
            return None
        read = events[0], conversation.send(TunnelAccepted())
        if len(head) <= _LONGEST_KEPT:
            if len(self._heads) >= _KEPT:
                self._heads.clear()
            self._heads[head] = read
        return read
