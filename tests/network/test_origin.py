from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.http_head import LARGEST_HEAD
from stockade.network.http_message import (
    CHUNKED,
    NO_BODY,
    UNTIL_CLOSE,
    Body,
    BodyKind,
    Data,
    End,
    Interim,
    Request,
    Response,
    Switched,
)
from stockade.network.origin import Broken, Event, OriginConversation
from stockade.policy.destination import Destination

SERVER = Destination.parse("example.com:80")
OTHER_PORT = Destination.parse("[2001:db8::1]:8080")
GET = Request(b"GET", "EXAMPLE.com", "80", b"/a?b", ((b"accept", b"*/*"),), NO_BODY)
TWO = Body(BodyKind.LENGTH, 2)


@pytest.mark.parametrize(
    ("request_", "destination", "expected"),
    [
        pytest.param(GET, SERVER, b"GET /a?b HTTP/1.1\r\nHost: example.com\r\naccept: */*\r\n\r\n", id="plain"),
        pytest.param(
            GET,
            OTHER_PORT,
            b"GET /a?b HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\naccept: */*\r\n\r\n",
            id="the Host is what was judged",
        ),
        pytest.param(
            GET.but(method=b"POST", body=TWO),
            SERVER,
            b"POST /a?b HTTP/1.1\r\nHost: example.com\r\naccept: */*\r\nContent-Length: 2\r\n\r\n",
            id="length",
        ),
        pytest.param(
            GET.but(method=b"POST", body=CHUNKED, headers=((b"te", b"trailers"),)),
            SERVER,
            b"POST /a?b HTTP/1.1\r\nHost: example.com\r\nte: trailers\r\nConnection: TE\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            id="chunks",
        ),
        pytest.param(
            GET.but(upgrade=b"websocket", headers=()),
            SERVER,
            b"GET /a?b HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            id="upgrade",
        ),
    ],
)
def test_a_request_is_written_for_the_destination_that_was_judged(
    request_: Request, destination: Destination, expected: bytes
) -> None:
    assert OriginConversation().request(request_, destination) == expected


@pytest.mark.parametrize(
    ("target", "expected"), [(b"/a", b"http://[2001:db8::1]:8080/a"), (b"*", b"http://[2001:db8::1]:8080")]
)
def test_another_proxy_gets_whole_urls_and_its_own_credentials(target: bytes, expected: bytes) -> None:
    core = OriginConversation(through_proxy=True, proxy_authorization=b"Basic eA==")
    assert core.request(GET.but(target=target, headers=()), OTHER_PORT) == (
        b"GET " + expected + b" HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\nProxy-Authorization: Basic eA==\r\n\r\n"
    )


def asked(request: Request = GET) -> OriginConversation:
    core = OriginConversation()
    core.request(request, SERVER)
    if request.body is NO_BODY:
        core.send(End())
    return core


def hear(core: OriginConversation, data: bytes, piece: int) -> list[Event]:
    whole: list[Event] = []
    for at in range(0, len(data), piece):
        for event in core.receive(data[at : at + piece]):
            if whole and isinstance(event, Data) and isinstance(whole[-1], Data):
                whole[-1] = Data(whole[-1].data + event.data)
            else:
                whole.append(event)
    return whole


HEAD = GET.but(method=b"HEAD")
WEBSOCKET = GET.but(upgrade=b"websocket")
SWITCH = b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nX: y\r\n\r\n"

ANSWERS = [
    pytest.param(
        GET,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\nConnection: x-z\r\nX-Z: 1\r\nX-Proxy-Error: denied\r\n\r\nhi",
        [Response(200, b"OK", ((b"x", b"y"),), TWO), Data(b"hi"), End()],
        True,
        id="length",
    ),
    pytest.param(
        GET,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n",
        [Response(200, b"OK", (), CHUNKED), Data(b"hi"), End(((b"x", b"y"),))],
        True,
        id="chunks",
    ),
    pytest.param(
        GET,
        b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 100 \r\n\r\nHTTP/1.1 204 None\r\n\r\n",
        [
            Interim(103, b"Early", ((b"link", b"a"),)),
            Interim(100, b"", ()),
            Response(204, b"None", (), NO_BODY, empty=True),
            End(),
        ],
        True,
        id="interim answers",
    ),
    pytest.param(
        HEAD,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        [Response(200, b"OK", (), TWO, empty=True), End()],
        True,
        id="HEAD",
    ),
    pytest.param(
        GET,
        b"HTTP/1.1 304 Same\r\nTransfer-Encoding: chunked\r\n\r\n",
        [Response(304, b"Same", (), CHUNKED, empty=True), End()],
        True,
        id="304",
    ),
    pytest.param(
        GET,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
        [Response(200, b"OK", (), TWO), Data(b"hi"), End()],
        False,
        id="close",
    ),
    pytest.param(
        GET,
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        [Response(200, b"OK", (), TWO), Data(b"hi"), End()],
        False,
        id="HTTP/1.0",
    ),
    pytest.param(
        GET,
        b"HTTP/1.1 200 OK\r\n\r\nhi",
        [Response(200, b"OK", (), UNTIL_CLOSE), Data(b"hi")],
        False,
        id="until the end of the connection",
    ),
]


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
@pytest.mark.parametrize(("request_", "data", "events", "reusable"), ANSWERS)
def test_answers(request_: Request, data: bytes, events: list[Event], piece: int, *, reusable: bool) -> None:
    core = asked(request_)
    assert not core.reusable
    assert hear(core, data, piece) == events
    assert core.reusable is reusable


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize(("request_", "data", "events", "reusable"), ANSWERS)
def test_what_a_server_says_beyond_its_answer_is_dropped_with_the_connection(
    request_: Request, data: bytes, events: list[Event], piece: int, *, reusable: bool
) -> None:
    core = asked(request_)
    heard = hear(core, data + b"HTTP/1.1 200 OK\r\n\r\n", piece)
    assert heard[: len(events) - 1] == events[:-1]
    assert len(heard) == len(events)
    assert not core.reusable
    assert reusable or heard


