r"""The head of an HTTP message, read so that it has one meaning, or not at all.

h11 reads heads, but takes some that others read differently. This module refuses those first:

- lines end in CR LF, and neither stands alone; no line is empty or begins with a blank (leading blanks, obs-fold); no
  NUL, no control character but tab; nothing stands between a header's name and its colon;
- one Content-Length, of plain digits; one Transfer-Encoding, ``chunked`` and nothing else, and neither beside a length
  nor in HTTP/1.0; no name that a careless server takes for one of them (``Content_Length``);
- HTTP/1.0 and 1.1 alone; methods in capital letters.

Heads that have nothing unusual in them, which is nearly all, are read by ``plain_head`` without any of this.

Limits: ``LARGEST_HEAD`` bytes, ``LARGEST_LINE`` for the first line, ``MOST_HEADERS``.

Source of truth: RFC 9112 sections 2 to 6 and 11 (what is ambiguous and what to do about it).
"""

from __future__ import annotations

import re

import h11

from stockade.annotation import Final
from stockade.escape import escape
from stockade.network.http_message import CHUNKED, NO_BODY, Body, BodyKind, Headers
from stockade.network.plain_head import plain_request, plain_response
from stockade.network.refusal import Cause, bad_request
from stockade.value import Value

LARGEST_HEAD: Final = 64 * 1024
LARGEST_LINE: Final = 16 * 1024
MOST_HEADERS: Final = 200
_LONGEST_METHOD: Final = 32

END: Final = b"\r\n\r\n"
_PREFACE: Final = b"PRI * HTTP/2.0"
_ODD_LINE_END: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_METHOD: Final = re.compile(rb"[A-Z][A-Z0-9_-]*")
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_VERSION: Final = re.compile(rb"HTTP/[0-9]\.[0-9]")
_FRAMING: Final = (b"content-length", b"transfer-encoding")
_NOT_HTTP: Final = "it is not HTTP"
_ODD_WORDS: Final = "a line of its head does not end in CR LF"


class FlawError(Exception):
    """The message cannot be read in one way only. Stays inside the cores: each turns it into an event."""

    def __init__(
        self,
        why: str,
        hint: str = "",
        *,
        status: int = 400,
        cause: Cause = Cause.MALFORMED_REQUEST,
        phrase: str = "Bad Request",
    ) -> None:
        super().__init__(why)
        self.why = why
        self.refusal = bad_request(why, hint, status=status, cause=cause, phrase=phrase)


class RequestHead(Value):
    """The head of a request; header names in lower case, ``body`` apart from them."""

    method: bytes
    target: bytes
    version: bytes
    headers: Headers
    body: Body


class ResponseHead(Value):
    """The head of a response; ``body`` is ``None`` where it declares nothing."""

    status: int
    reason: bytes
    version: bytes
    headers: Headers
    body: Body | None


class HeadScanner:
    """Finds the end of a head in a growing buffer, each byte looked at once however small the pieces are."""

    def __init__(self) -> None:
        self._looked_at = 0

    def find_end(self, buffer: bytearray) -> int:
        """Return the size of the head that the buffer begins with, 0 if its end is still to come.

        What can be refused before is: no flawed head is waited for, and none that is too large.
        """
        _check_beginning(buffer)
        start = max(self._looked_at - len(END), 0)
        at = buffer.find(END, start, LARGEST_HEAD)
        size = at + len(END) if at >= 0 else 0
        odd = _ODD_LINE_END.search(buffer, start, size or len(buffer))
        # A CR at the very end may still get its LF; an LF at the start of the search may have its CR before it.
        if odd is not None and odd.end() < len(buffer):
            raise FlawError(_ODD_WORDS)
        if not size and len(buffer) >= LARGEST_HEAD:
            message = f"its head is larger than {LARGEST_HEAD // 1024} KiB"
            raise _too_large(message)
        self._looked_at = 0 if size else len(buffer)
        return size


def _too_large(why: str) -> FlawError:
    phrase = "Request Header Fields Too Large"
    return FlawError(why, status=431, cause=Cause.TOO_LARGE, phrase=phrase)


def _unsupported(why: str, hint: str = "") -> FlawError:
    phrase = "HTTP Version Not Supported"
    return FlawError(why, hint, status=505, cause=Cause.UNSUPPORTED, phrase=phrase)


def _check_beginning(buffer: bytearray) -> None:
    if not buffer:
        return
    if buffer[0] <= ord(" "):
        message = "it begins with a blank, an empty line or bytes that are not HTTP"
        raise FlawError(message)
    if buffer[0] >= 0x7F:  # noqa: PLR2004 (the end of ASCII's visible characters)
        raise FlawError(_NOT_HTTP)
    if len(buffer) >= LARGEST_LINE and buffer.find(b"\r\n", 0, LARGEST_LINE) < 0:
        message = f"its first line is longer than {LARGEST_LINE // 1024} KiB"
        raise FlawError(message, status=414, cause=Cause.TOO_LARGE, phrase="URI Too Long")


def read_request(head: bytes) -> RequestHead:
    """Read the whole head of a request, or raise ``FlawError``."""
    plain = plain_request(head)
    if plain is not None:
        return RequestHead(*plain[:-1], plain[-1] or NO_BODY)
    return thorough_request(head)


