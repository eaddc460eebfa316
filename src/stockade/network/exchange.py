"""One plain HTTP request and its answer, passed between a client and a server.

Both directions run at once, each no faster than the other side takes it: the body of the request in a task of its own,
the answer here. An answer may come, and be complete, before the request is.

Rules: a server that closed the connection on which it was asked before may not have seen the request; it is asked anew
on another connection if that can do no harm (a request without a body, by a method that changes nothing). If the answer
has begun when something breaks, the client's connection is reset, for no other sign of it is understood by all.
"""

from __future__ import annotations

import asyncio
from enum import Enum

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.network import http, origin, refusal
from stockade.network.http_message import BodyKind, Data, End, Request, Switched
from stockade.network.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stockade.network.http import HttpConversation
    from stockade.network.outlet import Opened
    from stockade.network.stream import Stream
    from stockade.policy.destination import Destination

_WORTH_POURING: Final = 1 << 16
_HARMLESS: Final = frozenset({b"GET", b"HEAD", b"OPTIONS"})


class Origin:
    """A connection to a server, with what was said on it."""

    def __init__(self, opened: Opened, destination: Destination) -> None:
        """Begin to speak HTTP on a connection."""
        upstream = opened.route.upstream
        self.opened = opened
        self.stream = opened.stream
        self.destination = destination
        self.used = False
        self.conversation = origin.OriginConversation(
            through_proxy=opened.asks_proxy,
            proxy_authorization=(upstream.authorization or b"") if upstream is not None else b"",
        )

    @property
    def reusable(self) -> bool:
        """Whether another request may go out on it."""
        return self.conversation.reusable and not self.stream.ended and not self.stream.lost


class Outcome(Enum):
    """How an exchange ended, if it did not fail."""

    ANSWERED = "the answer is complete"
    SWITCHED = "both sides go on with another protocol"
    UNSEEN = "the server had closed the connection before it saw the request"


Ending: TypeAlias = Outcome | Refusal


def has_body(request: Request) -> bool:
    """Say whether something follows the head of a request."""
    return request.body.kind is not BodyKind.NONE and (
        request.body.kind is not BodyKind.LENGTH or request.body.length > 0
    )


class Exchange:
    """One request on its way. ``parts`` gives the next part of its body as the client sends it."""

    def __init__(
        self,
        client: Stream,
        conversation: HttpConversation,
        parts: Callable[[], Awaitable[http.Event | None]],
        server: Origin,
    ) -> None:
        """Take both sides."""
        self.seen = -1
        self._client = client
        self._conversation = conversation
        self._parts = parts
        self._server = server
        self._broken: Refusal | None = None

    @property
    def moved(self) -> int:
        """How much has come from either side."""
        return self._client.moved + self._server.stream.moved

    def expire(self) -> None:
        """End it, for nothing has moved for too long."""
        if self._client.stalled:
            self._client.reset()
        else:
            self._broken = refusal.unreachable(self._server.destination, "nothing came for too long", timed_out=True)
            self._server.stream.abort()

    async def run(self, request: Request) -> Ending:
        """Pass the request on and the answer back."""
        server, before = self._server, self._server.stream.moved
        head = server.conversation.request(request, server.destination)
        upload: asyncio.Task[None] | None = None
        try:
            if has_body(request):
                await server.stream.write(head)
                upload = asyncio.create_task(self._upload())
            else:
                await server.stream.write(head + server.conversation.send(End()))
            return await self._download()
        except ConnectionError:
            if self._client.lost:
                raise
            if server.used and server.stream.moved == before and self._repeatable(request):
                return Outcome.UNSEEN
            return self._broken or refusal.unreachable(server.destination, "it closed the connection")
        finally:
            server.used = True
            if upload is not None:
                upload.cancel()
                await asyncio.gather(upload, return_exceptions=True)

    def _repeatable(self, request: Request) -> bool:
        return request.method in _HARMLESS and not has_body(request) and not request.upgrade and self._broken is None

    async def _upload(self) -> None:
        server = self._server
        while True:
            part = await self._parts()
            if not isinstance(part, Data | End):
                cut = refusal.bad_request("it ended in the middle of its body")
                self._broken = part.refusal if isinstance(part, http.Broken) else cut
                server.stream.abort()
                return
            try:
                await server.stream.write(server.conversation.send(part))
            except ConnectionError:
                return  # the server wants no more of it; it may have answered all the same
            if isinstance(part, End):
                return

    async def _download(self) -> Ending:
        server = self._server
        while True:
            data = await server.stream.read()
            events = server.conversation.receive(data) if data else server.conversation.receive_end()
            ending = await self._pass_on(events)
            if ending is not None:
                return ending
            if not data:
                message = "the connection ended"
                raise ConnectionResetError(message)
            ending = await self._pour()
            if ending is not None:
                return ending

    async def _pour(self) -> Ending | None:
        """Let the rest of a long body of known length go its way without us."""
        server = self._server
        left = 0 if server.stream.readable else server.conversation.left
        if left < _WORTH_POURING:
            return None
        poured = await server.stream.pour(self._client, left)
        if not poured:
            return None
        self._conversation.skip(poured)
        return await self._pass_on(server.conversation.skip(poured))

    async def _pass_on(self, events: tuple[origin.Event, ...]) -> Ending | None:
        ready: list[bytes] = []
        ending: Ending | None = None
        for event in events:
            if isinstance(event, origin.Broken):
                ending = self._flaw(event)
                break
            ready.append(self._conversation.send(event))
            if isinstance(event, End):
                ending = Outcome.ANSWERED
            elif isinstance(event, Switched):
                ending = Outcome.SWITCHED
        await self._client.write(b"".join(ready))
        return ending

    def _flaw(self, broken: origin.Broken) -> Refusal:
        """Return the refusal for a bad answer; an end without any answer is a connection that was lost."""
        if self._server.stream.ended and self._server.used:
            message = "the connection ended"
            raise ConnectionResetError(message)
        return refusal.bad_response(self._server.destination, broken.why)
