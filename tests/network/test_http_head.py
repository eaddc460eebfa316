from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.http_head import (
    LARGEST_HEAD,
    LARGEST_LINE,
    MOST_HEADERS,
    FlawError,
    HeadScanner,
    RequestHead,
    ResponseHead,
    read_request,
    read_response,
    read_trailers,
)
from stockade.network.http_message import CHUNKED, NO_BODY, Body, BodyKind

LINE = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"


def test_a_request_is_read_whole() -> None:
    head = LINE + b"Accept:\t a, b \r\nX-Empty:\r\nX-Odd!#$%&'*+.^_`|~: caf\xe9\r\nContent-Length: 007\r\n\r\n"
    assert read_request(head) == RequestHead(
        b"GET",
        b"http://a/",
        b"1.1",
        (
            (b"host", b"a"),
            (b"accept", b"a, b"),
            (b"x-empty", b""),
            (b"x-odd!#$%&'*+.^_`|~", b"caf\xe9"),
            (b"content-length", b"007"),
        ),
        Body(BodyKind.LENGTH, 7),
    )


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", ResponseHead(200, b"OK", b"1.1", (), None), id="nothing declared"),
        pytest.param(b"HTTP/1.0 404\r\n\r\n", ResponseHead(404, b"", b"1.0", (), None), id="no reason"),
        pytest.param(b"HTTP/1.1 100 \r\n\r\n", ResponseHead(100, b"", b"1.1", (), None), id="interim"),
        pytest.param(
            b"HTTP/1.1 101 x\r\nUpgrade: a\r\n\r\n",
            ResponseHead(101, b"x", b"1.1", ((b"upgrade", b"a"),), None),
            id="101",
        ),
        pytest.param(
            b"HTTP/1.1 200 N\xf3\r\nTransfer-Encoding: chunked\r\n\r\n",
            ResponseHead(200, b"N\xf3", b"1.1", ((b"transfer-encoding", b"chunked"),), CHUNKED),
            id="chunks",
        ),
    ],
)
def test_a_response_is_read_whole(head: bytes, expected: ResponseHead) -> None:
    assert read_response(head) == expected


# Each is what one reader or another takes, or takes for something else.
FLAWED_HEADERS = [
    pytest.param(b"Content-Length: 3\r\nContent-Length: 3", id="a length twice"),
    pytest.param(b"Content-Length: 3\r\ncontent-length: 4", id="two lengths"),
    pytest.param(b"Content-Length: 3, 3", id="a list of lengths"),
    pytest.param(b"Content-Length: +3", id="signed length"),
    pytest.param(b"Content-Length: -3", id="negative length"),
    pytest.param(b"Content-Length: 0x3", id="hexadecimal length"),
    pytest.param(b"Content-Length: 3_0", id="underscore in a length"),
    pytest.param(b"Content-Length: 3 0", id="blank in a length"),
    pytest.param(b"Content-Length: \xb2", id="superscript length"),
    pytest.param(b"Content-Length:", id="empty length"),
    pytest.param(b"Content-Length: " + b"9" * 19, id="length too large"),
    pytest.param(b"Content-Length: 3\r\nTransfer-Encoding: chunked", id="length and coding"),
    pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 3", id="coding and length"),
    pytest.param(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", id="a coding twice"),
    pytest.param(b"Transfer-Encoding: gzip, chunked", id="two codings"),
    pytest.param(b"Transfer-Encoding: identity", id="no coding, with a name"),
    pytest.param(b"Transfer-Encoding: xchunked", id="look-alike coding"),
    pytest.param(b"Transfer-Encoding: chunked;x=y", id="coding with a parameter"),
    pytest.param(b"Transfer-Encoding: \x0bchunked", id="coding behind a vertical tab"),
    pytest.param(b"Transfer-Encoding:", id="empty coding"),
    pytest.param(b"Transfer_Encoding: chunked", id="underscore for a hyphen"),
    pytest.param(b"CONTENT_LENGTH: 3", id="underscore for a hyphen, length"),
    pytest.param(b"Content-Length : 3", id="blank before the colon"),
    pytest.param(b"Content-Length\t: 3", id="tab before the colon"),
    pytest.param(b" Content-Length: 3", id="blank before the name"),
    pytest.param(b"X: a\r\n b", id="folded"),
    pytest.param(b"X: a\r\n\tb", id="folded by a tab"),
    pytest.param(b"X: a\nContent-Length: 3", id="LF alone"),
    pytest.param(b"X: a\rContent-Length: 3", id="CR alone"),
    pytest.param(b"X: a\r\r\nY: b", id="CR twice"),
    pytest.param(b"X: a\0b", id="NUL"),
    pytest.param(b"X: a\x01b", id="control character"),
    pytest.param(b"X: a\x7fb", id="delete"),
    pytest.param(b": a", id="no name"),
    pytest.param(b"X", id="no colon"),
    pytest.param(b"X\xe9: a", id="name not ASCII"),
    pytest.param(b"X Y: a", id="blank in the name"),
    pytest.param(b"X(): a", id="name not a token"),
]


@pytest.mark.parametrize("header", FLAWED_HEADERS)
@pytest.mark.parametrize("before", [b"", b"X: a\r\n"], ids=["first", "second"])
def test_a_flawed_header_is_refused_in_requests_responses_and_trailers(header: bytes, before: bytes) -> None:
    with pytest.raises(FlawError):
        read_request(b"POST http://a/ HTTP/1.1\r\n" + before + header + b"\r\nHost: a\r\n\r\n")
    with pytest.raises(FlawError):
        read_response(b"HTTP/1.1 200 OK\r\n" + before + header + b"\r\n\r\n")
    with pytest.raises(FlawError):
        read_trailers(before + header + b"\r\n")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(b"GET  http://a/ HTTP/1.1", 400, id="two blanks"),
        pytest.param(b"GET\thttp://a/ HTTP/1.1", 400, id="tab"),
        pytest.param(b"GET http://a/ HTTP/1.1 ", 400, id="blank at the end"),
        pytest.param(b"GET http://a/", 400, id="HTTP/0.9"),
        pytest.param(b"GET http://a/ b HTTP/1.1", 400, id="blank in the target"),
        pytest.param(b"GET http://a/\xe9 HTTP/1.1", 400, id="target not ASCII"),
        pytest.param(b"GET http://a/ HTTP/1.2", 505, id="HTTP/1.2"),
        pytest.param(b"GET http://a/ HTTP/2.0", 505, id="HTTP/2.0"),
        pytest.param(b"GET http://a/ HTTP/0.9", 505, id="HTTP/0.9 said aloud"),
        pytest.param(b"GET http://a/ http/1.1", 400, id="lower case"),
        pytest.param(b"GET http://a/ HTTP/1.10", 400, id="two digits"),
        pytest.param(b"GET http://a/ HTTP/01.1", 400, id="leading zero"),
        pytest.param(b"GET http://a/ HTTPS/1.1", 400, id="another protocol"),
        pytest.param(b"get http://a/ HTTP/1.1", 400, id="method in lower case"),
        pytest.param(b"G{}T http://a/ HTTP/1.1", 400, id="method not a token"),
        pytest.param(b"A" * 33 + b" http://a/ HTTP/1.1", 400, id="method too long"),
    ],
)
def test_a_flawed_first_line_is_refused(line: bytes, status: int) -> None:
    with pytest.raises(FlawError) as caught:
        read_request(line + b"\r\nHost: a\r\n\r\n")
    assert caught.value.refusal.status == status


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 000 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/1.1 +20 OK",
        b"HTTP/1.1\t200 OK",
        b"HTTP/1.1200 OK",
        b"HTTP/2.0 200 OK",
        b"ICY 200 OK",
        b"http/1.1 200 OK",
        b"HTTP/1.1 200 O\x1bK",
    ],
)
def test_a_flawed_status_line_is_refused(line: bytes) -> None:
    with pytest.raises(FlawError):
        read_response(line + b"\r\n\r\n")


