"""The proxy's side of one connection to a server (or to another proxy) that speaks HTTP/1, without I/O.

What the client's conversation heard goes in by ``request`` and ``send`` and comes out as bytes; the server's bytes go
in by ``receive`` and come out as what the client's conversation is to be told.

Rules: the Host of a request is the destination that was judged, whatever the client wrote. A response that cannot be
read in one way only is ``Broken`` and not passed on; one that was cut short is too, so that the client sees it cut
short. ``reusable`` says whether the connection can carry another request: never if the server said more than it should.

Source of truth: RFC 9110, RFC 9112.
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.network.http_body import BodyReader, BodyWriter, reader
from stockade.network.http_fields import offered_upgrade, passed_on, trailers_passed_on, words
from stockade.network.http_head import FlawError, HeadScanner, ResponseHead, read_response
from stockade.network.http_message import (
    NO_BODY,
    UNTIL_CLOSE,
    Body,
    BodyKind,
    Data,
    End,
    Headers,
    Interim,
    Request,
    Response,
    Switched,
)
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.destination import Destination

_HTTP_PORT: Final = 80
_SWITCHING: Final = 101
_LOWEST_FINAL: Final = 200
_NEVER_A_BODY: Final = frozenset({204, 304})
_MOST_INTERIM: Final = 32


class Broken(Value):
    """The server's answer cannot be read in one way only, or was cut short: close."""

    why: str


Event: TypeAlias = Interim | Response | Switched | Data | End | Broken


class _State(Enum):
    IDLE = "nothing was asked"
    HEAD = "an answer is due"
    BODY = "an answer is on its way"
    RAW = "the connection is no longer HTTP"
    OVER = "the connection is over"


