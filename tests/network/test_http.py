from __future__ import annotations

from base64 import b64encode
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.http import (
    LARGEST_REST,
    Broken,
    Command,
    Event,
    HttpConversation,
    Refuse,
    TunnelAccepted,
)
from stockade.network.http_head import LARGEST_HEAD
from stockade.network.http_message import (
    CHUNKED,
    NO_BODY,
    UNTIL_CLOSE,
    Body,
    BodyKind,
    Credentials,
    Data,
    End,
    Headers,
    Interim,
    Request,
    Response,
    Switched,
    TunnelRequested,
)
from stockade.network.refusal import Cause, bad_request, by_policy, unauthenticated
from stockade.policy.decision import Reason, decide
from stockade.policy.destination import Destination
from stockade.policy.network_rules import NetworkRules
from stockade.value import Value


class Heard(Value):
    data: bytes
    events: tuple[Event, ...]


class Said(Value):
    command: Command
    output: bytes


Script: TypeAlias = list[Heard | Said]


def heard(data: bytes, *events: Event) -> Heard:
    return Heard(data, events)


def lines(*texts: str | bytes) -> bytes:
    encoded = (text.encode("latin-1") if isinstance(text, str) else text for text in texts)
    return b"".join(line + b"\r\n" for line in encoded) + b"\r\n"


def get(headers: Headers = (), *, path: bytes = b"/", host: str = "example.com", upgrade: bytes = b"") -> Request:
    return Request(b"GET", host, "80", path, headers, NO_BODY, None, upgrade)


def post(body: Body, headers: Headers = ()) -> Request:
    return Request(b"POST", "example.com", "80", b"/", headers, body)


LOGIN = b"Proxy-Authorization: Basic " + b64encode(b"c-17:token")
WHO = Credentials("c-17", "token")
REFUSAL = by_policy(decide(NetworkRules(), "evil.com", 80, can_ask=False))
TWO = Body(BodyKind.LENGTH, 2)

GET = lines("GET http://example.com/ HTTP/1.1", "Host: example.com")
ASKED = heard(GET, get(), End())
POST = ("POST http://example.com/ HTTP/1.1", "Host: example.com")
WEBSOCKET = heard(
    lines(
        "GET http://example.com/ws HTTP/1.1",
        "Host: example.com",
        "Connection: keep-alive, Upgrade",
        "Upgrade: WebSocket",
        "Sec-WebSocket-Key: k",
    ),
    get(((b"sec-websocket-key", b"k"),), path=b"/ws", upgrade=b"websocket"),
    End(),
)
OK = Response(200, b"OK", ((b"a", b"b"),), TWO)
OK_HEAD = b"HTTP/1.1 200 OK\r\na: b\r\nContent-Length: 2\r\n\r\n"
OK_LAST_HEAD = b"HTTP/1.1 200 OK\r\na: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
HI: Script = [Said(Data(b"hi"), b"hi"), Said(End(), b"")]
ANSWERED: Script = [Said(OK, OK_HEAD), *HI]
REFUSED = Said(Refuse(REFUSAL), REFUSAL.render())

