from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.client_flight import LARGEST, ClientFlight, Refused, begins_tls

if TYPE_CHECKING:
    from stockade.network.server_name import Hello


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def message(name: str, more: bytes = b"") -> bytes:
    extensions = b"\0\0" + vector(vector(b"\0" + vector(name.encode()))) + more
    body = b"\x03\x03" + bytes(32) + vector(b"", 1) + vector(b"\x13\x01") + vector(b"\0", 1) + vector(extensions)
    return b"\1" + vector(body, 3)


def records(data: bytes, size: int = 1 << 14, *, kind: int = 22, version: bytes = b"\3\1") -> bytes:
    return b"".join(bytes([kind]) + version + vector(data[at : at + size]) for at in range(0, len(data), size))


FIRST = records(message("web.test"))
ALERT, CHANGE = records(b"\1\0", kind=21), records(b"\1", kind=20)
EARLY = records(message("web.test", b"\0\x2a\0\0"))
DATA = records(bytes(100), kind=23)
LATER = "a message before the server's answer is no client hello"


def judge(hello: Hello) -> str:
    return "" if hello.host_text == "web.test" else f"another name: {hello.host_text}"


def said(data: bytes, piece: int) -> tuple[bytes, str, bool]:
    """Say something in pieces; return what goes on before it is refused, why it is, and whether some is held."""
    flight, passed = ClientFlight(judge), b""
    for at in range(0, len(data), piece):
        some = flight.receive(data[at : at + piece])
        if isinstance(some, Refused):
            assert not flight.holds
            assert flight.receive(FIRST) == some
            return passed, some.why, False
        passed += some
    return passed, "", flight.holds


def told(data: bytes) -> bool | None:
    """Say whether something begins TLS, once that can be told; more of it never tells otherwise."""
    answers = [begins_tls(data[:size]) for size in range(1, len(data) + 1)]
    known = [each for each in answers if each is not None]
    assert answers == [None] * (len(answers) - len(known)) + known
    assert len(set(known)) <= 1
    return known[0] if known else None


OTHER_VERSIONS = (0, 1, 2, 4, 5, 15, 16, 127, 255)


@pytest.mark.parametrize("kind", range(20, 25))
@pytest.mark.parametrize("version", [*OTHER_VERSIONS, 3])
def test_tls_is_what_a_server_might_skip_and_the_record_behind_it(kind: int, version: int) -> None:
    for size in range(7):
        for payload in (bytes(size), b"\1\x5a\1\x5a\1\x5a"[:size], b"\2\0\0\0\0\0"[:size], b"\x16" * size):
            begins_hello = kind == 22 and payload[:1] == b"\1"
            record = bytes([kind, version, 1]) + vector(payload)
            assert told(record + FIRST) is (version == 3 or size <= 4 or begins_hello)
            assert told(record + b"\0" + FIRST) is (version == 3 or begins_hello)


@pytest.mark.parametrize("version", [*OTHER_VERSIONS, 3])
def test_a_hello_is_tls_whatever_its_version_and_size(version: int) -> None:
    hello = message("web.test")
    for size in (1, 3, 4, 5, 50, 1 << 14):
        assert told(records(hello, size, version=bytes([version, 0]))) is True
    # Java takes records of twice the size that the standard has.
    large = message("web.test", b"\0\x15" + vector(bytes(60_000)))
    assert begins_tls(bytes([22, version, 3]) + vector(large)) is True


@pytest.mark.parametrize("first", [*range(20), *range(25, 256)])
def test_no_other_first_byte_begins_tls(first: int) -> None:
    assert told(bytes([first]) + FIRST[1:]) is False


@pytest.mark.parametrize("size", range(270, 290))
def test_a_message_of_mongodb_is_no_tls(size: int) -> None:
    """It begins with its length and with its number, the smallest digits first. Many drivers count from 1."""
    for number in (*range(256), 0xFFFF, 0x01020304, 0xFF000001):
        assert told(struct.pack("<iIii", size, number, 0, 2013) + bytes(8)) is False
    # What may be a hello, or a record to skip and another one behind it, stays TLS.
    assert told(struct.pack("<iIii", size, 0x0123, 0, 2013)) is (size == 278)
    assert told(struct.pack("<iIii", size, 0x00160001, 0, 2013)) is (276 <= size <= 280)


