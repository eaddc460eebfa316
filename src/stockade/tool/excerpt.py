"""What a model is shown of an output: its head and its tail, however long it was.

Pure. Bytes come in pieces; as many are kept as may be shown, half of them from the beginning and half from the end.
What is left out in the middle is counted and said. Bytes that are no text are not shown: a NUL near the beginning, or
too much that is not UTF-8, makes an output *binary*, of which only the size is told.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.escape import escape

#: Bytes that are shown of one output.
SHOWN: Final = 30_000

_LOOKED_AT: Final = 8192
_STRANGE: Final = 0.3
_REPLACEMENT: Final = "\ufffd"


class Excerpt:
    """The head and the tail of a stream, kept in bounded memory."""

    def __init__(self, shown: int = SHOWN) -> None:
        """Begin with nothing."""
        self._half = shown // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out so far."""
        return self.size == len(self._head) + len(self._tail)

    @property
    def is_binary(self) -> bool:
        """Whether it begins as no text does."""
        return is_binary(bytes(self._head[:_LOOKED_AT]))

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        self.size += len(piece)
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        # Cut rarely, so that many small pieces cost no more than one.
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]

    def kept(self) -> bytes:
        """Return all of it, as long as it is whole."""
        return bytes(self._head + self._tail)

    def text(self, file: str = "") -> str:
        """Return what is shown; ``file`` is where the rest is."""
        head, tail = bytes(self._head), bytes(self._tail)
        if is_binary(head):
            return f"[binary output of {self.size} bytes{_kept_in(file)}]\n"
        if len(head) + len(tail) <= 2 * self._half and self.is_whole:
            return decoded(head + tail)
        # A character that was cut in two is left out rather than shown as a mark.
        head, tail = _without_half_end(head), _without_half_start(tail[-self._half :])
        left_out = self.size - len(head) - len(tail)
        gap = b"" if head.endswith(b"\n") else b"\n"
        note = f"[... {left_out} bytes in the middle are left out{_kept_in(file)} ...]"
        return f"{decoded(head + gap)}{note}\n{decoded(tail)}"


def is_binary(head: bytes) -> bool:
    """Say whether an output that begins so is no text."""
    sample = _without_half_end(head[:_LOOKED_AT])
    if b"\0" in sample:
        return True
    text = sample.decode("utf-8", "replace")
    return text.count(_REPLACEMENT) > _STRANGE * len(text)


def decoded(data: bytes) -> str:
    """Return bytes as text; those that are not UTF-8 become marks."""
    return data.decode("utf-8", "replace")


def _kept_in(file: str) -> str:
    return f"; all of it is in {escape(file)}" if file else ""


def _without_half_end(data: bytes) -> bytes:
    """Drop the beginning of a character at the end of some bytes."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:  # noqa: PLR2004 - begins a character of several bytes
            length = 2 + (byte >= 0xE0) + (byte >= 0xF0)  # noqa: PLR2004 - RFC 3629, section 3
            return data[:-back] if length > back else data
        if byte < 0x80:  # noqa: PLR2004 - a character of its own
            return data
    return data


def _without_half_start(data: bytes) -> bytes:
    """Drop the end of a character at the beginning of some bytes."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:  # noqa: PLR2004 - goes on a character
        start += 1
    return data[start:]
