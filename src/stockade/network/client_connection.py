"""A connection to the proxy, whichever protocol it speaks: its first byte tells.

5 is SOCKS 5; 4 is SOCKS 4, which has neither names nor passwords and is cut off; 22 is TLS, which is told in plain
words that this proxy speaks without it; all else is HTTP, or is refused as a bad request.

Rules: the first request must be there within the time limit, however slowly it comes. A connection counts for its
command as soon as it is known.
"""

from __future__ import annotations

from collections import deque

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network import refusal, socks
from stockade.network.failure import Failure
from stockade.network.forwarding import HttpConnection
from stockade.network.http_message import Credentials
from stockade.network.outlet import Closed, refusal_of
from stockade.network.refusal import Refusal
from stockade.network.socks import ConnectRequested, Reply, SocksConversation
from stockade.policy.decision import Verdict

if TYPE_CHECKING:
    from stockade.network.credentials import Entrance
    from stockade.network.gate import Caller
    from stockade.network.outlet import Outcome, Outlet
    from stockade.network.service import Visit
    from stockade.network.stream import Stream
    from stockade.policy.destination import Destination

_SOCKS: Final = (4, 5)
_TLS: Final = 22
_REPLIES: Final = {
    None: Reply.NOT_ALLOWED,
    Failure.NO_SUCH_NAME: Reply.HOST_UNREACHABLE,
    Failure.NAME_FAILED: Reply.HOST_UNREACHABLE,
    Failure.REFUSED: Reply.CONNECTION_REFUSED,
    Failure.UNREACHABLE: Reply.NETWORK_UNREACHABLE,
    Failure.TIMED_OUT: Reply.HOST_UNREACHABLE,
}


class ClientConnection:
    """One connection."""

    def __init__(self, visit: Visit, outlet: Outlet, entrance: Entrance) -> None:
        """Take the connection, the way out, and who knows whose it is."""
        self._visit = visit
        self._stream = visit.stream
        self._outlet = outlet
        self._entrance = entrance
        self._caller: Caller | None = None
        self._given: Credentials | None = None
        self._deadline = visit.deadline

    async def serve(self) -> None:
        """Serve it until it is over, or a tunnel."""
        first = await self._read()
        if not first:
            return
        if first[0] in _SOCKS:
            await self._serve_socks(first)
        elif first[0] == _TLS:
            await self._stream.write(_tls().render())
            await self._visit.finish()
        else:
            self._stream.put_back(first)
            await HttpConnection(self._visit, self._outlet, self._identify).serve(self._deadline)

    async def _read(self) -> bytes:
        await self._stream.wait(self._deadline)
        return await self._stream.read()

    def _identify(self, given: Credentials | None) -> Caller | Refusal:
        if self._visit.ticket.refused:
            return refusal.overloaded(self._visit.ticket.refused)
        command = self._entrance.command_of(given)
        if command is None:
            return refusal.unauthenticated()
        full = self._visit.ticket.bind(command)
        if full:
            return refusal.overloaded(full)
        if self._caller is None or self._caller.command != command:
            self._caller = self._outlet.gate.caller(command)
        return self._caller

    async def _serve_socks(self, first: bytes) -> None:
        conversation = SocksConversation(must_authenticate=self._entrance.must_authenticate)
        request = await self._socks_request(conversation, first)
        if request is not None:
            outcome, destination = await self._open(request)
            if not isinstance(outcome, Closed):
                await self._socks_tunnel(conversation, outcome.stream, destination)
                return
            reply = _REPLIES.get(outcome.failure, Reply.FAILED)
            await self._stream.write(conversation.send(socks.Refuse(reply)))
        await self._visit.finish()

    async def _socks_tunnel(
        self, conversation: SocksConversation, server: Stream, destination: Destination | None
    ) -> None:
        command = "" if self._caller is None else self._caller.command
        try:
            await self._stream.write(conversation.send(socks.Connected()))
            self._stream.put_back(conversation.rest())
            self._visit.join(server, self._outlet.screen(destination, command))
        finally:
            server.abort()

    async def _socks_request(self, conversation: SocksConversation, first: bytes) -> ConnectRequested | None:
        """Return what the client wants, once it has said who it is; ``None`` if it is not to be served."""
        events = deque(conversation.receive(first))
        while True:
            if not events:
                data = b"" if conversation.over else await self._read()
                if not data:
                    return None
                events.extend(conversation.receive(data))
                continue
            event = events.popleft()
            if isinstance(event, ConnectRequested):
                return event
            if isinstance(event, socks.Output):
                await self._stream.write(event.data)
            elif isinstance(event, socks.Authenticate):
                self._given = Credentials(event.username, event.password)
                known = self._entrance.command_of(self._given) is not None
                answer = socks.Authenticated() if known else socks.NotAuthenticated()
                await self._stream.write(conversation.send(answer))
                events.extend(conversation.receive(b""))

    async def _open(self, request: ConnectRequested) -> tuple[Outcome, Destination | None]:
        caller = self._identify(self._given)
        if isinstance(caller, Refusal):
            return Closed(caller, Failure.BUSY), None
        decision = await self._outlet.decide(caller, request.host_text, request.port)
        if decision.verdict is not Verdict.ALLOW:
            return Closed(refusal_of(decision)), None
        return await self._outlet.open(caller, decision), decision.destination


def _tls() -> Refusal:
    hint = "Write http:// before the proxy's address, also in HTTPS_PROXY."
    return refusal.bad_request("it begins with TLS, which this proxy is spoken to without", hint)