@pytest.mark.parametrize("size", range(20, 25))
@pytest.mark.parametrize("version", [b"\x2f", b"\xfd\5", b"\x85\6"])
def test_a_handshake_of_minecraft_is_no_tls(size: int, version: bytes) -> None:
    host = b"h" * (size - 5 - len(version))
    assert told(bytes([size, 0]) + version + vector(host, 1) + b"\x63\xdd\1") is False


@pytest.mark.parametrize("data", [b"\x15", b"\x16\1\0\0", b"\x16\1\0\0\x09", b"\x14\1\0\0\4\0\0\0\0"])
def test_what_is_too_short_tells_nothing(data: bytes) -> None:
    assert told(data) is None


@given(st.binary(min_size=1, max_size=20))
def test_of_what_begins_tls_in_another_version_nothing_goes_on(data: bytes) -> None:
    for kind in range(20, 25):
        said_first = bytes([kind]) + data
        if told(said_first) and data[0] != 3:
            assert isinstance(ClientFlight(judge).receive(said_first), Refused)
        assert told(said_first + FIRST) is not None


PIECES = pytest.mark.parametrize("piece", [1, 3, 1 << 20], ids=["byte by byte", "by threes", "whole"])


@PIECES
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(FIRST, id="hello"),
        pytest.param(records(message("web.test"), 1), id="a record for each byte"),
        pytest.param(records(message("web.test"), 7), id="small records"),
        pytest.param(records(message("web.test", b"\0\x15" + vector(bytes(20_000)))), id="two full records"),
        pytest.param(records(message("web.test"), version=b"\3\0"), id="an old version"),
        pytest.param(FIRST + FIRST, id="a second hello"),
        pytest.param(FIRST + CHANGE + records(message("web.test"), 50), id="a change of cipher and a second hello"),
        pytest.param(FIRST + ALERT, id="an alert at the end"),
        pytest.param(EARLY + CHANGE + DATA * 50 + FIRST + DATA, id="early data and a second hello"),
    ],
)
def test_what_clients_say_goes_on_unchanged(data: bytes, piece: int) -> None:
    assert said(data, piece) == (data, "", False)


@PIECES
@pytest.mark.parametrize(
    ("goes_on", "data", "why"),
    [
        pytest.param(b"", ALERT + FIRST, "an alert stands before its hello", id="an alert"),
        pytest.param(b"", CHANGE + FIRST, "a change of cipher stands before its hello", id="a change of cipher"),
        pytest.param(b"", b"\x18\3\1\0\1x" + FIRST, "a heartbeat stands before its hello", id="a heartbeat"),
        pytest.param(FIRST, b"\x18\3\1\0\1x" + FIRST, "a heartbeat stands behind its hello", id="a heartbeat behind"),
        pytest.param(b"", DATA + FIRST, "application data stands before its hello", id="application data"),
        *(
            pytest.param(
                b"",
                records(message("web.test"), version=version),
                "a record before the server's answer has another version than 3",
                id=f"version {version[0]}",
            )
            for version in (b"\0\0", b"\2\0", b"\4\1", b"\xff\1")
        ),
        pytest.param(
            b"", records(b"\1", 1) + b"\x16\2", "a record before the server's answer has another version than 3", id="2"
        ),
        pytest.param(b"", b"\x16\3\1\0\0" + FIRST, "a record of its hello is empty or too large", id="an empty record"),
        pytest.param(b"", b"\x16\3\1\x40\1", "a record of its hello is empty or too large", id="a large record"),
        pytest.param(b"", records(b"\0\0\0\0") + FIRST, LATER, id="another message"),
        pytest.param(b"", records(b"\1\xff\xff\xff"), "its hello is too large", id="a large hello"),
        pytest.param(b"", records(b"\1\0\0\x0a" + bytes(10)), "a length in its hello does not fit", id="malformed"),
        pytest.param(
            b"",
            records(message("web.test") * 2),
            "something stands behind its hello in the same record",
            id="two in one record",
        ),
        *(
            pytest.param(
                b"",
                records(message("web.test")[:20]) + between + records(message("web.test")[20:]),
                f"{words} stands between the records of its hello",
                id=f"{words} between",
            )
            for between, words in (
                (ALERT, "an alert"),
                (CHANGE, "a change of cipher"),
                (DATA, "application data"),
                (b"GET ", "something that is no TLS"),
            )
        ),
        pytest.param(FIRST, b"more", "something that is no TLS stands behind its hello", id="no TLS behind"),
        pytest.param(
            FIRST, DATA, "application data comes before the server's answer, and was not offered", id="data not offered"
        ),
        pytest.param(EARLY, b"\x17\3\3\0\0", "a record of its early data is empty or too large", id="empty early data"),
        pytest.param(
            EARLY, b"\x17\3\3\x42\0", "a record of its early data is empty or too large", id="large early data"
        ),
        pytest.param(
            FIRST, b"\x15\3\3\0\x1a", "an alert has another size than any client sends", id="a large alert behind"
        ),
        pytest.param(
            FIRST, b"\x14\3\3\0\0", "a change of cipher has another size than any client sends", id="an empty change"
        ),
        pytest.param(FIRST, records(b"\x10\0\0\0"), LATER, id="another message behind"),
        pytest.param(
            EARLY + DATA,
            records(message("web.test"), 20)[:50] + DATA,
            "application data stands between the records of its hello",
            id="early data in a second hello",
        ),
        pytest.param(FIRST * 2, FIRST, "there are more than two of them", id="three hellos"),
        pytest.param(
            FIRST + CHANGE * 4 + ALERT * 4,
            CHANGE,
            "too many alerts and changes of cipher stand behind its hello",
            id="many strays",
        ),
    ],
)
def test_whatever_a_server_might_read_otherwise_is_refused(goes_on: bytes, data: bytes, why: str, piece: int) -> None:
    passed, told, _ = said(goes_on + data, piece)
    assert told == f"its TLS hello cannot be read: {why}"
    assert passed == (goes_on if piece < len(goes_on) else b"")


