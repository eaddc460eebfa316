from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.dns import (
    LARGEST_QUERY,
    Code,
    Edns,
    Frames,
    Query,
    RecordType,
    Rejected,
    answer,
    frame,
    read_query,
)
from stockade.policy.decision import Reason, decide
from stockade.policy.network_rules import NetworkRules

NAME = b"\x07ExAmple\x03com\0"
QUESTION = NAME + b"\0\x01\0\x01"
OPT = b"\0\0\x29\x10\x00\0\0\x80\0\0\0"
V4 = IPv4Address("198.18.1.0")
V6 = IPv6Address("fd73:746f:636b::100")


def number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def query(
    question: bytes = QUESTION,
    extra: bytes = b"",
    *,
    flags: int = 0x0100,
    counts: tuple[int, int, int, int] | None = None,
) -> bytes:
    numbers = counts or (1, 0, 0, 1 if extra else 0)
    return number(0x1234) + number(flags) + b"".join(map(number, numbers)) + question + extra


def read(message: bytes) -> Query:
    found = read_query(message)
    assert isinstance(found, Query)
    return found


PLAIN = Query(0x1234, 0x0100, "ExAmple.com", RecordType.A, QUESTION)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(query(), PLAIN, id="plain"),
        pytest.param(query(flags=0x0030), PLAIN.but(flags=0x0010), id="flags"),
        pytest.param(query(extra=OPT), PLAIN.but(edns=Edns(4096, 0, dnssec=True)), id="EDNS"),
        pytest.param(
            query(extra=OPT[:-2] + number(3) + b"abc"), PLAIN.but(edns=Edns(4096, 0, dnssec=True)), id="EDNS options"
        ),
        pytest.param(
            query(extra=b"\x01x\xc0\x0c" + b"\0\xfa\0\xff\0\0\0\0" + number(2) + b"ab" + OPT, counts=(1, 0, 0, 2)),
            PLAIN.but(edns=Edns(4096, 0, dnssec=True)),
            id="another record before EDNS",
        ),
        pytest.param(query(b"\0\0\x02\0\x01"), PLAIN.but(name="", type=2, question=b"\0\0\x02\0\x01"), id="the root"),
    ],
)
def test_a_question_is_read_whole(message: bytes, expected: Query) -> None:
    assert read_query(message) == expected


FORMERR = number(0x1234) + number(0x8101) + bytes(8)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(query(counts=(0, 0, 0, 0)), id="no question"),
        pytest.param(query(QUESTION * 2, counts=(2, 0, 0, 0)), id="two questions"),
        pytest.param(query(QUESTION * 2, counts=(65535, 0, 0, 0)), id="too many questions"),
        pytest.param(query(counts=(1, 1, 0, 0)), id="an answer in it"),
        pytest.param(query(counts=(1, 0, 1, 0)), id="an authority in it"),
        pytest.param(query(extra=OPT * 9, counts=(1, 0, 0, 9)), id="too many records"),
        pytest.param(query(extra=OPT * 2, counts=(1, 0, 0, 2)), id="EDNS twice"),
        pytest.param(query(extra=b"\x01x" + OPT), id="EDNS of a name"),
        pytest.param(query(extra=OPT[:-1]), id="EDNS cut short"),
        pytest.param(query(extra=OPT[:-2] + number(9)), id="EDNS options cut short"),
        pytest.param(query(extra=b"\x80" + OPT), id="record with a malformed name"),
        pytest.param(query(counts=(1, 0, 0, 1)), id="a record missing"),
        pytest.param(query() + b"x", id="bytes behind"),
        pytest.param(query(QUESTION[:-1]), id="cut short"),
        pytest.param(query(b""), id="name missing"),
        pytest.param(query(b"\x07exam"), id="label cut short"),
        pytest.param(query(b"\xc0\x0c\0\x01\0\x01"), id="name that points to itself"),
        pytest.param(query(b"\x01a\xc0\x0c\0\x01\0\x01"), id="name that loops"),
        pytest.param(query(b"\x40" + b"a" * 64 + b"\0\0\x01\0\x01"), id="label too long"),
        pytest.param(query((b"\x3f" + b"a" * 63) * 4 + b"\0\0\x01\0\x01"), id="name too long"),
    ],
)
def test_a_malformed_question_is_told_so(message: bytes) -> None:
    found = read_query(message)
    assert isinstance(found, Rejected)
    assert found.answer == FORMERR


def test_the_longest_name_is_taken() -> None:
    name = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\0"
    assert len(name) == 255
    assert len(read(query(name + b"\0\x01\0\x01")).name) == 253


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(query()[:11], b"", id="shorter than a head"),
        pytest.param(query(flags=0x8180), b"", id="an answer gets no answer"),
        pytest.param(query(flags=0x2100), number(0x1234) + number(0xA104) + bytes(8), id="an update"),
        pytest.param(
            query(NAME + b"\0\x10\0\x03"),
            number(0x1234) + number(0x8185) + number(1) + bytes(6) + NAME + b"\0\x10\0\x03",
            id="another class",
        ),
        pytest.param(
            query(extra=b"\0\0\x29\x10\x00\0\x01\0\0\0\0"),
            number(0x1234)
            + number(0x8180)
            + number(1)
            + bytes(4)
            + number(1)
            + QUESTION
            + b"\0\0\x29\x04\xd0\x01\0\0\0\0\0",
            id="another version of EDNS",
        ),
    ],
)
def test_what_we_do_not_answer(message: bytes, expected: bytes) -> None:
    found = read_query(message)
    assert isinstance(found, Rejected)
    assert found.answer == expected


