r"""Heads of HTTP messages as nearly all of them are, read at a glance.

Whatever is not quite plain is not judged here: ``None`` sends it to the thorough reader (``http_head``), which takes
ten times as long, and finds the words for what is wrong. What is read here, the thorough reader must read the same.

Plain is: each line ``name: value`` and CR LF, without control characters other than tab; the method in capital letters;
HTTP/1.0 or 1.1; at most one Content-Length of plain digits, or one Transfer-Encoding that is ``chunked`` in HTTP/1.1;
no name like either with an underscore; one Host in a request (none will do for HTTP/1.0); a status of 200 or more.

Source of truth: RFC 9112 sections 2 to 6.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network.http_message import CHUNKED, Body, BodyKind

if TYPE_CHECKING:
    from stockade.network.http_message import Headers

_MOST_HEADERS: Final = 200
_LINES: Final = rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n"
_REQUEST: Final = re.compile(rb"([A-Z][A-Z0-9_-]{0,31}) ([\x21-\x7e]+) HTTP/(1\.[01])\r\n" + _LINES)
_RESPONSE: Final = re.compile(rb"HTTP/(1\.[01]) ([2-9][0-9]{2}) ([\t\x20-\x7e\x80-\xff]*)\r\n" + _LINES)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_DISGUISED: Final = frozenset({b"content_length", b"transfer_encoding"})


def plain_request(head: bytes) -> tuple[bytes, bytes, bytes, Headers, Body | None] | None:
    """Return method, target, version, headers and declared body of a plain request."""
    found = _REQUEST.fullmatch(head)
    if found is None:
        return None
    method, target, version, lines = found.groups()
    headers = _headers(lines)
    hosts = [name for name, _ in headers].count(b"host")
    if hosts > 1 or (not hosts and version != b"1.0"):
        return None
    framed, body = _body(headers, version)
    return (method, target, version, headers, body) if framed else None


def plain_response(head: bytes) -> tuple[int, bytes, bytes, Headers, Body | None] | None:
    """Return status, reason, version, headers and declared body of a plain response."""
    found = _RESPONSE.fullmatch(head)
    if found is None:
        return None
    version, status, reason, lines = found.groups()
    headers = _headers(lines)
    framed, body = _body(headers, version)
    return (int(status), reason, version, headers, body) if framed else None


def _headers(lines: bytes) -> Headers:
    headers = []
    for line in lines.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        headers.append((name.lower(), value.strip(b" \t")))
    return tuple(headers)


def _body(headers: Headers, version: bytes) -> tuple[bool, Body | None]:
    """Return whether the framing is plain, and what it is."""
    body: Body | None = None
    for name, value in headers:
        if name == b"content-length":
            if body is not None or not _LENGTH.fullmatch(value):
                return False, None
            body = Body(BodyKind.LENGTH, int(value))
        elif name == b"transfer-encoding":
            if body is not None or value != b"chunked" or version != b"1.1":
                return False, None
            body = CHUNKED
        elif b"_" in name and name.replace(b"-", b"_") in _DISGUISED:
            return False, None
    return len(headers) <= _MOST_HEADERS, body
