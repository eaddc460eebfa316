from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.socks import (
    LARGEST_REST,
    Authenticate,
    Authenticated,
    Broken,
    Command,
    Connected,
    ConnectRequested,
    Event,
    NotAuthenticated,
    Output,
    Refuse,
    Reply,
    SocksConversation,
)
from stockade.policy.decision import Reason, decide
from stockade.policy.network_rules import NetworkRules

Step: TypeAlias = bytes | Event | Command

PASSWORD_OFFERED = b"\x05\x01\x02"
NOTHING_OFFERED = b"\x05\x01\x00"
BOTH_OFFERED = b"\x05\x03\x00\x01\x02"
PASSWORD_CHOSEN = Output(b"\x05\x02")
NOTHING_CHOSEN = Output(b"\x05\x00")
NO_METHOD = Output(b"\x05\xff")
WHO = b"\x01\x04c-17\x05token"
NAMED = Authenticate("c-17", "token")
NAME = b"\x05\x01\x00\x03\x0bexample.com\x01\xbb"
ZEROES = b"\x00\x01" + bytes(6)

LOGIN: list[Step] = [
    PASSWORD_OFFERED,
    PASSWORD_CHOSEN,
    WHO,
    NAMED,
    Authenticated(),
    b"\x01\x00",
]


def request(kind: int, address: bytes, port: int = 443, command: int = 1, version: int = 5) -> bytes:
    return bytes((version, command, 0, kind)) + address + port.to_bytes(2, "big")


# A script: bytes before an event are the client's, commands are ours, bytes after a command are what it must give.
CONVERSATIONS = [
    pytest.param(
        [*LOGIN, NAME, ConnectRequested("example.com", 443), Connected(), b"\x05\x00" + ZEROES], id="a name, connected"
    ),
    pytest.param(
        [
            *LOGIN,
            request(1, bytes((192, 0, 2, 7)), 80),
            ConnectRequested("192.0.2.7", 80),
            Connected(),
            b"\x05\x00" + ZEROES,
        ],
        id="IPv4",
    ),
    pytest.param(
        [
            *LOGIN,
            request(4, b"\x20\x01\x0d\xb8" + bytes(11) + b"\x01"),
            ConnectRequested("2001:db8:0:0:0:0:0:1", 443),
            Refuse(),
            b"\x05\x02" + ZEROES,
        ],
        id="IPv6",
    ),
    pytest.param([*LOGIN, NAME, ConnectRequested("example.com", 443), Refuse(), b"\x05\x02" + ZEROES], id="refused"),
    pytest.param([BOTH_OFFERED, PASSWORD_CHOSEN, WHO, NAMED, NotAuthenticated(), b"\x01\x01"], id="wrong password"),
    pytest.param(
        [PASSWORD_OFFERED, PASSWORD_CHOSEN, b"\x01\x00\x00", Authenticate("", ""), NotAuthenticated(), b"\x01\x01"],
        id="empty user name and password",
    ),
    pytest.param(
        [PASSWORD_OFFERED, PASSWORD_CHOSEN, b"\x02", Broken("its user name and password are malformed")],
        id="another version of passwords",
    ),
    pytest.param([NOTHING_OFFERED, NO_METHOD, Broken("it offers no user name and password")], id="no password offered"),
    pytest.param([b"\x05\x00", NO_METHOD, Broken("it offers no user name and password")], id="nothing offered"),
    pytest.param(
        [b"\x04", Broken("it speaks SOCKS 4; use SOCKS 5 with names (socks5h://)")], id="SOCKS 4 is cut off at once"
    ),
    pytest.param([b"G", Broken("it does not speak SOCKS 5")], id="HTTP on this port"),
    pytest.param([b"\x16", Broken("it does not speak SOCKS 5")], id="TLS on this port"),
    pytest.param(
        [
            *LOGIN,
            request(1, b"", command=2)[:4],
            Output(b"\x05\x07" + ZEROES),
            Broken("it wants something other than CONNECT"),
        ],
        id="BIND",
    ),
    pytest.param(
        [
            *LOGIN,
            request(3, b"", command=3)[:4],
            Output(b"\x05\x07" + ZEROES),
            Broken("it wants something other than CONNECT"),
        ],
        id="UDP ASSOCIATE",
    ),
    pytest.param(
        [
            *LOGIN,
            request(2, b"")[:4],
            Output(b"\x05\x08" + ZEROES),
            Broken("it names the host in an unknown way"),
        ],
        id="unknown address type",
    ),
    pytest.param(
        [*LOGIN, b"\x05\x01\x01\x03", Output(b"\x05\x01" + ZEROES), Broken("its request is malformed")],
        id="reserved byte",
    ),
    pytest.param([*LOGIN, b"\x04", Broken("its request is of another version")], id="request of SOCKS 4"),
]

OPEN_CONVERSATIONS = [
    pytest.param([NOTHING_OFFERED, NOTHING_CHOSEN, NAME, ConnectRequested("example.com", 443)], id="nobody named"),
    pytest.param([BOTH_OFFERED, PASSWORD_CHOSEN, WHO, NAMED], id="a name is preferred"),
    pytest.param([b"\x05\x01\x01", NO_METHOD, Broken("it offers no user name and password")], id="GSSAPI alone"),
]