def test_http_1_0_has_no_chunks() -> None:
    with pytest.raises(FlawError, match=r"HTTP/1\.0 has no Transfer-Encoding"):
        read_request(b"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
    with pytest.raises(FlawError, match=r"HTTP/1\.0 has no Transfer-Encoding"):
        read_response(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize(("count", "fits"), [(MOST_HEADERS, True), (MOST_HEADERS + 1, False)])
def test_headers_are_counted(count: int, *, fits: bool) -> None:
    head = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * (count - 1) + b"\r\n"
    if fits:
        assert len(read_request(head).headers) == count
        return
    with pytest.raises(FlawError) as caught:
        read_request(head)
    assert caught.value.refusal.status == 431


def scan(data: bytes, piece: int) -> int:
    scanner = HeadScanner()
    buffer = bytearray()
    for at in range(0, len(data), piece):
        buffer += data[at : at + piece]
        size = scanner.find_end(buffer)
        if size:
            return size
    return 0


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(LINE, 0, id="not there yet"),
        pytest.param(LINE + b"\r", 0, id="almost"),
        pytest.param(LINE + b"\r\n", len(LINE) + 2, id="there"),
        pytest.param(LINE + b"\r\nbody\n\r\n\r\n", len(LINE) + 2, id="with a body behind"),
        pytest.param(b"\x7f", "not HTTP", id="not ASCII"),
        pytest.param(b"\r\n", "empty line", id="empty line"),
        pytest.param(b" GET", "blank", id="blank"),
        pytest.param(b"GET\n", "CR LF", id="LF alone is not waited out"),
        pytest.param(b"GET\rx", "CR LF", id="CR alone"),
        pytest.param(LINE + b"\n\r\n", "CR LF", id="LF alone at the end"),
        pytest.param(LINE + b"\r\r\n", "CR LF", id="CR twice at the end"),
    ],
)
def test_the_end_of_a_head_is_found_however_it_arrives(data: bytes, expected: int | str, piece: int) -> None:
    if isinstance(expected, int):
        assert scan(data, piece) == expected
        return
    # What follows a flaw may be needed to see it, but no more than one byte.
    with pytest.raises(FlawError, match=expected):
        scan(data + b"x", piece)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"G" * LARGEST_LINE, 414, id="first line"),
        pytest.param(LINE + b"x" * LARGEST_HEAD, 431, id="head"),
        pytest.param(LINE + b"X: " + b"x" * LARGEST_HEAD + b"\r\n\r\n", 431, id="head that does end"),
    ],
)
def test_what_is_too_large_is_not_waited_for(data: bytes, status: int) -> None:
    for piece in (1000, 1 << 20):
        with pytest.raises(FlawError) as caught:
            scan(data, piece)
        assert caught.value.refusal.status == status


def test_a_request_without_a_body_says_so() -> None:
    assert read_request(LINE + b"\r\n").body == NO_BODY


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_flaw(data: bytes) -> None:
    for read in (read_request, read_response):
        for head in (data + b"\r\n\r\n", b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + data + b"\r\n\r\n"):
            with contextlib.suppress(FlawError):
                read(head)
