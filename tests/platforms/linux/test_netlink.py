from __future__ import annotations

from errno import EOPNOTSUPP, EPERM, EPROTONOSUPPORT
from sys import byteorder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.netlink import NLM_F_ACK, Request, attribute, encode, nested, perform, read_answers


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, byteorder, signed=value < 0)


def answer(place: int, error: int, kind: int = 2) -> bytes:
    return number(36, 4) + number(kind, 2) + bytes(2) + number(place, 4) + bytes(4) + number(-error, 4) + bytes(16)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(attribute(7, b""), number(4, 2) + number(7, 2), id="empty"),
        pytest.param(attribute(7, b"four"), number(8, 2) + number(7, 2) + b"four", id="aligned"),
        pytest.param(attribute(7, b"fiver"), number(9, 2) + number(7, 2) + b"fiver\0\0\0", id="padded"),
        pytest.param(
            nested(3, attribute(1, b"a"), attribute(2, b"")),
            number(16, 2) + number(0x8003, 2) + number(5, 2) + number(1, 2) + b"a\0\0\0" + number(4, 2) + number(2, 2),
            id="nested",
        ),
    ],
)
def test_an_attribute_is_its_length_its_number_and_its_padded_bytes(made: bytes, expected: bytes) -> None:
    assert made == expected


def test_requests_are_numbered_from_one() -> None:
    first, second = Request(20, 0x600, b"1234", b"one"), Request(24, NLM_F_ACK, b"", b"two")
    assert encode((first, second)) == (
        number(20, 4) + number(20, 2) + number(0x601, 2) + number(1, 4) + bytes(4) + b"1234"
        + number(16, 4) + number(24, 2) + number(0x5, 2) + number(2, 4) + bytes(4)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(answer(2, 0), [(2, 0)], id="done"),
        pytest.param(answer(1, EPERM) + answer(2, 0), [(1, EPERM), (2, 0)], id="two"),
        pytest.param(answer(1, 5, kind=3) + answer(2, EPERM), [(2, EPERM)], id="another-kind-of-message"),
    ],
)
def test_answers_are_read(data: bytes, expected: list[tuple[int, int]]) -> None:
    assert read_answers(data) == expected


@given(st.binary(max_size=100))
def test_no_answer_is_too_strange(data: bytes) -> None:
    assert len(read_answers(data)) <= len(data) // 16


@pytest.mark.parametrize(
    ("protocol", "kind", "expected"),
    [
        pytest.param(0, 1000, (EOPNOTSUPP, b"the step"), id="refused"),
        pytest.param(31, 16, (EPROTONOSUPPORT, b"the opening"), id="no-such-protocol"),
    ],
)
def test_a_refusal_names_the_step(protocol: int, kind: int, expected: tuple[int, bytes]) -> None:
    with pytest.raises(OSError, match="the") as caught:
        perform(protocol, (Request(kind, NLM_F_ACK, bytes(4), b"the step"),), b"the opening")
    assert (caught.value.errno, caught.value.filename) == expected


def test_silence_is_no_success() -> None:
    with pytest.raises(OSError, match="no answer"):
        perform(0, (Request(1, 0, b"", b"NLMSG_NOOP, unasked"),), b"the opening")