HEAD = number(0x1234) + number(0x8180)


@pytest.mark.parametrize(
    ("asked", "built", "expected"),
    [
        pytest.param(
            PLAIN,
            answer(PLAIN, addresses=(V4, V6), time_to_live=60),
            HEAD + number(1) * 2 + bytes(4) + QUESTION + b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + V4.packed,
            id="IPv4",
        ),
        pytest.param(
            PLAIN.but(type=28),
            answer(PLAIN.but(type=28), addresses=(V4, V6)),
            HEAD + number(1) * 2 + bytes(4) + QUESTION + b"\xc0\x0c\0\x1c\0\x01\0\0\0\0\0\x10" + V6.packed,
            id="IPv6",
        ),
        pytest.param(
            PLAIN.but(type=65),
            answer(PLAIN.but(type=65), addresses=(V4, V6)),
            HEAD + number(1) + bytes(6) + QUESTION,
            id="no such record",
        ),
        pytest.param(
            PLAIN,
            answer(PLAIN, Code.NO_SUCH_NAME),
            number(0x1234) + number(0x8183) + number(1) + bytes(6) + QUESTION,
            id="no such name",
        ),
        pytest.param(
            PLAIN,
            answer(PLAIN.but(edns=Edns(4096, 0, dnssec=True)), Code.NOT_IMPLEMENTED),
            number(0x1234)
            + number(0x8184)
            + number(1)
            + bytes(4)
            + number(1)
            + QUESTION
            + b"\0\0\x29\x04\xd0\0\0\x80\0\0\0",
            id="not implemented, with EDNS",
        ),
    ],
)
def test_answers(asked: Query, built: bytes, expected: bytes) -> None:
    assert built == expected
    assert read_query(built) == Rejected("it is an answer itself")
    assert asked.question in built


@pytest.mark.parametrize(
    ("edns", "over_udp", "count", "cut"),
    [
        pytest.param(None, True, 30, True, id="old datagram"),
        pytest.param(Edns(4096, 0, dnssec=False), True, 74, True, id="larger datagram"),
        pytest.param(Edns(100, 0, dnssec=False), True, 29, True, id="no smaller than 512"),
        pytest.param(None, False, 200, False, id="TCP"),
    ],
)
def test_what_does_not_fit_is_cut_and_said_to_be(edns: Edns | None, count: int, *, over_udp: bool, cut: bool) -> None:
    message = answer(PLAIN.but(edns=edns), addresses=[V4] * 200, over_udp=over_udp)
    assert int.from_bytes(message[6:8], "big") == count
    assert bool(message[2] & 0x02) is cut
    assert not over_udp or len(message) <= 1232


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"\x0bexample.com\0", id="dot in a label"),
        pytest.param(b"\x03a\\b\x03com\0", id="backslash"),
        pytest.param(b"\x04b\xc3\xbcc\x03com\0", id="not ASCII"),
        pytest.param(b"\x03a\0b\x03com\0", id="NUL"),
        pytest.param(b"\x03a b\x03com\0", id="space"),
        pytest.param(b"\0", id="the root"),
    ],
)
def test_a_malformed_name_is_handed_on_in_a_form_that_no_rule_allows(name: bytes) -> None:
    found = read(query(name + b"\0\x01\0\x01"))
    assert decide(NetworkRules(), found.name, 443, can_ask=True).reason is Reason.MALFORMED_HOST


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_messages_over_tcp_are_cut_apart(size: int) -> None:
    frames = Frames()
    data = frame(b"one") + frame(b"") + frame(b"three") + b"\0"
    found = [message for at in range(0, len(data), size) for message in frames.receive(data[at : at + size])]
    assert found == [b"one", b"", b"three"]
    assert not frames.broken


def test_a_message_that_is_too_large_breaks_the_connection() -> None:
    frames = Frames()
    assert frames.receive(frame(b"one") + number(LARGEST_QUERY + 1) + bytes(100)) == (b"one",)
    assert frames.broken
    assert frames.receive(frame(b"two")) == ()
    assert frames._buffer == b""


@given(st.binary(max_size=80), st.integers(0, 40), st.integers(0, 10))
def test_no_bytes_break_it(junk: bytes, at: int, gone: int) -> None:
    whole = query(extra=OPT)
    for message in (junk, query(junk), query(extra=junk), whole[:at] + junk + whole[at + gone :]):
        found = read_query(message)
        reply = found.answer if isinstance(found, Rejected) else answer(found, addresses=(V4, V6))
        assert not reply or reply[:2] == message[:2]
        assert not reply or reply[2] & 0x80
    frames = Frames()
    frames.receive(junk)
    assert len(frames._buffer) <= LARGEST_QUERY + 2
