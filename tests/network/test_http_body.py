from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.http_body import BodyWriter, Part, reader
from stockade.network.http_head import FlawError
from stockade.network.http_message import CHUNKED, NO_BODY, UNTIL_CLOSE, Body, BodyKind, Data, End, Headers


def length(size: int) -> Body:
    return Body(BodyKind.LENGTH, size)


def read(body: Body, data: bytes, piece: int) -> tuple[bytes, End | None, bytes]:
    """Return the content, its end if it came, and what was behind it."""
    source = reader(body)
    content = b""
    for at in range(0, max(len(data), 1), piece):
        parts, rest = source.read(data[at : at + piece])
        content += b"".join(part.data for part in parts if isinstance(part, Data))
        if parts and isinstance(parts[-1], End):
            return content, parts[-1], rest + data[at + piece :]
        assert rest == b""
    return content, None, b""


@pytest.mark.parametrize("piece", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("behind", [b"", b"GET"])
@pytest.mark.parametrize(
    ("body", "data", "content", "trailers"),
    [
        pytest.param(NO_BODY, b"", b"", (), id="none"),
        pytest.param(length(0), b"", b"", (), id="length zero"),
        pytest.param(length(5), b"hello", b"hello", (), id="length"),
        pytest.param(CHUNKED, b"0\r\n\r\n", b"", (), id="no chunk"),
        pytest.param(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n", b"hello", (), id="one chunk"),
        pytest.param(CHUNKED, b"A\r\n0123456789\r\n1\r\n\n\r\n00\r\n\r\n", b"0123456789\n", (), id="two chunks"),
        pytest.param(CHUNKED, b'2;a="b\t c";d\r\n\r\n\r\n0;x\r\n\r\n', b"\r\n", (), id="extensions"),
        pytest.param(CHUNKED, b"0\r\nA: b\r\nC:\r\n\r\n", b"", ((b"a", b"b"), (b"c", b"")), id="trailers"),
    ],
)
def test_a_body_is_read_up_to_its_end(
    body: Body, data: bytes, content: bytes, trailers: Headers, behind: bytes, piece: int
) -> None:
    assert read(body, data + behind, piece) == (content, End(trailers), behind)


def test_a_body_may_end_with_the_connection() -> None:
    source = reader(UNTIL_CLOSE)
    assert source.read(b"hi") == ([Data(b"hi")], b"")
    assert source.read(b"") == ([], b"")
    assert source.close() == [End()]


@pytest.mark.parametrize("body", [length(3), CHUNKED], ids=["length", "chunks"])
def test_a_body_that_is_cut_short_is_a_flaw(body: Body) -> None:
    source = reader(body)
    source.read(b"2\r")
    with pytest.raises(FlawError, match="cut short"):
        source.close()


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\r\n", id="no size"),
        pytest.param(b"-1\r\n", id="negative"),
        pytest.param(b"+1\r\n", id="signed"),
        pytest.param(b"0x1\r\n", id="prefix"),
        pytest.param(b"1_0\r\n", id="underscore"),
        pytest.param(b" 1\r\n", id="blank before"),
        pytest.param(b"1 \r\n", id="blank behind"),
        pytest.param(b"1 ;a\r\n", id="blank before the extension"),
        pytest.param(b"1,2\r\n", id="comma"),
        pytest.param(b"1" * 16 + b"\r\n", id="too many digits"),
        pytest.param(b"1\n", id="LF alone"),
        pytest.param(b"1;a\nb\r\n", id="LF in the extension"),
        pytest.param(b"1;a\rb\r\n", id="CR in the extension"),
        pytest.param(b"1;\0\r\n", id="NUL in the extension"),
        pytest.param(b"1;\xe9\r\n", id="extension not ASCII"),
        pytest.param(b"1;" + b"a" * 300, id="extension without an end"),
        pytest.param(b"1\r\nabc", id="longer than it says"),
        pytest.param(b"1\r\na\n", id="chunk ends in LF alone"),
        pytest.param(b"1\r\na\r\r\n", id="chunk ends in two CR"),
        pytest.param(b"0\r\n\n", id="trailers end in LF alone"),
        pytest.param(b"0\r\nA: b\n\r\n", id="trailer ends in LF alone"),
        pytest.param(b"0\r\nA : b\r\n\r\n", id="trailer with a blank before the colon"),
        pytest.param(b"0\r\n A: b\r\n\r\n", id="folded trailer"),
        pytest.param(b"0\r\nA: b" + b"c" * 20_000, id="trailer without an end"),
        pytest.param(b"0\r\n" + b"A: b\r\n" * 3000, id="trailers without an end"),
    ],
)
def test_what_others_might_read_differently_is_a_flaw(data: bytes, piece: int) -> None:
    with pytest.raises(FlawError):
        read(CHUNKED, data, piece)


def test_tiny_chunks_are_passed_on_together() -> None:
    assert reader(CHUNKED).read(b"1\r\na\r\n" * 1000)[0] == [Data(b"a" * 1000)]


def test_a_body_of_known_length_is_not_copied() -> None:
    data = bytes(1000)
    (part,), _ = reader(length(5000)).read(data)
    assert isinstance(part, Data)
    assert part.data is data
    assert BodyWriter(length(5000)).data(data) is data


@given(st.lists(st.binary(max_size=20)), st.sampled_from([CHUNKED, UNTIL_CLOSE, None]), st.integers(1, 9))
def test_what_is_written_is_read_again(pieces: list[bytes], kind: Body | None, piece: int) -> None:
    whole = b"".join(pieces)
    body = kind or length(len(whole))
    writer = BodyWriter(body)
    data = b"".join([*map(writer.data, pieces), writer.end()])
    content, end, rest = read(body, data, piece)
    assert (content, rest) == (whole, b"")
    assert (end is None) is (kind is UNTIL_CLOSE)


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"1\r\na\r\n", b"0\r\n", b"\r\n", b"f;"])))
def test_no_bytes_raise_anything_but_a_flaw(pieces: list[bytes]) -> None:
    source = reader(CHUNKED)
    parts: list[Part] = []
    with contextlib.suppress(FlawError):
        for piece in pieces:
            parts += source.read(piece)[0]
            if parts and isinstance(parts[-1], End):
                break
