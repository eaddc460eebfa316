"""The proxy's side of one client connection that speaks HTTP/1, as a conversation without I/O.

Bytes go in by ``receive`` and come out as events; the caller's answers go in by ``send`` and come out as bytes. Each
request is an event of its own with its own host, port and credentials, and waits for its own answer: whatever was
decided about the one before says nothing about it. Requests that a client sends ahead are read one after the other.

A caller reads while ``wants_bytes``, answers each ``TunnelRequested`` and ``Request``, and after a response has ended
calls ``receive(b"")`` for what had come meanwhile. ``over`` says that the connection is to be closed once all is
written. After ``TunnelAccepted`` or ``Switched`` the bytes are no longer HTTP: those that are here already are in
``rest``. Whatever cannot be read in one way only is ``Broken``, with the refusal to send; time limits are the caller's.

With ``server`` the conversation is that of a client which does not know of the proxy and believes to speak to that
destination: requests name a path alone, and their Host must be the one that the connection is for.

Source of truth: RFC 9110, RFC 9112.
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.http_body import BodyReader, BodyWriter, reader
from stockade.network.http_fields import (
    offered_upgrade,
    passed_on,
    proxy_credentials,
    takes_any_answer,
    trailers_passed_on,
    words,
)
from stockade.network.http_head import FlawError, HeadScanner, RequestHead, read_request
from stockade.network.http_message import (
    CHUNKED,
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
    TunnelRequested,
)
from stockade.network.http_target import read_absolute, read_connect, read_path
from stockade.network.refusal import Cause, Refusal
from stockade.policy.host import Host
from stockade.policy.port import split_port
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.destination import Destination

LARGEST_REST: Final = 1 << 20
_ENOUGH_REST: Final = 1 << 16
_NO_CONTENT: Final = 204


class Broken(Value):
    """The client sent what cannot be read in one way only: send ``Refuse(refusal)``, then close."""

    refusal: Refusal


class Refuse(Value):
    """There will be no answer from the other side; close once this is written."""

    refusal: Refusal


class TunnelAccepted(Value):
    """The connection that CONNECT asked for stands."""


Event: TypeAlias = TunnelRequested | Request | Data | End | Broken
Command: TypeAlias = Refuse | TunnelAccepted | Interim | Response | Data | End | Switched


class _Asking(Enum):
    HEAD = "no request is there yet"
    BODY = "the body of a request is on its way"
    DONE = "a request is there"
    TUNNEL = "a tunnel was asked for"
    BROKEN = "the request is broken"


class _Answering(Enum):
    HEAD = "no answer has begun"
    BODY = "an answer is on its way"
    RAW = "the connection is a tunnel"
    OVER = "the connection is over"


class HttpConversation:
    """One client connection."""

    def __init__(self, *, server: Destination | None = None) -> None:
        self._server = server
        self._buffer = bytearray()
        self._scanner = HeadScanner()
        self._asking = _Asking.HEAD
        self._answering = _Answering.HEAD
        self._reader: BodyReader = reader(NO_BODY)
        self._writer = BodyWriter(NO_BODY)
        self._method = b""
        self._takes_any_answer = False
        self._old = False
        self._upgrade = b""
        self._last = False

    @property
    def wants_bytes(self) -> bool:
        """Whether to go on reading from the client."""
        return self._asking in {_Asking.HEAD, _Asking.BODY} or len(self._buffer) < _ENOUGH_REST

    @property
    def over(self) -> bool:
        """Whether the connection is to be closed."""
        return self._answering is _Answering.OVER

    def receive(self, data: bytes) -> tuple[Event, ...]:
        """Take bytes of the client; ``b""`` only goes on with what is there."""
        if self.over or self._asking is _Asking.BROKEN:
            return ()
        events: list[Event] = []
        try:
            if self._asking is _Asking.BODY:
                self._read_body(data, events)
            else:
                self._buffer += data
                if self._asking is _Asking.HEAD:
                    self._read_head(events)
            self._check_rest()
        except FlawError as error:
            self._break(error, events)
        return tuple(events)

    def receive_end(self) -> tuple[Event, ...]:
        """Take the end of what the client sends; an answer that is due can still be given."""
        self._last = True
        events: list[Event] = []
        try:
            if self._asking is _Asking.BODY:
                self._reader.close()
            elif self._asking is _Asking.HEAD:
                self._end_head()
        except FlawError as error:
            self._break(error, events)
        return tuple(events)

    def send(self, command: Command) -> bytes:
        """Take a word of the caller, or what the other side has said; return the bytes to write."""
        if isinstance(command, Refuse):
            return self._refuse(command.refusal)
        if isinstance(command, Data | End):
            self._expect(command, self._answering is _Answering.BODY)
            return self._writer.data(command.data) if isinstance(command, Data) else self._finish(command)
        self._expect(command, self._answering is _Answering.HEAD and self._may_answer(command))
        match command:
            case TunnelAccepted():
                self._answering = _Answering.RAW
                return b"HTTP/1.1 200 Connection established\r\n\r\n"
            case Switched():
                self._answering = _Answering.RAW
                headers = ((b"Connection", b"Upgrade"), (b"Upgrade", command.upgrade), *command.headers)
                return _head(101, command.reason, headers)
            case Interim():
                return b"" if self._old else _head(command.status, command.reason, command.headers)
            case Response():
                return self._respond(command)

    def skip(self, size: int) -> None:
        """Take note of content of an answer of known length that went to the client another way."""
        self._writer.skip(size)

    def rest(self) -> bytes:
        """Return what the client has sent for the tunnel already, and forget it."""
        if self._answering is not _Answering.RAW:
            return b""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    # Reading

    def _end_head(self) -> None:
        if self._buffer:
            message = "it ended in the middle of its head"
            raise FlawError(message)
        self._answering = _Answering.OVER

    def _read_head(self, events: list[Event]) -> None:
        size = self._scanner.find_end(self._buffer)
        if not size:
            return
        head = read_request(bytes(self._buffer[:size]))
        self._method = head.method
        self._takes_any_answer = head.method != b"CONNECT" and takes_any_answer(head.headers)
        self._old = head.version == b"1.0"
        closing = words(head.headers, b"connection") | words(head.headers, b"proxy-connection")
        self._last = self._last or self._old or b"close" in closing
        if head.method == b"CONNECT":
            del self._buffer[:size]
            events.append(self._tunnel(head))
            return
        events.append(self._request(head))
        rest = bytes(self._buffer[size:])
        self._buffer.clear()
        self._read_body(rest, events)

    def _tunnel(self, head: RequestHead) -> TunnelRequested:
        if self._server is not None:
            message = "it asks a server for a tunnel, as if that were a proxy"
            raise FlawError(message)
        if head.body not in {NO_BODY, Body(BodyKind.LENGTH, 0)}:
            message = "CONNECT has no body"
            raise FlawError(message)
        target = read_connect(head.target)
        self._asking = _Asking.TUNNEL
        return TunnelRequested(target.host_text, target.port_text, proxy_credentials(head.headers))

    def _request(self, head: RequestHead) -> Request:
        if self._server is None:
            target = read_absolute(head.method, head.target)
            host_text, port_text, path = target.host_text, target.port_text, target.path
        else:
            path = read_path(head.target)
            _check_host(head.headers, self._server)
            host_text, port_text = self._server.host.text, str(self._server.port)
        has_body = head.body not in {NO_BODY, Body(BodyKind.LENGTH, 0)}
        self._upgrade = b"" if self._old or has_body or head.method != b"GET" else offered_upgrade(head.headers)
        request = Request(
            head.method,
            host_text,
            port_text,
            path,
            _with_expectation(passed_on(head.headers), wanted=has_body and not self._old),
            head.body,
            proxy_credentials(head.headers),
            self._upgrade,
        )
        self._reader = reader(head.body)
        self._asking = _Asking.BODY
        return request

    def _read_body(self, data: bytes, events: list[Event]) -> None:
        parts, rest = self._reader.read(data)
        events += [End(trailers_passed_on(part.trailers)) if isinstance(part, End) else part for part in parts]
        if parts and isinstance(parts[-1], End):
            self._asking = _Asking.DONE
            self._buffer += rest

    def _check_rest(self) -> None:
        if len(self._buffer) > LARGEST_REST:
            message = "too much came behind a request that was not answered yet"
            raise FlawError(message)

    def _break(self, error: FlawError, events: list[Event]) -> None:
        self._asking = _Asking.BROKEN
        self._buffer.clear()
        events.append(Broken(error.refusal))

    # Writing

    def _may_answer(self, command: Command) -> bool:
        if isinstance(command, TunnelAccepted):
            return self._asking is _Asking.TUNNEL
        if isinstance(command, Switched):
            return self._asking is _Asking.DONE and bool(self._upgrade)
        return self._asking in {_Asking.BODY, _Asking.DONE}

    def _expect(self, command: Command, fits: object) -> None:
        if not fits:
            message = f"{type(command).__name__} does not fit: {self._asking.value}, and {self._answering.value}"
            raise RuntimeError(message)

    def _refuse(self, refusal: Refusal) -> bytes:
        begun = self._answering is not _Answering.HEAD
        self._answering = _Answering.OVER
        self._buffer.clear()
        # Inside an answer that has begun, another one would be taken for its content: it can only be cut off.
        return b"" if begun else refusal.render(with_body=self._method != b"HEAD", cut_short=self._takes_any_answer)

    def _respond(self, response: Response) -> bytes:
        # A client that still sends when it is answered may stop or go on: nobody knows where its next request begins.
        self._last = self._last or self._asking is _Asking.BODY
        body = response.body
        if body.kind in {BodyKind.CHUNKED, BodyKind.UNTIL_CLOSE}:
            body = UNTIL_CLOSE if self._old else CHUNKED
        empty = response.empty or self._method == b"HEAD"
        self._writer = BodyWriter(NO_BODY if empty else body)
        self._answering = _Answering.BODY
        framing: Headers = ()
        if body.kind is BodyKind.LENGTH and response.status != _NO_CONTENT:
            framing = ((b"Content-Length", b"%d" % body.length),)
        elif body.kind is BodyKind.CHUNKED and not empty:
            framing = ((b"Transfer-Encoding", b"chunked"),)
        closing: Headers = ((b"Connection", b"close"),) if self._last else ()
        return _head(response.status, response.reason, (*response.headers, *framing, *closing))

    def _finish(self, end: End) -> bytes:
        data = self._writer.end(end.trailers)
        if self._last or self._asking is not _Asking.DONE:
            self._answering = _Answering.OVER
            self._buffer.clear()
        else:
            self._answering = _Answering.HEAD
            self._asking = _Asking.HEAD
            self._scanner = HeadScanner()
        return data


def _head(status: int, reason: bytes, headers: Headers) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, reason, lines)


def _with_expectation(headers: Headers, *, wanted: bool) -> Headers:
    """Keep ``Expect: 100-continue`` where it makes sense; any other expectation is refused."""
    expected = words(headers, b"expect")
    if expected - {b"100-continue"}:
        message = "it expects something other than 100-continue"
        raise FlawError(message, status=417, cause=Cause.UNSUPPORTED, phrase="Expectation Failed")
    return headers if wanted else tuple(header for header in headers if header[0] != b"expect")


def _check_host(headers: Headers, server: Destination) -> None:
    """Refuse a request whose Host is not the one that the connection was judged by."""
    text = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
    if not text:
        return
    try:
        # Some clients leave the port out where it is not 80 either; what counts is the host.
        named = Host.parse(split_port(text)[0])
    except InvalidTextError:
        named = None
    if named != server.host:
        message = f'its Host is "{escape(text)}", but the connection is to {server}'
        hint = "Connect to the host that the request is for."
        raise FlawError(message, hint, status=403, cause=Cause.OTHER_HOST, phrase="Blocked by Stockade")
