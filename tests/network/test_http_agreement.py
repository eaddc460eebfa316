"""Whatever two readers of HTTP read differently, we refuse.

The other readers are h11; llhttp, the parser of Node, once as it is and once with all its leniencies; and http.client
of the standard library, which is careless. Each may refuse what we take (Node knows only some methods), but where it
takes it, it must find the same request: the same method, target, headers, content, and the same bytes left for the
next one. What we write must be taken by all, and mean to them what we meant.
"""

from __future__ import annotations

import http.client
import io
from itertools import product
from typing import TYPE_CHECKING, cast

import h11
import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.network.http import Broken, HttpConversation
from stockade.network.http_body import reader
from stockade.network.http_head import FlawError, HeadScanner, read_request, read_response
from stockade.network.http_message import Data, End, Headers, Request
from stockade.network.origin import OriginConversation
from stockade.policy.destination import Destination
from stockade.value import Value

if TYPE_CHECKING:
    import socket


class Message(Value):
    method: bytes
    target: bytes
    headers: frozenset[tuple[bytes, bytes]]
    content: bytes
    rest: bytes


class Incomplete(Value):
    """The bytes are the beginning of a message, perhaps."""


class Refused(Value):
    """The bytes are no message."""


Outcome = Message | Incomplete | Refused


def comparable(headers: Headers) -> frozenset[tuple[bytes, bytes]]:
    """Forget case where it has no meaning, and blanks around values."""
    lowered = ((name.lower(), value.strip(b" \t")) for name, value in headers)
    return frozenset((name, value.lower() if name == b"transfer-encoding" else value) for name, value in lowered)


def ours(data: bytes) -> Outcome:
    buffer = bytearray(data)
    try:
        size = HeadScanner().find_end(buffer)
        if not size:
            return Incomplete()
        head = read_request(data[:size])
        parts, rest = reader(head.body).read(data[size:])
    except FlawError:
        return Refused()
    if not parts or not isinstance(parts[-1], End):
        return Incomplete()
    content = b"".join(part.data for part in parts if isinstance(part, Data))
    return Message(head.method, head.target, comparable(head.headers), content, rest)


def by_h11(data: bytes) -> Outcome:
    connection = h11.Connection(h11.SERVER, 1 << 20)
    connection.receive_data(data)
    request: h11.Request | None = None
    content = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                content += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                rest = connection.trailing_data[0]
                headers = comparable(tuple(request.headers))
                return Message(bytes(request.method), bytes(request.target), headers, content, rest)
            else:
                return Incomplete()
    except h11.RemoteProtocolError:
        return Refused()


