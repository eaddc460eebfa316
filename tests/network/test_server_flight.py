from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.client_flight import LARGEST
from stockade.network.server_flight import RETRY, ServerFlight


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def hello(random: bytes) -> bytes:
    return b"\2" + vector(b"\3\3" + random + vector(bytes(32), 1) + b"\x13\1\0" + vector(b"\0\x2b\0\2\3\4"), 3)


def records(data: bytes, size: int = 1 << 14, kind: int = 22) -> bytes:
    return b"".join(bytes([kind]) + b"\3\3" + vector(data[at : at + size]) for at in range(0, len(data), size))


REAL, AGAIN = hello(bytes(range(32))), hello(RETRY)
WARNING, CHANGE = records(b"\1\x70", kind=21), records(b"\1", kind=20)

ANSWERS = [
    pytest.param(b"", records(REAL), True, id="a hello"),
    pytest.param(b"", records(REAL, 1), True, id="a hello in many records"),
    pytest.param(b"", records(REAL + b"\x0b\0\1\0" + bytes(256)), True, id="a hello and more in one record"),
    pytest.param(WARNING, records(REAL), True, id="a warning before the hello"),
    pytest.param(records(AGAIN) + CHANGE, records(REAL), True, id="a request for another hello before it"),
    pytest.param(records(AGAIN, 1) + CHANGE, records(REAL, 3), True, id="both in many records"),
    pytest.param(b"", records(AGAIN + REAL), True, id="both in one record"),
    pytest.param(records(b"\0\0\0\0"), records(REAL), True, id="a request to begin"),
    pytest.param(b"", b"S", False, id="something that is no TLS"),
    pytest.param(b"", b"\x16\2\0\0\0", False, id="another version"),
    pytest.param(records(AGAIN), b"\x17", False, id="application data"),
    pytest.param(b"", records(b"\2\0\0\2\3\3"), True, id="a hello that is too short"),
    pytest.param(b"", records(b"\x0b\xff\xff\xff"), False, id="a message that is too large"),
]


@pytest.mark.parametrize("piece", [1, 3, 1 << 20], ids=["byte by byte", "by threes", "whole"])
@pytest.mark.parametrize(("before", "answer", "says_hello"), ANSWERS)
def test_when_a_server_has_answered(before: bytes, answer: bytes, piece: int, *, says_hello: bool) -> None:
    flight = ServerFlight()
    for at in range(0, len(before), piece):
        assert not flight.receive(before[at : at + piece])
    told = [flight.receive(answer[at : at + piece]) for at in range(0, len(answer), piece)]
    assert told[-1]
    assert flight.said_hello is says_hello
    assert flight.receive(records(AGAIN))


@pytest.mark.parametrize("data", [records(AGAIN), records(REAL)[:-1], records(REAL[:37], 5), WARNING * 9, CHANGE])
def test_anything_less_is_no_answer(data: bytes) -> None:
    assert not ServerFlight().receive(data)


@given(st.lists(st.sampled_from([records(AGAIN), WARNING, records(REAL)]) | st.binary(max_size=30)))
def test_no_bytes_break_it(parts: list[bytes]) -> None:
    flight = ServerFlight()
    for part in parts:
        flight.receive(part)
        assert len(flight._records) + len(flight._message) <= 4 * LARGEST