CONVERSATIONS = [
    pytest.param(
        [
            heard(
                lines("CONNECT example.com:443 HTTP/1.1", "Host: example.com:443", LOGIN),
                TunnelRequested("example.com", "443", WHO),
            ),
            Said(TunnelAccepted(), b"HTTP/1.1 200 Connection established\r\n\r\n"),
        ],
        id="tunnel",
    ),
    pytest.param(
        [
            heard(lines("CONNECT [2001:db8::1]:443 HTTP/1.0"), TunnelRequested("[2001:db8::1]", "443")),
            REFUSED,
        ],
        id="tunnel refused, HTTP/1.0",
    ),
    pytest.param(
        [
            heard(
                lines("CONNECT evil.com:443 HTTP/1.1", "Host: good.com", "Content-Length: 0"),
                TunnelRequested("evil.com", "443"),
            ),
            Said(Refuse(unauthenticated()), unauthenticated().render()),
        ],
        id="who asks is missing, and Host says nothing",
    ),
    pytest.param([ASKED, *ANSWERED], id="plain request"),
    pytest.param(
        [
            ASKED,
            *ANSWERED,
            heard(
                lines("GET http://evil.com/ HTTP/1.1", "Host: example.com", LOGIN),
                get(host="evil.com").but(credentials=WHO),
                End(),
            ),
            REFUSED,
        ],
        id="the second request of a connection is judged by its own host",
    ),
    pytest.param(
        [
            heard(lines("HEAD http://example.com/ HTTP/1.1", "Host: example.com"), get().but(method=b"HEAD"), End()),
            Said(OK.but(empty=True), OK_HEAD),
            Said(End(), b""),
            heard(
                lines("HEAD http://evil.com/ HTTP/1.1", "Host: example.com"),
                get(host="evil.com").but(method=b"HEAD"),
                End(),
            ),
            Said(Refuse(REFUSAL), REFUSAL.render(with_body=False)),
        ],
        id="HEAD",
    ),
    pytest.param(
        [
            heard(
                lines("GET http://evil.com/ HTTP/1.1", "Host: evil.com", "User-Agent: curl/8.0"),
                get(host="evil.com").but(headers=((b"user-agent", b"curl/8.0"),)),
                End(),
            ),
            Said(Refuse(REFUSAL), REFUSAL.render(cut_short=True)),
        ],
        id="curl, which would take a whole page for success",
    ),
    pytest.param(
        [
            ASKED,
            Said(
                Response(204, b"No Content", (), Body(BodyKind.LENGTH, 0), empty=True),
                b"HTTP/1.1 204 No Content\r\n\r\n",
            ),
            Said(End(), b""),
            ASKED,
            Said(
                Response(304, b"", ((b"etag", b"x"),), Body(BodyKind.LENGTH, 9), empty=True),
                b"HTTP/1.1 304 \r\netag: x\r\nContent-Length: 9\r\n\r\n",
            ),
            Said(End(), b""),
        ],
        id="answers without a body",
    ),
    pytest.param(
        [
            heard(lines(*POST, "Content-Length: 5") + b"hello", post(Body(BodyKind.LENGTH, 5)), Data(b"hello"), End()),
            Said(Response(200, b"OK", (), CHUNKED), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Said(Data(b"hi"), b"2\r\nhi\r\n"),
            Said(Data(b""), b""),
            Said(End(((b"x-sum", b"1"),)), b"0\r\nx-sum: 1\r\n\r\n"),
        ],
        id="a body of known length, an answer in chunks with a trailer",
    ),
    pytest.param(
        [
            heard(
                lines(*POST, "Transfer-Encoding: Chunked", "Trailer: X-Sum")
                + b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 1\r\nHost: evil.com\r\nContent-Length: 3\r\n\r\n",
                post(CHUNKED),
                Data(b"hello!"),
                End(((b"x-sum", b"1"),)),
            ),
            Said(Response(200, b"OK", (), UNTIL_CLOSE), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Said(Data(b"hi"), b"2\r\nhi\r\n"),
            Said(End(), b"0\r\n\r\n"),
        ],
        id="a body in chunks, an answer until the end of the connection",
    ),
    pytest.param(
        [
            heard(
                lines(*POST, "Content-Length: 2", "Expect: 100-Continue"), post(TWO, ((b"expect", b"100-Continue"),))
            ),
            Said(Interim(100, b"Continue", ()), b"HTTP/1.1 100 Continue\r\n\r\n"),
            heard(b"hi", Data(b"hi"), End()),
            *ANSWERED,
        ],
        id="a body that waits for 100",
    ),
    pytest.param(
        [
            heard(lines("GET http://example.com/ HTTP/1.0", "Connection: keep-alive"), get(), End()),
            Said(Interim(103, b"Early Hints", ()), b""),
            Said(Response(200, b"OK", (), CHUNKED), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
            Said(Data(b"hi"), b"hi"),
            Said(End(((b"x-sum", b"1"),)), b""),
        ],
        id="HTTP/1.0 gets neither interim answers nor chunks",
    ),
    pytest.param(
        [
            heard(lines("GET http://example.com/ HTTP/1.1", "Host: x", "Connection: close"), get(), End()),
            Said(OK, OK_LAST_HEAD),
            *HI,
        ],
        id="the client wants to close",
    ),
    pytest.param(
        [
            WEBSOCKET,
            Said(
                Switched(b"Switching Protocols", ((b"sec-websocket-accept", b"v"),), b"websocket"),
                b"HTTP/1.1 101 Switching Protocols\r\n"
                b"Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-accept: v\r\n\r\n",
            ),
        ],
        id="WebSocket",
    ),
    pytest.param([WEBSOCKET, *ANSWERED, ASKED, REFUSED], id="WebSocket declined: requests go on being judged"),
    pytest.param(
        [
            heard(
                lines(
                    "GET http://example.com/ HTTP/1.1",
                    "Host: evil.com",
                    "Accept: */*",
                    "Connection: x-secret, keep-alive, Upgrade, HTTP2-Settings",
                    "Upgrade: h2c",
                    "HTTP2-Settings: x",
                    "Keep-Alive: timeout=5",
                    "Proxy-Connection: keep-alive",
                    "Proxy-Foo: bar",
                    "TE: gzip, trailers",
                    "X-Secret: 1",
                    "X-Proxy-Error: x",
                    "Expect: 100-continue",
                    LOGIN,
                ),
                get(((b"accept", b"*/*"), (b"te", b"trailers"))).but(credentials=WHO),
                End(),
            )
        ],
        id="what concerns one connection stays on it",
    ),
    pytest.param(
        [
            heard(
                lines("OPTIONS HTTP://Example.COM HTTP/1.1", "Host: x"),
                get(path=b"*", host="Example.COM").but(method=b"OPTIONS"),
                End(),
            )
        ],
        id="OPTIONS of a whole server",
    ),
    pytest.param(
        [heard(lines("CONNECT example.com HTTP/1.1", "Host: x"), TunnelRequested("example.com", ""))],
        id="a tunnel without a port is for the judge",
    ),
]


def joined(events: list[Event]) -> list[Event]:
    """Join pieces of a body: where they are cut is of no meaning."""
    whole: list[Event] = []
    for event in events:
        if whole and isinstance(event, Data) and isinstance(whole[-1], Data):
            whole[-1] = Data(whole[-1].data + event.data)
        else:
            whole.append(event)
    return whole


def hear(core: HttpConversation, data: bytes, piece: int) -> list[Event]:
    return joined([event for at in range(0, len(data), piece) for event in core.receive(data[at : at + piece])])


@pytest.mark.parametrize("piece", [1, 3, 1 << 16], ids=["byte by byte", "by threes", "whole"])
@pytest.mark.parametrize("script", CONVERSATIONS)
def test_conversations(script: Script, piece: int) -> None:
    core = HttpConversation()
    for step in script:
        if isinstance(step, Heard):
            assert hear(core, step.data, piece) == list(step.events)
        else:
            assert core.send(step.command) == step.output


@pytest.mark.parametrize("script", CONVERSATIONS)
def test_whatever_a_client_sends_ahead_waits_for_its_turn_or_is_the_tunnels(script: Script) -> None:
    """All that the client ever sends arrives at once, with more behind it."""
    core = HttpConversation()
    client = b"".join(step.data for step in script if isinstance(step, Heard))
    seen = list(core.receive(client + b"trailing"))
    for step in script:
        if isinstance(step, Heard):
            assert tuple(seen[: len(step.events)]) == step.events
            del seen[: len(step.events)]
        else:
            assert core.send(step.command) == step.output
            seen += core.receive(b"")
    assert seen == []
    last = script[-1]
    raw = isinstance(last, Said) and isinstance(last.command, TunnelAccepted | Switched)
    assert (core.rest(), core.rest()) == (b"trailing" if raw else b"", b"")


def test_an_answer_before_the_body_ends_the_connection() -> None:
    core = HttpConversation()
    core.receive(lines(*POST, "Content-Length: 200", "Expect: 100-continue"))
    assert core.send(OK) == OK_LAST_HEAD
    assert core.receive(b"more") == (Data(b"more"),)
    core.send(Data(b"no"))
    core.send(End())
    assert core.over
    assert core.receive(GET) == ()


BAD = [
    pytest.param(lines("GET / HTTP/1.1", "Host: example.com"), 400, "names no host", id="a path alone"),
    pytest.param(lines("OPTIONS * HTTP/1.1", "Host: example.com"), 400, "names no host", id="OPTIONS of the proxy"),
    pytest.param(lines("GET example.com HTTP/1.1", "Host: x"), 400, "names no host", id="a host alone"),
    pytest.param(lines("GET //example.com/ HTTP/1.1", "Host: x"), 400, "names no host", id="no scheme"),
    pytest.param(lines("GET https://example.com/ HTTP/1.1", "Host: x"), 400, "in the clear", id="https"),
    pytest.param(lines("GET ftp://example.com/ HTTP/1.1", "Host: x"), 501, "does not fetch", id="ftp"),
    pytest.param(lines("GET http://u:p@example.com/ HTTP/1.1", "Host: x"), 400, "an @ before", id="user name"),
    pytest.param(lines("CONNECT u:p@example.com:443 HTTP/1.1", "Host: x"), 400, "an @ before", id="user name, CONNECT"),
    pytest.param(lines("GET http://example.com/#x HTTP/1.1", "Host: x"), 400, "fragment", id="fragment"),
    pytest.param(lines("GET http://example.com#@evil.com/ HTTP/1.1", "Host: x"), 400, "an @ before", id="two tricks"),
    pytest.param(lines("GET http://example.com/ HTTP/1.1"), 400, "missing mandatory Host", id="no Host"),
    pytest.param(lines("GET http://a/ HTTP/1.1", "Host: a", "Host: a"), 400, "multiple Host", id="two Hosts"),
    pytest.param(lines("CONNECT a:1 HTTP/1.1", "Host: a", "Content-Length: 1"), 400, "no body", id="CONNECT, body"),
    pytest.param(
        lines("CONNECT a:1 HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"), 400, "no body", id="CONNECT, chunks"
    ),
    pytest.param(lines(*POST, "Expect: 200-ok"), 417, "100-continue", id="another expectation"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/2", id="HTTP/2"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01", 400, "not HTTP", id="TLS"),
    pytest.param(b"\x05\x01\x00", 400, "not HTTP", id="SOCKS"),
    pytest.param(b"\xff", 400, "not HTTP", id="not ASCII"),
    pytest.param(lines(*POST, "Transfer-Encoding: chunked") + b"x\r\n", 400, "chunk has no", id="bad chunk"),
]


@pytest.mark.parametrize("piece", [1, 1 << 20], ids=["byte by byte", "whole"])
@pytest.mark.parametrize(("data", "status", "word"), BAD)
def test_what_is_not_served_is_refused_with_words(data: bytes, status: int, word: str, piece: int) -> None:
    core = HttpConversation()
    last = hear(core, data, piece)[-1]
    assert isinstance(last, Broken)
    assert last.refusal.status == status
    assert word in last.refusal.phrase
    assert core.receive(GET) == ()
    answer = core.send(Refuse(last.refusal))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert core.over


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("http://exa%6Dple.com/", id="percent"),
        pytest.param("http://example.com:80:80/", id="two ports"),
        pytest.param("http://example.com:/", id="empty port"),
        pytest.param("http://example.com:0x50/", id="hexadecimal port"),
        pytest.param("http://example.com:080/", id="leading zero"),
        pytest.param("http://example.com\\.evil.com/", id="backslash"),
        pytest.param("http:///path", id="no host"),
        pytest.param("http://::1/", id="IPv6 without brackets"),
        pytest.param("http://[::1/", id="one bracket"),
        pytest.param("http://*/", id="wildcard"),
    ],
)
def test_a_malformed_host_or_port_is_left_to_the_judge_who_refuses_it(target: str) -> None:
    request, _ = HttpConversation().receive(lines(f"GET {target} HTTP/1.1", "Host: example.com"))
    assert isinstance(request, Request)
    decision = decide(NetworkRules(), request.host_text, request.port_text, can_ask=True)
    assert decision.reason in {Reason.MALFORMED_HOST, Reason.MALFORMED_PORT}


SERVER = Destination.parse("example.com:8080")


@pytest.mark.parametrize("host", ["example.com", "EXAMPLE.com:8080", "example.com.", "example.com:9", ""])
def test_a_client_that_does_not_know_of_the_proxy_names_a_path(host: str) -> None:
    core = HttpConversation(server=SERVER)
    events = core.receive(lines("GET /a?b HTTP/1.1", f"Host: {host}"))
    assert events == (get(path=b"/a?b").but(port_text="8080"), End())


@pytest.mark.parametrize(
    "host", ["evil.com", "evil.com:8080", "example.com.evil.com", "a b", "[::1", "http://example.com"]
)
def test_and_may_not_name_another_host_than_it_has_connected_to(host: str) -> None:
    (event,) = HttpConversation(server=SERVER).receive(lines("GET / HTTP/1.1", f"Host: {host}"))
    assert isinstance(event, Broken)
    assert (event.refusal.status, event.refusal.cause) == (403, Cause.OTHER_HOST)


@pytest.mark.parametrize("line", ["GET http://example.com:8080/", "CONNECT example.com:8080", "GET /#x", "GET x"])
def test_nor_speak_to_it_as_to_a_proxy(line: str) -> None:
    (event,) = HttpConversation(server=SERVER).receive(lines(f"{line} HTTP/1.1", "Host: example.com"))
    assert isinstance(event, Broken)
    assert event.refusal.status == 400


def test_the_end_of_the_connection_between_requests_is_no_fault() -> None:
    core = HttpConversation()
    assert core.receive_end() == ()
    assert core.over


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(GET[:-1], "it ended in the middle of its head", id="head"),
        pytest.param(lines(*POST, "Content-Length: 2") + b"h", "its body was cut short", id="length"),
        pytest.param(lines(*POST, "Transfer-Encoding: chunked") + b"2\r\nhi", "its body was cut short", id="chunks"),
    ],
)
def test_the_end_of_the_connection_inside_a_request_is(data: bytes, why: str) -> None:
    core = HttpConversation()
    core.receive(data)
    assert core.receive_end() == (Broken(bad_request(why)),)


