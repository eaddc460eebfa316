r"""Text from outside, made safe to show.

Hosts, paths and commands come from programs that nobody has read. Shown as they are, they could move
the cursor, reverse the reading direction, forge a line or close a tag of the report that quotes them.

Rules: the result is one line of printable characters, never longer than ``limit``, without angle
brackets or bare double quotes. What is replaced stays readable (``\x1b``, ``\u202e``), and a backslash
is doubled, so that an uncut result stands for exactly one text. A text that is too long loses its
middle: the end of a host or path is what tells it from a look-alike.

Source of truth for "printable": Unicode general categories, by way of ``str.isprintable``, less the
default-ignorable characters that it counts as letters or marks.
"""

from __future__ import annotations

from stockade.annotation import Final

_GAP: Final = "..."

# Default_Ignorable_Code_Point without the format characters, which are not printable anyway; and the
# braille blank, which is no default-ignorable but shows nothing either.
_UNSEEN: Final = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)

_SPECIAL: Final = {"\\": "\\\\", '"': '\\"', "<": "\\x3c", ">": "\\x3e"}


def visible(char: str) -> bool:
    """Say whether a reader can see this one character (a plain space counts as seen)."""
    if char.isascii() or not char.isprintable():
        return char.isprintable()
    code = ord(char)
    return not any(low <= code <= high for low, high in _UNSEEN)


def escape(text: str, limit: int = 200) -> str:
    """Return ``text`` as one printable line of at most ``limit`` characters."""
    if len(text) <= limit:
        if text.isascii() and text.isprintable() and _SPECIAL.keys().isdisjoint(text):
            return text  # as most are, and each plan says a hundred
        whole = "".join(map(_piece, text))
        if len(whole) <= limit:
            return whole
    room = max(limit - len(_GAP), 0)
    tail = _fill(text[: -limit - 1 : -1], room // 2)
    head = _fill(text[:limit], room - room // 2)
    return ("".join(head) + _GAP + "".join(reversed(tail)))[: max(limit, 0)]


def legible(text: str) -> str:
    """Return a line made of safe pieces, with what a reader could not see in it escaped all the same."""
    return "".join(char if visible(char) else _piece(char) for char in text)


def _fill(text: str, room: int) -> list[str]:
    """Escape characters of ``text`` until the next would not fit: an escape is never cut in two."""
    pieces: list[str] = []
    for char in text:
        piece = _piece(char)
        room -= len(piece)
        if room < 0:
            break
        pieces.append(piece)
    return pieces


def _piece(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    return char if visible(char) else spell(char)


def spell(char: str) -> str:
    """Return the escape of one character, whatever it is."""
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 (the widest that two hexadecimal digits hold)
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 (four digits)