@PIECES
@pytest.mark.parametrize("before", [b"", FIRST, FIRST + CHANGE, EARLY + CHANGE + DATA])
@pytest.mark.parametrize("size", [1, 50, 1 << 14])
def test_every_hello_is_judged_before_any_of_it_goes_on(before: bytes, size: int, piece: int) -> None:
    passed, why, _ = said(before + records(message("evil.test"), size), piece)
    assert (passed, why) == (before if piece < len(before) else b"", "another name: evil.test")


@PIECES
def test_less_than_all_of_a_hello_is_held(piece: int) -> None:
    assert said(FIRST[:-1], piece) == (b"", "", True)
    assert said(FIRST + CHANGE[:-1], piece) == (FIRST, "", True)
    assert said(FIRST + FIRST[:-1], piece) == (FIRST, "", True)


def test_early_data_is_not_held() -> None:
    flight = ClientFlight(judge)
    assert flight.receive(EARLY + DATA[:20]) == EARLY + DATA[:20]
    assert flight.receive(DATA[20:60]) == DATA[20:60]
    assert not flight.holds
    assert flight.receive(DATA[60:] + FIRST[:9]) == DATA[60:]
    assert flight.rest() == FIRST[:9]


def test_a_hello_in_the_smallest_records_takes_no_more_memory_than_another() -> None:
    whole = message("web.test", b"\0\x15" + vector(bytes(30_000)))
    passed, why, _ = said(records(whole, 1), 5_000)
    assert (passed, why) == (b"", "its TLS hello cannot be read: its hello is too large")


@given(st.lists(st.sampled_from([FIRST, EARLY, ALERT, CHANGE, DATA]) | st.binary(max_size=30)), st.integers(1, 400))
def test_no_bytes_break_it_and_what_goes_on_is_what_came(parts: list[bytes], piece: int) -> None:
    data = b"".join(parts)
    flight, passed = ClientFlight(judge), b""
    for at in range(0, len(data), piece):
        some = flight.receive(data[at : at + piece])
        if isinstance(some, Refused):
            break
        passed += some
        assert len(flight._held) <= LARGEST
        assert len(flight._message) <= LARGEST
        if not flight.has_said_hello:
            assert passed == b""
    else:
        assert passed + flight.rest() == data
    assert data.startswith(passed)