def test_a_client_that_sends_no_more_still_gets_its_answer_and_then_the_end() -> None:
    core = HttpConversation()
    core.receive(GET)
    assert core.receive_end() == ()
    assert core.send(OK) == OK_LAST_HEAD
    core.send(Data(b"hi"))
    core.send(End())
    assert core.over


def test_a_refusal_inside_an_answer_only_cuts_it_off() -> None:
    core = HttpConversation()
    core.receive(GET)
    core.send(OK)
    assert core.send(Refuse(REFUSAL)) == b""
    assert core.over


@pytest.mark.parametrize(
    ("data", "command"),
    [
        pytest.param(b"", OK, id="an answer to nothing"),
        pytest.param(b"", End(), id="the end of nothing"),
        pytest.param(GET, TunnelAccepted(), id="a tunnel that was not asked for"),
        pytest.param(GET, Switched(b"", (), b"websocket"), id="a switch that was not offered"),
        pytest.param(lines("CONNECT a:1 HTTP/1.1", "Host: a"), OK, id="an answer of the other side to CONNECT"),
    ],
)
def test_what_does_not_fit_is_a_mistake_of_the_caller(data: bytes, command: Command) -> None:
    core = HttpConversation()
    core.receive(data)
    with pytest.raises(RuntimeError, match="does not fit"):
        core.send(command)