def play(core: SocksConversation, script: list[Step], *, piece: int) -> None:
    """Run a script; the client's bytes arrive in pieces of this size."""
    waiting: list[Event] = []
    answer: bytes | None = None
    for step in script:
        if isinstance(step, Output | Authenticate | ConnectRequested | Broken):
            assert waiting.pop(0) == step
        elif not isinstance(step, bytes):
            assert waiting == []
            answer = core.send(step)
        elif answer is not None:
            assert answer == step
            answer = None
        else:
            for at in range(0, len(step), piece):
                waiting += core.receive(step[at : at + piece])
    assert waiting == []
    assert answer is None


@pytest.mark.parametrize("piece", [1, 2, 1000], ids=["byte by byte", "by twos", "whole"])
@pytest.mark.parametrize("script", CONVERSATIONS)
def test_conversations(script: list[Step], piece: int) -> None:
    play(SocksConversation(), script, piece=piece)


@pytest.mark.parametrize("piece", [1, 1000], ids=["byte by byte", "whole"])
@pytest.mark.parametrize("script", OPEN_CONVERSATIONS)
def test_conversations_where_no_password_is_needed(script: list[Step], piece: int) -> None:
    play(SocksConversation(must_authenticate=False), script, piece=piece)


@pytest.mark.parametrize("script", CONVERSATIONS)
def test_trailing_bytes_wait_for_their_turn_or_are_the_tunnels(script: list[Step]) -> None:
    """All that the client ever sends arrives at once, with the tunnel's first bytes behind it."""
    core = SocksConversation()
    client = b"".join(
        step for at, step in enumerate(script) if isinstance(step, bytes) and not isinstance(script[at - 1], Command)
    )
    expected = [step for step in script if isinstance(step, Event)]
    commands = [step for step in script if isinstance(step, Command)]
    seen = list(core.receive(client + b"first bytes"))
    for command in commands:
        core.send(command)
        seen += core.receive(b"")
    assert seen == expected
    assert core.over is not (commands[-1:] == [Connected()])
    assert core.rest() == (b"" if core.over else b"first bytes")
    assert core.rest() == b""


def to_request() -> SocksConversation:
    core = SocksConversation()
    core.receive(PASSWORD_OFFERED + WHO)
    core.send(Authenticated())
    return core


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"", id="empty"),
        pytest.param("bücher.example".encode(), id="UTF-8"),
        pytest.param(b"b\xfccher.example", id="Latin-1"),
        pytest.param(b"example.com\0.evil.com", id="NUL"),
        pytest.param(b"example.com\r\nHost: evil.com", id="line end"),
        pytest.param(b"a b", id="space"),
        pytest.param(b"example.com:443", id="port inside"),
        pytest.param(b"user@example.com", id="user name"),
        pytest.param(b"a" * 255, id="longest"),
    ],
)
def test_a_malformed_name_is_handed_on_in_a_form_that_no_rule_allows(name: bytes) -> None:
    (event,) = to_request().receive(request(3, bytes((len(name),)) + name))
    assert isinstance(event, ConnectRequested)
    assert decide(NetworkRules(), event.host_text, event.port, can_ask=True).reason is Reason.MALFORMED_HOST


def test_an_ipv4_address_in_ipv6_is_that_ipv4_address_to_the_judge() -> None:
    (event,) = to_request().receive(request(4, bytes(10) + b"\xff\xff\x7f\x00\x00\x01"))
    assert isinstance(event, ConnectRequested)
    assert decide(NetworkRules(), event.host_text, event.port, can_ask=False).asked == "127.0.0.1:443"


def test_port_zero_is_for_the_judge() -> None:
    (event,) = to_request().receive(request(1, bytes(4), 0))
    assert isinstance(event, ConnectRequested)
    assert decide(NetworkRules(), event.host_text, event.port, can_ask=True).reason is Reason.MALFORMED_PORT


@pytest.mark.parametrize("reply", list(Reply))
def test_every_reply_goes_out_with_its_number(reply: Reply) -> None:
    core = to_request()
    core.receive(NAME)
    assert core.send(Refuse(reply)) == bytes((5, reply)) + ZEROES
    assert core.over


@pytest.mark.parametrize("command", [Authenticated(), NotAuthenticated(), Connected(), Refuse()])
def test_an_answer_to_nothing_is_a_mistake_of_the_caller(command: Command) -> None:
    with pytest.raises(RuntimeError, match="answers nothing: the conversation waits for the greeting"):
        SocksConversation().send(command)


def test_reading_pauses_while_an_answer_is_due_and_enough_is_kept() -> None:
    core = to_request()
    wanted = [core.wants_bytes]
    for data in (NAME, bytes(1 << 16)):
        core.receive(data)
        wanted.append(core.wants_bytes)
    assert wanted == [True, True, False]
    assert core.receive(bytes(LARGEST_REST)) == (Broken("it sent too much before it was answered"),)
    assert core.over
    assert core.receive(b"more") == ()
    assert core._buffer == b""


@given(pieces=st.lists(st.binary() | st.sampled_from([PASSWORD_OFFERED, BOTH_OFFERED, WHO, NAME])), must=st.booleans())
def test_no_bytes_break_it(pieces: list[bytes], *, must: bool) -> None:
    core = SocksConversation(must_authenticate=must)
    for piece in pieces:
        events = core.receive(piece)
        while events:
            last = events[-1]
            events = ()
            if isinstance(last, Authenticate):
                assert core.send(Authenticated()) == b"\x01\x00"
                events = core.receive(b"")
            elif isinstance(last, ConnectRequested):
                core.send(Connected())
        assert len(core._buffer) <= LARGEST_REST