def test_a_connection_carries_one_request_after_the_other() -> None:
    core = asked()
    hear(core, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1)
    assert core.request(GET, SERVER).startswith(b"GET")
    with pytest.raises(RuntimeError, match="no request can go out: an answer is due"):
        core.request(GET, SERVER)


@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_a_switch_that_was_offered(piece: int) -> None:
    core = asked(WEBSOCKET)
    assert hear(core, SWITCH + b"\x81\x00", piece) == [Switched(b"Go", ((b"x", b"y"),), b"websocket")]
    assert (core.rest(), core.rest()) == (b"\x81\x00", b"")


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize(
    ("request_", "data", "why"),
    [
        pytest.param(GET, SWITCH, "not offered", id="switch that was not offered"),
        pytest.param(WEBSOCKET, SWITCH.replace(b"WebSocket", b"h2c"), "not offered", id="switch to something else"),
        pytest.param(WEBSOCKET, SWITCH.replace(b"upgrade", b"close"), "not offered", id="switch not said aloud"),
        pytest.param(GET, b"HTTP/1.1 100 \r\nContent-Length: 2\r\n\r\n", "interim", id="interim answer with a body"),
        pytest.param(GET, b"HTTP/1.1 100 \r\n\r\n" * 33, "interim", id="interim answers without an end"),
        pytest.param(GET, b"HTTP/1.1 200 OK\nX: y\n\n", "CR LF", id="LF alone"),
        pytest.param(
            GET, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "more than one", id="two lengths"
        ),
        pytest.param(
            GET,
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "both",
            id="length and coding",
        ),
        pytest.param(GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "chunked", id="another coding"),
        pytest.param(GET, b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP", id="another protocol"),
        pytest.param(GET, b"\x15\x03\x01", "not HTTP", id="TLS"),
        pytest.param(GET, b"HTTP/1.1 200 OK\r\nX: " + b"x" * LARGEST_HEAD, "larger", id="too large"),
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_not_passed_on(
    request_: Request, data: bytes, why: str, piece: int
) -> None:
    core = asked(request_)
    last = hear(core, data, piece)[-1]
    assert isinstance(last, Broken)
    assert why in last.why
    assert core.receive(b"HTTP/1.1 200 OK\r\n\r\n") == ()
    assert not core.reusable


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", Broken("it closed the connection before it had answered"), id="nothing"),
        pytest.param(b"HTTP/1.1 2", Broken("it closed the connection before it had answered"), id="head"),
        pytest.param(b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nh", Broken("its body was cut short"), id="length"),
        pytest.param(
            b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n",
            Broken("its body was cut short"),
            id="chunks",
        ),
        pytest.param(b"HTTP/1.1 200 \r\n\r\nh", End(), id="until the end"),
    ],
)
def test_the_end_of_the_connection(data: bytes, expected: Event) -> None:
    core = asked()
    core.receive(data)
    assert core.receive_end() == (expected,)
    assert core.receive_end() == ()
    assert not core.reusable


def test_an_answer_before_the_request_is_whole_leaves_the_connection_useless_until_it_is() -> None:
    core = asked(GET.but(body=TWO))
    hear(core, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1)
    useful = [core.reusable]
    assert core.send(Data(b"hi")) == b"hi"
    assert core.send(End()) == b""
    useful.append(core.reusable)
    assert useful == [False, True]
    assert core.send(End()) == b""


def test_words_that_nobody_asked_for_make_a_connection_useless() -> None:
    core = OriginConversation()
    useful = []
    for data in (b"", b"HTTP/1.1 200 OK\r\n\r\n"):
        assert core.receive(data) == ()
        useful.append(core.reusable)
    assert useful == [True, False]


@given(
    st.lists(
        st.binary(max_size=20)
        | st.sampled_from(
            [b"HTTP/1.1 200 OK\r\n", b"\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"]
        )
        | st.sampled_from([SWITCH, b"HTTP/1.1 100 \r\n\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n"])
    ),
    st.sampled_from([GET, HEAD, WEBSOCKET]),
)
def test_no_bytes_break_it(pieces: list[bytes], request_: Request) -> None:
    core = asked(request_)
    for piece in pieces:
        core.receive(piece)
        assert len(core._buffer) <= LARGEST_HEAD
    core.receive_end()