@pytest.mark.parametrize("part", [Data(b"too long"), End()])
def test_a_body_of_another_length_than_announced_is_a_mistake_of_the_caller(part: Data | End) -> None:
    core = HttpConversation()
    core.receive(GET)
    core.send(OK)
    with pytest.raises(RuntimeError, match="not as long"):
        core.send(part)


def test_reading_pauses_while_an_answer_is_due_and_enough_is_kept() -> None:
    core = HttpConversation()
    wanted = []
    for data in (b"", GET, GET, GET * 2000):
        core.receive(data)
        wanted.append(core.wants_bytes)
    assert wanted == [True, True, True, False]
    (event,) = core.receive(bytes(LARGEST_REST))
    assert isinstance(event, Broken)
    assert core._buffer == b""


def test_requests_sent_ahead_are_judged_one_by_one() -> None:
    core = HttpConversation()
    seen = list(core.receive(GET * 3))
    for asked in (2, 4, 6):
        assert seen == [get(), End()] * (asked // 2)
        for command in (OK, Data(b"hi"), End()):
            core.send(command)
        seen += core.receive(b"")


PIECES = st.sampled_from(
    [
        GET,
        b"GET ",
        b"http://example.com/",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"CONNECT a:1",
        b"Host: a\r\n",
        b"\r\n",
        b"\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: upgrade\r\nUpgrade: websocket\r\n",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
    ]
)


@given(st.lists(st.binary(max_size=20) | PIECES, max_size=30))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    core = HttpConversation()
    for piece in pieces:
        events = core.receive(piece)
        while any(isinstance(event, End) for event in events):
            assert core.send(OK).startswith(b"HTTP/1.1 200 OK\r\n")
            core.send(Data(b"hi"))
            core.send(End())
            events = core.receive(b"")
        if events and isinstance(events[-1], Broken):
            core.send(Refuse(events[-1].refusal))
            assert core.over
        assert len(core._buffer) <= LARGEST_HEAD
    core.receive_end()