def thorough_request(head: bytes) -> RequestHead:
    """Read the head of a request that may be anything."""
    _check_request_line(head)
    _check_lines(head)
    event = _parse(h11.Connection(h11.SERVER, LARGEST_HEAD), head)
    assert isinstance(event, h11.Request)  # noqa: S101 (h11 gives a server nothing else for a whole head)
    headers = tuple(event.headers)
    return RequestHead(
        bytes(event.method),
        bytes(event.target),
        bytes(event.http_version),
        headers,
        _declared_body(headers, event.http_version) or NO_BODY,
    )


def read_response(head: bytes) -> ResponseHead:
    """Read the whole head of a response, or raise ``FlawError``."""
    plain = plain_response(head)
    return thorough_response(head) if plain is None else ResponseHead(*plain)


def thorough_response(head: bytes) -> ResponseHead:
    """Read the head of a response that may be anything."""
    _check_version(head[: len(b"HTTP/1.1")])
    _check_lines(head)
    connection = h11.Connection(h11.CLIENT, LARGEST_HEAD)
    if head[len(b"HTTP/1.1 ") :].startswith(b"1"):
        # h11 takes an interim response only once a request has gone out. Nothing of the head depends on which.
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x"), ("Upgrade", "x")]))
        connection.send(h11.EndOfMessage())
    event = _parse(connection, head)
    assert isinstance(event, h11.Response | h11.InformationalResponse)  # noqa: S101 (as above)
    headers = tuple(event.headers)
    return ResponseHead(
        event.status_code,
        bytes(event.reason),
        bytes(event.http_version),
        headers,
        _declared_body(headers, event.http_version),
    )


def read_trailers(lines: bytes) -> Headers:
    """Read the trailers of a chunked body: lines that each end in CR LF, without the empty one."""
    if not lines:
        return ()
    whole = b"HTTP/1.1 200 \r\n" + lines + b"\r\n"
    return read_response(whole).headers


def _parse(connection: h11.Connection, head: bytes) -> object:
    connection.receive_data(head)
    try:
        return connection.next_event()
    except h11.RemoteProtocolError as error:
        message = escape(str(error), 120)
        raise FlawError(message[:1].lower() + message[1:]) from None


def _check_request_line(head: bytes) -> None:
    line = head.partition(b"\r\n")[0]
    words = line.split(b" ")
    if line == _PREFACE:
        message = "it speaks HTTP/2"
        raise _unsupported(message, "Use HTTP/1.1 to the proxy; inside a CONNECT tunnel any protocol will do.")
    if len(words) != 3:  # noqa: PLR2004 (method, target, version)
        message = "its first line is not METHOD TARGET HTTP/1.1 with one space between"
        raise FlawError(message)
    if len(words[0]) > _LONGEST_METHOD or not _METHOD.fullmatch(words[0]):
        message = f'"{_shown(words[0])}" is not a method'
        raise FlawError(message, "Methods are in capital letters.")
    _check_version(words[2])


def _check_version(version: bytes) -> None:
    if version in {b"HTTP/1.0", b"HTTP/1.1"}:
        return
    if _VERSION.fullmatch(version):
        message = f"{version.decode()} is not spoken here"
        raise _unsupported(message)
    raise FlawError(_NOT_HTTP)


def _check_lines(head: bytes) -> None:
    if _ODD_LINE_END.search(head):
        raise FlawError(_ODD_WORDS)
    if _CONTROL.search(head):
        message = "its head has a control character"
        raise FlawError(message)
    lines = head.split(b"\r\n")[1:-2]
    if len(lines) > MOST_HEADERS:
        message = f"it has more than {MOST_HEADERS} headers"
        raise _too_large(message)
    names = [_checked_name(line) for line in lines]
    for name in _FRAMING:
        if names.count(name) > 1:  # h11 takes a length that is given twice, if it is the same
            message = f"it has more than one {name.decode().title()}"
            raise FlawError(message)


def _checked_name(line: bytes) -> bytes:
    """Return the name of a header in lower case, once the line as a whole has been found good."""
    if line[:1] in {b" ", b"\t"}:
        message = "a header goes on in a second line"
        raise FlawError(message)
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name):
        message = f'"{_shown(name)}" is not the name of a header, with a colon right behind it'
        raise FlawError(message)
    lowered = name.lower()
    if lowered not in _FRAMING and lowered.replace(b"_", b"-") in _FRAMING:
        message = f'the header "{_shown(name)}" looks like one that frames the message'
        raise FlawError(message)
    if lowered == b"content-length" and not _LENGTH.fullmatch(value.strip(b" \t")):
        message = "its Content-Length is not a number, or too large"
        raise FlawError(message)
    if lowered == b"transfer-encoding" and value.strip(b" \t").lower() != b"chunked":
        message = "its Transfer-Encoding is not just chunked"
        raise FlawError(message, status=501, cause=Cause.UNSUPPORTED, phrase="Not Implemented")
    return lowered


def _shown(word: bytes) -> str:
    return escape(word.decode("latin-1"), 40)


def _declared_body(headers: Headers, version: bytes) -> Body | None:
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if lengths and codings:
        message = "it has both a Content-Length and a Transfer-Encoding"
        raise FlawError(message)
    if codings and version == b"1.0":
        message = "HTTP/1.0 has no Transfer-Encoding"
        raise FlawError(message)
    if codings:
        return CHUNKED
    if not lengths:
        return None
    return Body(BodyKind.LENGTH, int(lengths[0]))
