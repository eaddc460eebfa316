r"""Bodies of HTTP messages: where they end, read and written.

h11 could do this, but copies each byte three times, and takes chunks that others read differently. Here a body of known
length passes through as the very bytes that came, and chunks are read strictly: the size in one to fifteen hexadecimal
digits, an extension of visible characters or none (it is dropped), CR LF and nothing else at the end of each line.

A reader gets whatever has arrived and returns events, and what belongs to the next message. It never keeps more than
one line of a chunk's head, or the trailers. A writer frames anew what another reader has read.

Source of truth: RFC 9112 sections 6 and 7.
"""

from __future__ import annotations

import re
from enum import Enum

from stockade.annotation import Final, Protocol, TypeAlias
from stockade.network.http_head import FlawError, read_trailers
from stockade.network.http_message import Body, BodyKind, Data, End, Headers

Part: TypeAlias = Data | End

_LONGEST_CHUNK_LINE: Final = 256
_LARGEST_TRAILERS: Final = 16 * 1024
_CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t\x20-\x7e]*)?")
_LINE_END: Final = b"\r\n"


class BodyReader(Protocol):
    """Takes one body out of a stream of bytes."""

    @property
    def left(self) -> int:
        """How many bytes are still to come, all of which are content; 0 if that is not known."""

    def skip(self, size: int) -> list[Part]:
        """Take note of content that went another way, no more than is ``left``; return the end if that was all."""

    def read(self, data: bytes) -> tuple[list[Part], bytes]:
        """Return what the bytes hold of the body, and the bytes behind its end; raise ``FlawError``."""

    def close(self) -> list[Part]:
        """Return what the end of the connection means for the body; raise ``FlawError``."""


def reader(body: Body) -> BodyReader:
    """Return what reads a body of this framing."""
    if body.kind is BodyKind.CHUNKED:
        return _ChunkReader()
    if body.kind is BodyKind.UNTIL_CLOSE:
        return _UntilCloseReader()
    return _LengthReader(body.length)


class _LengthReader:
    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def left(self) -> int:
        return self._left

    def skip(self, size: int) -> list[Part]:
        self._left -= size
        return [] if self._left else [End()]

    def read(self, data: bytes) -> tuple[list[Part], bytes]:
        mine, rest = (data, b"") if len(data) <= self._left else (data[: self._left], data[self._left :])
        self._left -= len(mine)
        parts: list[Part] = [Data(mine)] if mine else []
        if self._left == 0:
            parts.append(End())
        return parts, rest

    def close(self) -> list[Part]:
        raise _cut_short()


class _NeverSkipped:
    """A body of which nobody knows how much is content."""

    left = 0

    def skip(self, size: int) -> list[Part]:
        message = f"{size} bytes of a body of unknown length cannot be skipped"
        raise RuntimeError(message)


class _UntilCloseReader(_NeverSkipped):
    def read(self, data: bytes) -> tuple[list[Part], bytes]:
        return ([Data(data)] if data else []), b""

    def close(self) -> list[Part]:
        return [End()]


class _Expected(Enum):
    SIZE = "the line with a chunk's size"
    CONTENT = "a chunk's content"
    CONTENT_END = "the line end behind a chunk"
    TRAILER = "a trailer, or the empty line that ends them"
    NOTHING = "nothing more"


class _ChunkReader(_NeverSkipped):
    def __init__(self) -> None:
        self._expected = _Expected.SIZE
        self._left = 0
        self._line = bytearray()
        self._trailers = bytearray()

    def read(self, data: bytes) -> tuple[list[Part], bytes]:
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and self._expected is not _Expected.NOTHING:
            if self._expected is _Expected.CONTENT:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left == 0:
                    self._expected = _Expected.CONTENT_END
            else:
                at = self._read_line(data, at)
        # Tiny chunks are passed on together: a client cannot make us answer each of its bytes with ten.
        content = b"".join(pieces)
        parts: list[Part] = [Data(content)] if content else []
        if self._expected is _Expected.NOTHING:
            parts.append(End(read_trailers(bytes(self._trailers))))
        return parts, data[at:]

    def close(self) -> list[Part]:
        raise _cut_short()

    def _read_line(self, data: bytes, at: int) -> int:
        """Add to the line that has begun; act on it if it is whole. Return where to go on."""
        feed = data.find(b"\n", at)
        end = len(data) if feed < 0 else feed + 1
        self._line += data[at:end]
        # What is wrong already is not waited for.
        astray = self._expected is _Expected.CONTENT_END and not _LINE_END.startswith(self._line)
        if astray or len(self._line) > _LONGEST[self._expected]:
            message = f"{self._expected.value} is malformed or too long"
            raise FlawError(message)
        if feed >= 0:
            line = bytes(self._line)
            self._line.clear()
            self._act(line)
        return end

    def _act(self, line: bytes) -> None:
        content = line[: -len(_LINE_END)]
        if not line.endswith(_LINE_END) or b"\r" in content:
            message = "a line of a chunk does not end in CR LF"
            raise FlawError(message)
        match self._expected:
            case _Expected.SIZE:
                self._start_chunk(content)
            case _Expected.CONTENT_END:
                self._expected = _Expected.SIZE
            case _:
                self._add_trailer(line)

    def _start_chunk(self, line: bytes) -> None:
        found = _CHUNK_LINE.fullmatch(line)
        if found is None:
            message = "a chunk has no well-formed size"
            raise FlawError(message)
        self._left = int(found[1], 16)
        self._expected = _Expected.CONTENT if self._left else _Expected.TRAILER

    def _add_trailer(self, line: bytes) -> None:
        if line == _LINE_END:
            self._expected = _Expected.NOTHING
            return
        self._trailers += line
        if len(self._trailers) > _LARGEST_TRAILERS:
            message = "its trailers are too large"
            raise FlawError(message)


_LONGEST: Final = {
    _Expected.SIZE: _LONGEST_CHUNK_LINE,
    _Expected.CONTENT_END: len(_LINE_END),
    _Expected.TRAILER: _LARGEST_TRAILERS,
}


def _cut_short() -> FlawError:
    message = "its body was cut short"
    return FlawError(message)


class BodyWriter:
    """Writes one body in a framing; a body that does not fit the framing is a mistake of the caller."""

    def __init__(self, body: Body) -> None:
        self._kind = body.kind
        self._left = body.length

    def data(self, data: bytes) -> bytes:
        """Return the bytes to write for a piece of the body."""
        if self._kind is BodyKind.CHUNKED:
            return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        if self._kind is not BodyKind.UNTIL_CLOSE:
            self._left -= len(data)
            self._check(self._left >= 0)
        return data

    def skip(self, size: int) -> None:
        """Take note of content that went another way, which only a body of known length allows."""
        self._check(self._kind is BodyKind.LENGTH and size <= self._left)
        self._left -= size

    def end(self, trailers: Headers = ()) -> bytes:
        """Return the bytes to write for the end; only chunks can have trailers, others lose them."""
        if self._kind is not BodyKind.CHUNKED:
            self._check(self._kind is BodyKind.UNTIL_CLOSE or self._left == 0)
            return b""
        lines = (b"%b: %b\r\n" % trailer for trailer in trailers)
        return b"0\r\n%b\r\n" % b"".join(lines)

    @staticmethod
    def _check(fits: object) -> None:
        if not fits:
            message = "the body is not as long as was announced"
            raise RuntimeError(message)
