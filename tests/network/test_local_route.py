from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import UnavailableError
from stockade.network import local_route
from stockade.network.local_route import is_here, leads_here, question, source_of
from stockade.policy.destination import Destination

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a question")
UNICAST, LOCAL, BROADCAST, ANYCAST, MULTICAST = 1, 2, 3, 4, 5


def route(kind: int, number: int = 1) -> bytes:
    body = bytes((socket.AF_INET, 32, 0, 0, 254, 0, 0, kind)) + bytes(4)
    return struct.pack("=IHHII", 16 + len(body), 24, 0, number, 7) + body


def refusal(code: int, number: int = 1) -> bytes:
    return struct.pack("=IHHIIi", 36, 2, 0, number, 7, -code) + bytes(16)


@pytest.mark.parametrize(
    ("place", "family", "packed"),
    [
        ("198.51.100.7:443", socket.AF_INET, bytes((198, 51, 100, 7))),
        ("[2001:db8::1]:443", socket.AF_INET6, bytes.fromhex("20010db8000000000000000000000001")),
    ],
)
def test_the_question_is_about_the_connection_that_would_be_made(place: str, family: int, packed: bytes) -> None:
    asked = question(Destination.parse(place))
    length, kind, flags, number, port = struct.unpack_from("=IHHII", asked)
    assert (length, kind, flags, number, port) == (len(asked), 26, 1, 1, 0)
    assert asked[16:28] == bytes((family, len(packed) * 8, *bytes(10)))
    attributes = {}
    at = 28
    while at < len(asked):
        size, name = struct.unpack_from("=HH", asked, at)
        attributes[name] = asked[at + 4 : at + size]
        at += size + -size % 4
    assert attributes == {1: packed, 27: b"\x06", 29: b"\x01\xbb"}


def test_the_question_names_a_source() -> None:
    asked = question(Destination.parse("198.51.100.7:443"), bytes((10, 9, 0, 1)))
    assert asked[16:20] == bytes((socket.AF_INET, 32, 32, 0))
    assert struct.pack("=HH", 8, 2) + bytes((10, 9, 0, 1)) in asked


@pytest.mark.parametrize(
    ("attributes", "source"),
    [
        pytest.param(b"", b"", id="none"),
        pytest.param(struct.pack("=HHI", 8, 15, 254) + struct.pack("=HH", 8, 7) + b"abcd", b"abcd", id="the second"),
        pytest.param(
            struct.pack("=HHb", 5, 3, 1) + bytes(3) + struct.pack("=HH", 8, 7) + b"abcd", b"abcd", id="padded"
        ),
        pytest.param(struct.pack("=HH", 0, 7), b"", id="of no length"),
        pytest.param(struct.pack("=HH", 8, 7) + b"ab", b"ab", id="cut off"),
    ],
)
def test_the_source_that_the_kernel_would_take(attributes: bytes, source: bytes) -> None:
    assert source_of(route(UNICAST) + attributes) == source


@pytest.mark.parametrize(
    ("answer", "here"),
    [
        pytest.param(route(UNICAST), False, id="somewhere else"),
        pytest.param(route(LOCAL), True, id="local"),
        pytest.param(route(ANYCAST), True, id="anycast, of which this host is one"),
        pytest.param(route(BROADCAST), False, id="broadcast, which no TCP reaches"),
        pytest.param(route(MULTICAST), False, id="multicast, which no TCP reaches"),
        pytest.param(refusal(errno.ENETUNREACH), False, id="no route: the dial says so"),
        pytest.param(refusal(errno.EHOSTUNREACH), False, id="unreachable"),
        pytest.param(refusal(errno.EACCES), False, id="prohibited"),
    ],
)
def test_answers(answer: bytes, *, here: bool) -> None:
    assert is_here(answer) is here


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(route(UNICAST)[:20], id="half of one"),
        pytest.param(route(UNICAST, number=2), id="to another question"),
        pytest.param(refusal(errno.ENETUNREACH, number=2), id="a refusal of another question"),
        pytest.param(refusal(errno.EPERM), id="not permitted"),
        pytest.param(refusal(errno.EOPNOTSUPP), id="not supported"),
        pytest.param(refusal(errno.EINVAL), id="not understood"),
        pytest.param(refusal(0), id="an acknowledgement, which says nothing"),
        pytest.param(struct.pack("=IHHII", 16, 3, 0, 1, 7) + bytes(16), id="the end of a list"),
    ],
)
def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    with pytest.raises(OSError, match=r"\w"):
        is_here(answer)


@given(st.binary(max_size=64))
def test_no_bytes_raise_anything_else(answer: bytes) -> None:
    with suppress(OSError):
        assert is_here(answer) in (True, False)


@LINUX
@pytest.mark.parametrize("place", ["127.0.0.1:80", "127.200.0.9:80"])
def test_the_kernel_knows_what_is_here(place: str) -> None:
    assert leads_here(Destination.parse(place))


@LINUX
def test_no_descriptor_stays() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(50):
        leads_here(Destination.parse("127.0.0.1:80"))
    assert sorted(os.listdir("/proc/self/fd")) == before


@LINUX
@pytest.mark.parametrize("code", [errno.EPERM, errno.EMFILE, errno.EAGAIN])
def test_what_cannot_be_asked_is_no_answer(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def fail(_request: bytes) -> bytes:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local_route, "_ask", fail)
    with pytest.raises(UnavailableError, match=r"where 198\.51\.100\.7 leads cannot be found out") as caught:
        leads_here(Destination.parse("198.51.100.7:80"))
    assert "netlink" in caught.value.hint


def test_elsewhere_addresses_of_interfaces_alone_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not leads_here(Destination.parse("127.0.0.1:80"))


@LINUX
def test_a_route_that_hangs_on_the_source_address_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = bytes((10, 9, 0, 1))
    answers = [route(UNICAST) + struct.pack("=HH", 8, 7) + source, route(LOCAL)]
    asked: list[bytes] = []

    def ask(request: bytes) -> bytes:
        asked.append(request)
        return answers[len(asked) - 1]

    monkeypatch.setattr(local_route, "_ask", ask)
    there = Destination.parse("198.51.100.7:443")
    assert leads_here(there)
    assert asked == [question(there), question(there, source)]
