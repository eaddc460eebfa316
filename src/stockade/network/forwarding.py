"""A client connection that speaks HTTP: each request is judged, and passed on over a connection to its server.

Rules: whatever was decided about a request says nothing about the next one on the same connection. The connection to
the server is kept for the next request only if that is for the same destination, and if the rules that hold then allow
the address that it leads to. A refusal ends the client's connection, once it has had the time to read it. Time limits:
one for the first request, a longer one for each that follows; while a request is judged or answered, only silence of
both sides is limited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from stockade.annotation import TYPE_CHECKING, TypeAlias
from stockade.network import refusal
from stockade.network.exchange import Exchange, Origin, Outcome, has_body
from stockade.network.gate import Caller
from stockade.network.http import Broken, Event, HttpConversation, Refuse, TunnelAccepted
from stockade.network.http_message import Credentials, Request, TunnelRequested
from stockade.network.outlet import Closed, other_name, refusal_of
from stockade.network.refusal import Cause, Refusal
from stockade.policy.decision import Verdict

if TYPE_CHECKING:
    from stockade.network.exchange import Ending
    from stockade.network.outlet import Outlet
    from stockade.network.service import Visit
    from stockade.policy.decision import NetworkDecision
    from stockade.policy.destination import Destination

#: Says whose request it is, or why it is not served.
Identify: TypeAlias = Callable[["Credentials | None"], "Caller | Refusal"]


class HttpConnection:
    """One client connection."""

    def __init__(self, visit: Visit, outlet: Outlet, identify: Identify, server: Destination | None = None) -> None:
        """Take the connection; with ``server``, it is one that the client believes to be with that server."""
        self._visit = visit
        self._client = visit.stream
        self._outlet = outlet
        self._identify = identify
        self._server = server
        self._conversation = HttpConversation(server=server)
        self._events: deque[Event] = deque()
        self._origin: Origin | None = None
        self._deadline: float | None = None
        self._answered = False

    async def serve(self, deadline: float) -> None:
        """Serve request after request, the first of which must be there by a point in time; then close."""
        loop = asyncio.get_running_loop()
        self._deadline = deadline
        try:
            while (event := await self._next()) is not None:
                self._deadline = None
                await self._handle(event)
                if self._client.given or self._client.lost:
                    return
                self._answered = True
                self._deadline = loop.time() + self._visit.limits.next_seconds
                self._events.extend(self._conversation.receive(b""))
        except TimeoutError:
            if not self._answered:
                await self._refuse(_late())
        finally:
            self._drop_origin()
        await self._visit.finish()

    async def _next(self) -> Event | None:
        """Return what the client says next; ``None`` once it has no more to say."""
        ended = False
        while not ended and not self._events and not self._conversation.over:
            await self._client.wait(self._deadline)
            data = await self._client.read()
            ended = not data
            self._events.extend(self._conversation.receive(data) if data else self._conversation.receive_end())
        return self._events.popleft() if self._events and not self._conversation.over else None

    async def _handle(self, event: Event) -> None:
        if isinstance(event, Broken):
            if event.refusal.cause is Cause.OTHER_HOST and self._server is not None:
                self._outlet.tell(other_name(self._server, event.refusal.phrase), self._command())
            await self._refuse(event.refusal)
            return
        if not isinstance(event, Request | TunnelRequested):
            return  # the rest of a body that nobody wants any more
        caller = self._identify(event.credentials)
        if isinstance(caller, Refusal):
            await self._refuse(caller)
            return
        decision = await self._outlet.decide(caller, event.host_text, event.port_text)
        if decision.verdict is not Verdict.ALLOW:
            await self._refuse(refusal_of(decision))
        elif isinstance(event, TunnelRequested):
            await self._tunnel(caller, decision)
        else:
            await self._forward(event, caller, decision)

    def _command(self) -> str:
        caller = self._identify(None)
        return caller.command if isinstance(caller, Caller) else ""

    async def _refuse(self, words: Refusal) -> None:
        data = self._conversation.send(Refuse(words))
        if data:
            await self._client.write(data)
        else:
            self._client.reset()

    async def _tunnel(self, caller: Caller, decision: NetworkDecision) -> None:
        opened = await self._outlet.open(caller, decision)
        if isinstance(opened, Closed):
            await self._refuse(opened.refusal)
            return
        try:
            await self._client.write(self._conversation.send(TunnelAccepted()))
            self._client.put_back(self._conversation.rest())
            self._visit.join(opened.stream, self._outlet.screen(decision.destination, caller.command))
        finally:
            opened.stream.abort()

    async def _forward(self, request: Request, caller: Caller, decision: NetworkDecision) -> None:
        if not has_body(request):
            await self._next()  # the end of the request, which is there already
        while True:
            server = await self._origin_for(caller, decision)
            if isinstance(server, Closed):
                await self._refuse(server.refusal)
                return
            ending = await self._exchange(request, server)
            if ending is not Outcome.UNSEEN:
                await self._conclude(ending, server, caller.command)
                return

    async def _exchange(self, request: Request, server: Origin) -> Ending:
        exchange = Exchange(self._client, self._conversation, self._next, server)
        unwatch = self._visit.watch(exchange)
        try:
            return await exchange.run(request)
        finally:
            unwatch()

    async def _conclude(self, ending: Ending, server: Origin, command: str) -> None:
        if isinstance(ending, Refusal):
            self._drop_origin()
            await self._refuse(ending)
        elif ending is Outcome.SWITCHED:
            await self._client.write(server.conversation.rest())
            self._client.put_back(self._conversation.rest())
            self._visit.join(server.stream, self._outlet.screen(server.destination, command))

    async def _origin_for(self, caller: Caller, decision: NetworkDecision) -> Origin | Closed:
        """Return the connection on which to ask a server: the one that stands, if it fits, or a new one."""
        kept = self._origin
        if kept is not None:
            same = kept.destination == decision.destination
            if same and kept.reusable and self._outlet.still_allows(decision, kept.opened):
                return kept
            self._drop_origin()
        opened = await self._outlet.open(caller, decision, plain=True)
        if isinstance(opened, Closed):
            return opened
        assert decision.destination is not None  # noqa: S101 - it was dialled
        self._origin = Origin(opened, decision.destination)
        return self._origin

    def _drop_origin(self) -> None:
        if self._origin is not None:
            self._origin.stream.abort()
            self._origin = None


def _late() -> Refusal:
    why = "its first request did not come in time"
    return refusal.bad_request(why, status=408, cause=Cause.TIMED_OUT, phrase="Request Timeout")
