"""The message with which the log names a command: ``CMD64_<base64>_END_<suffix>``.

The suffix belongs to one session, so that a session finds its own refusals among those of all others. What is coded is
the number of the command and as much of its text as leaves the line short: the system's log cuts long messages off.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.platforms.macos.sexpr import bytes_of
from stockade.value import Value

_START: Final = "CMD64_"
_END: Final = "_END_"
#: So much of a command's text is coded, in bytes.
LONGEST: Final = 96


class Tag(Value):
    """Which command a refusal belongs to: its number, and the beginning of its text."""

    ticket: int
    line: str


def new_suffix() -> str:
    """Return a suffix that no other session has, and that no program can know before it is refused something."""
    import os

    return f"{os.urandom(8).hex()}_SBX"


def encode(ticket: int, line: str, suffix: str) -> str:
    """Return the message for a command."""
    import binascii

    data = b"%d %s" % (ticket, bytes_of(line)[:LONGEST])
    return f"{_START}{binascii.b2a_base64(data, newline=False).decode()}{_END}{suffix}"


def decode(text: str, suffix: str) -> Tag | None:
    """Find the message of a session in a text, at its end; ``None`` if it holds none that is whole."""
    import binascii

    start = text.rfind(_START)
    coded, end, found = text[start + len(_START) :].partition(_END)
    if start < 0 or not end or found.strip() != suffix:
        return None
    try:
        ticket, _, line = binascii.a2b_base64(coded, strict_mode=True).decode("utf-8", "replace").partition(" ")
    except (binascii.Error, ValueError):
        return None
    return Tag(int(ticket), line) if ticket.isascii() and ticket.isdigit() and len(ticket) < LONGEST else None