class Listener:
    """Gathers the first message; llhttp goes on with the next ones, whose sizes tell what was left."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.content = b""
        self.head_done = False
        self.messages = 0

    def on_url(self, url: bytes) -> None:
        if not self.messages:
            self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.messages and not self.head_done:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.head_done = True

    def on_body(self, body: bytes) -> None:
        if not self.messages:
            self.content += body

    def on_message_complete(self) -> None:
        self.messages += 1


def by_llhttp(data: bytes, *, lax: bool = False) -> Outcome:
    """Feed byte by byte, so as to know where the first message ends."""
    listener = Listener()
    parser = httptools.HttpRequestParser(listener)
    if lax:
        parser.set_dangerous_leniencies(*[True] * 10)
    for at in range(len(data)):
        try:
            parser.feed_data(data[at : at + 1])
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError:
            return Refused()
        if listener.messages:
            headers = comparable(tuple(listener.headers))
            return Message(parser.get_method(), listener.target, headers, listener.content, data[at + 1 :])
    return Incomplete()


class Wire(io.BytesIO):
    """Enough of a socket for http.client; what it has left unread can still be read when it closes it."""

    def makefile(self, _mode: str) -> Wire:
        return self

    def close(self) -> None:
        pass


def by_http_client(data: bytes) -> Outcome:
    """Let it read the headers and the content as those of an answer: it has no reader of requests."""
    line, _, rest = data.partition(b"\n")
    words = line.split()
    if len(words) != 3:
        return Refused()
    wire = Wire(b"HTTP/1.1 200 OK\r\n" + rest)
    answer = http.client.HTTPResponse(cast("socket.socket", wire))
    try:
        answer.begin()
        has_body = answer.chunked or answer.length is not None
        content = answer.read() if has_body else b""
    except http.client.IncompleteRead:
        return Incomplete()
    except (http.client.HTTPException, ValueError, OverflowError):
        return Refused()
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.getheaders())
    return Message(words[0], words[1], comparable(headers), content, wire.read())


BODY = b"5\r\nhello\r\n0\r\n\r\n"
LINES = [b"POST http://a/b HTTP/1.1", b"POST http://a/b HTTP/1.0", b"GET http://a/ HTTP/1.1"]
FRAMINGS = [
    b"Content-Length: 5",
    b"Content-Length: 5\r\nContent-Length: 5",
    b"Content-Length: 5\r\nContent-Length: 0",
    b"Content-Length: 5, 5",
    b"Content-Length: +5",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: CHUNKED",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, gzip",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer_Encoding: chunked",
    b"X: a\nTransfer-Encoding: chunked",
    b"X: a\rTransfer-Encoding: chunked",
    b"X: a\r\n Transfer-Encoding: chunked",
    b"X: a\0\r\nTransfer-Encoding: chunked",
    b"",
]
BODIES = [
    b"hello",
    BODY,
    BODY + b"GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n",
    b"05\r\nhello\r\n0\r\n\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhelloXX0\r\n\r\n",
    b"5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    b"5\r\nhello\r\n0\r\nA: b\n\n",
    b"5\r\nhello\r\n0\r\n\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    b"0\r\n\r\nGET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n",
]
CASES = [
    line + b"\r\nHost: a\r\n" + (framing + b"\r\n" if framing else b"") + b"\r\n" + body
    for line, framing, body in product(LINES, FRAMINGS, BODIES)
]


def check(data: bytes) -> Outcome:
    """Where we take a message, each other reader takes the same or none; and two that differ find us refusing."""
    mine = ours(data)
    others = readings(data)
    if isinstance(mine, Message):
        assert others <= {mine, Refused()}
    if len({other for other in others if isinstance(other, Message)}) > 1:
        assert mine == Refused()
    if isinstance(mine, Incomplete):
        # What we wait for, nobody else has taken for a whole message (http.client takes a head without an end).
        assert not any(isinstance(other, Message) for other in others - {by_http_client(data)})
    return mine


def readings(data: bytes) -> set[Outcome]:
    return {by_h11(data), by_llhttp(data), by_llhttp(data, lax=True), by_http_client(data)}


def test_the_table_of_framings() -> None:
    outcomes = [type(check(data)) for data in CASES]
    # The table is worth something only if it holds what is taken, what is refused, and what readers differ on.
    assert outcomes.count(Message) > 50
    assert outcomes.count(Refused) > 500
    taken = [[other for other in readings(data) if isinstance(other, Message)] for data in CASES]
    assert sum(len(messages) > 1 for messages in taken) > 20


FRAGMENTS = st.lists(
    st.sampled_from([*LINES, *FRAMINGS, *BODIES, b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"Host: a\r\n", b":"])
    | st.binary(max_size=3),
    max_size=8,
).map(b"".join)


@settings(max_examples=300)
@given(st.sampled_from(CASES), st.integers(0, 200), st.integers(0, 3), FRAGMENTS)
def test_messages_with_something_torn_out_and_put_in(case: bytes, at: int, gone: int, put_in: bytes) -> None:
    check(case[:at] + put_in + case[at + gone :])


@settings(max_examples=300)
@given(st.sampled_from(CASES), st.binary(max_size=4))
def test_what_we_pass_on_means_to_others_what_it_means_to_us(case: bytes, more: bytes) -> None:
    core = HttpConversation()
    events = core.receive(case + more)
    if not events or isinstance(events[0], Broken) or not isinstance(events[-1], End):
        return
    request = events[0]
    assert isinstance(request, Request)
    origin = OriginConversation()
    written = origin.request(request, Destination.parse("judged.example:80"))
    content = b"".join(event.data for event in events if isinstance(event, Data))
    written += b"".join(origin.send(event) for event in events if isinstance(event, Data | End))
    for outcome in readings(written):
        assert isinstance(outcome, Message)
        assert (outcome.method, outcome.target, outcome.content) == (request.method, request.target, content)
        assert outcome.rest == b""
        assert (b"host", b"judged.example") in outcome.headers
        assert sum(name == b"host" for name, _ in outcome.headers) == 1


RESPONSES = [b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n" + body for framing, body in product(FRAMINGS[:-1], BODIES)]


@pytest.mark.parametrize("data", RESPONSES)
def test_responses_too(data: bytes) -> None:
    head_size = data.find(b"\r\n\r\n") + 4
    try:
        head = read_response(data[:head_size])
        assert head.body is not None
        parts, _ = reader(head.body).read(data[head_size:])
    except (FlawError, AssertionError):
        return
    content = b"".join(part.data for part in parts if isinstance(part, Data))
    listener = Listener()
    parser = httptools.HttpResponseParser(listener)
    try:
        parser.feed_data(data)
    except httptools.HttpParserError:
        # It goes on with what follows the message, which is none.
        if not listener.messages:
            return
    assert listener.content == content
    assert bool(listener.messages) is (bool(parts) and isinstance(parts[-1], End))