class OriginConversation:
    """One connection to a server; to another proxy with ``through_proxy``, and its credentials if it wants any."""

    def __init__(self, *, through_proxy: bool = False, proxy_authorization: bytes = b"") -> None:
        self._through_proxy = through_proxy
        self._authorization = proxy_authorization
        self._state = _State.IDLE
        self._buffer = bytearray()
        self._scanner = HeadScanner()
        self._reader: BodyReader = reader(NO_BODY)
        self._writer: BodyWriter | None = None
        self._method = b""
        self._upgrade = b""
        self._interim = 0
        self._last = False

    @property
    def reusable(self) -> bool:
        """Whether another request may go out on this connection now."""
        return self._state is _State.IDLE and self._writer is None and not self._last and not self._buffer

    @property
    def left(self) -> int:
        """How many bytes of the answer's content are still to come and may go another way; 0 if unknown."""
        return self._reader.left if self._state is _State.BODY else 0

    def skip(self, size: int) -> tuple[Event, ...]:
        """Take note of content that went another way, no more than is ``left``."""
        events: list[Event] = []
        self._pass_on(self._reader.skip(size), events)
        return tuple(events)

    def request(self, request: Request, destination: Destination) -> bytes:
        """Return the bytes of a request to the destination that was judged."""
        if not self.reusable:
            message = f"no request can go out: {self._state.value}"
            raise RuntimeError(message)
        self._state = _State.HEAD
        self._method = request.method
        self._upgrade = request.upgrade
        self._writer = BodyWriter(request.body)
        self._interim = 0
        host = str(destination.host) if destination.port.number == _HTTP_PORT else str(destination)
        target = request.target
        if self._through_proxy:
            target = b"http://%b%b" % (host.encode("ascii"), b"" if target == b"*" else target)
        headers = ((b"Host", host.encode("ascii")), *request.headers, *self._of_this_connection(request))
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method, target, lines)

    def send(self, part: Data | End) -> bytes:
        """Return the bytes of a part of the request's body; none once the server has hung up on it."""
        if self._writer is None:
            return b""
        if isinstance(part, Data):
            return self._writer.data(part.data)
        data = self._writer.end(part.trailers)
        self._writer = None
        return data

    def receive(self, data: bytes) -> tuple[Event, ...]:
        """Take bytes of the server."""
        events: list[Event] = []
        try:
            match self._state:
                case _State.BODY:
                    self._read_body(data, events)
                case _State.HEAD:
                    self._buffer += data
                    self._read_heads(events)
                case _State.IDLE if data:
                    self._last = True  # said without being asked: whatever it is, it is nobody's answer
                case _State.RAW:
                    self._buffer += data
                case _:
                    pass
        except FlawError as error:
            self._break(error.why, events)
        return tuple(events)

    def receive_end(self) -> tuple[Event, ...]:
        """Take the end of what the server sends."""
        events: list[Event] = []
        self._last = True
        try:
            if self._state is _State.BODY:
                self._pass_on(self._reader.close(), events)
            elif self._state is _State.HEAD:
                self._break("it closed the connection before it had answered", events)
        except FlawError as error:
            self._break(error.why, events)
        return tuple(events)

    def rest(self) -> bytes:
        """Return what the server has sent already of the protocol it switched to, and forget it."""
        if self._state is not _State.RAW:
            return b""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _of_this_connection(self, request: Request) -> Headers:
        options = [b"Upgrade"] if request.upgrade else []
        headers: list[tuple[bytes, bytes]] = []
        if request.upgrade:
            headers.append((b"Upgrade", request.upgrade))
        if any(name == b"te" for name, _ in request.headers):
            options.append(b"TE")
        if options:
            headers.append((b"Connection", b", ".join(options)))
        if request.body.kind is BodyKind.CHUNKED:
            headers.append((b"Transfer-Encoding", b"chunked"))
        elif request.body.kind is BodyKind.LENGTH:
            headers.append((b"Content-Length", b"%d" % request.body.length))
        if self._through_proxy and self._authorization:
            headers.append((b"Proxy-Authorization", self._authorization))
        return tuple(headers)

    def _read_heads(self, events: list[Event]) -> None:
        while self._state is _State.HEAD and (size := self._scanner.find_end(self._buffer)):
            head = read_response(bytes(self._buffer[:size]))
            del self._buffer[:size]
            if head.status == _SWITCHING:
                self._switch(head, events)
            elif head.status < _LOWEST_FINAL:
                self._add_interim(head, events)
            else:
                self._begin(head, events)

    def _switch(self, head: ResponseHead, events: list[Event]) -> None:
        upgrade = offered_upgrade(head.headers)
        if not self._upgrade or upgrade != self._upgrade or self._writer is not None:
            message = "it switched to a protocol that was not offered"
            raise FlawError(message)
        self._state = _State.RAW
        events.append(Switched(head.reason, passed_on(head.headers), upgrade))

    def _add_interim(self, head: ResponseHead, events: list[Event]) -> None:
        self._interim += 1
        if head.body is not None or self._interim > _MOST_INTERIM:
            message = "it gave a malformed interim answer, or too many"
            raise FlawError(message)
        events.append(Interim(head.status, head.reason, passed_on(head.headers)))

    def _begin(self, head: ResponseHead, events: list[Event]) -> None:
        old = head.version == b"1.0"
        self._last = self._last or old or b"close" in words(head.headers, b"connection")
        empty = self._method == b"HEAD" or head.status in _NEVER_A_BODY
        body: Body = head.body or (NO_BODY if empty else UNTIL_CLOSE)
        events.append(Response(head.status, head.reason, passed_on(head.headers), body, empty))
        self._reader = reader(NO_BODY if empty else body)
        self._last = self._last or (not empty and body is UNTIL_CLOSE)
        self._state = _State.BODY
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._read_body(rest, events)

    def _read_body(self, data: bytes, events: list[Event]) -> None:
        parts, rest = self._reader.read(data)
        self._pass_on(parts, events)
        self._last = self._last or bool(rest)

    def _pass_on(self, parts: list[Data | End], events: list[Event]) -> None:
        for part in parts:
            if isinstance(part, Data):
                events.append(part)
            else:
                self._state = _State.IDLE
                events.append(End(trailers_passed_on(part.trailers)))

    def _break(self, why: str, events: list[Event]) -> None:
        self._state = _State.OVER
        self._buffer.clear()
        events.append(Broken(why))
