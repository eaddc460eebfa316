"""What is read at a glance is what the thorough reader reads; whatever else there is, is left to that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stockade.network.http_head import FlawError, RequestHead, ResponseHead, thorough_request, thorough_response
from stockade.network.http_message import CHUNKED, NO_BODY, Body, BodyKind
from stockade.network.plain_head import plain_request, plain_response

NAMES = st.sampled_from(
    (
        *(b"Host", b"host", b"Content-Length", b"content_length", b"Transfer-Encoding", b"transfer-encoding", b"X-Y"),
        *(b"Transfer_Encoding", b"Content_Length", b"Content-Length ", b" X", b"", b"Connection", b"\xc3\xa4", b"x!"),
    )
)
VALUES = st.sampled_from(
    (
        b"a",
        b" a ",
        b"",
        b"5",
        b"\t5 ",
        b"05",
        b"5, 5",
        b"+5",
        b"9" * 19,
        b"chunked",
        b"Chunked",
        b"gzip, chunked",
        b"a\x00",
    )
) | st.binary(max_size=6)
LINES = st.lists(st.tuples(NAMES, VALUES).map(b":".join), max_size=5)
REQUEST_LINES = st.sampled_from(
    (
        *(b"GET / HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"GET / HTTP/1.0", b"GET  / HTTP/1.1", b"get / HTTP/1.1"),
        *(b"GET /\xc3\xa4 HTTP/1.1", b"PRI * HTTP/2.0", b"GET / HTTP/1.2", b"GET /", b"G" * 33 + b" / HTTP/1.1"),
    )
)
STATUS_LINES = st.sampled_from(
    (
        *(b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 200 ", b"HTTP/1.1 200", b"HTTP/1.1 100 Continue"),
        *(b"HTTP/1.1 099 x", b"HTTP/1.1 999 \xff", b"HTTP/1.1 2000 x", b"HTTP/2.0 200 OK", b"HTTP/1.1  200 OK"),
    )
)


def head(first: bytes, lines: list[bytes], end: bytes = b"\r\n") -> bytes:
    return end.join((first, *lines, b"", b""))


@given(REQUEST_LINES, LINES, st.sampled_from((b"\r\n", b"\n", b"\r")))
@example(b"GET / HTTP/1.1", [b"Host: a", b"Content-Length: 5", b"Content-Length: 5"], b"\r\n")
@example(b"GET / HTTP/1.1", [b"Host: a", b"Content-Length: 5", b"Transfer-Encoding: chunked"], b"\r\n")
@example(b"GET / HTTP/1.0", [b"Transfer-Encoding: chunked"], b"\r\n")
@example(b"GET / HTTP/1.1", [b"Host: a", b"X: a\r\n b"], b"\r\n")
def test_requests_agree(first: bytes, lines: list[bytes], end: bytes) -> None:
    whole = head(first, lines, end)
    plain = plain_request(whole)
    if plain is not None:
        assert RequestHead(*plain[:-1], plain[-1] or NO_BODY) == thorough_request(whole)


@given(STATUS_LINES, LINES)
@example(b"HTTP/1.1 200 OK", [b"Content-Length: 5", b"Content-Length: 5"])
@example(b"HTTP/1.0 200 OK", [b"Transfer-Encoding: chunked"])
def test_responses_agree(first: bytes, lines: list[bytes]) -> None:
    whole = head(first, lines)
    plain = plain_response(whole)
    if plain is not None:
        assert ResponseHead(*plain) == thorough_response(whole)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    for plain, thorough in ((plain_request, thorough_request), (plain_response, thorough_response)):
        if plain(data) is not None:
            try:
                thorough(data)
            except FlawError:
                pytest.fail("the thorough reader refuses what was read")


def test_what_is_plain_is_read() -> None:
    given_head = b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nX-Long:  v w \r\n\r\n"
    assert plain_request(given_head) == (b"CONNECT", b"a:1", b"1.1", ((b"host", b"a"), (b"x-long", b"v w")), None)
    headers = ((b"content-length", b"5"),)
    body = Body(BodyKind.LENGTH, 5)
    assert plain_response(b"HTTP/1.1 200 OK\r\nContent-Length:5\r\n\r\n") == (200, b"OK", b"1.1", headers, body)
    chunked = plain_response(b"HTTP/1.1 404 \r\nTransfer-Encoding: chunked\r\n\r\n")
    assert chunked == (404, b"", b"1.1", ((b"transfer-encoding", b"chunked"),), CHUNKED)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([], id="no Host"),
        pytest.param([b"Host: a", b"Host: a"], id="two Hosts"),
        pytest.param([b"Host: a", b"Content_Length: 5"], id="a disguised length"),
        pytest.param([b"Host: a", b"Transfer_Encoding: chunked"], id="a disguised coding"),
        pytest.param([b"Host: a", b"X : y"], id="a blank before the colon"),
        pytest.param([b"Host: a", b" y"], id="a line that goes on"),
        pytest.param([b"Host: a", b"X: \x01"], id="a control character"),
        pytest.param([b"Host: a", *[b"X: y"] * 200], id="too many headers"),
    ],
)
def test_what_is_not_plain_is_left_to_others(lines: list[bytes]) -> None:
    assert plain_request(head(b"GET / HTTP/1.1", lines)) is None
