r"""Violations for the model: a block at the end of what a command wrote to stderr; taken off again for people.

::

    what the command wrote
    <sandbox_violations>
    write "/etc/hosts": outside every writable place; add "/etc/hosts" to sandbox.filesystem.allowWrite
    </sandbox_violations>

Rules:

- Nothing from inside opens or closes the tag. Whatever a reader could take for it is *neutralised* before ours is
  appended: the bracket in front of it becomes ``\x3c`` (see ``forged_tag``). All other output stays as it is, to the
  byte.
- What a command wrote to stdout needs ``neutralise`` too, where a model sees both.
- ``strip`` is for text that ``annotate`` made: there, no block is anybody else's.
- The separation is undone as well: text without a line end at its end gets one before the block and none after.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.violations.forged_tag import BRACKETS, forged_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.violations.forged_tag import ForgedTag
    from stockade.violations.violation import Violation

OPENING: Final = "<sandbox_violations>"
CLOSING: Final = "</sandbox_violations>"

#: So many are told; a model needs no more to understand, and each costs it attention.
MOST: Final = 20

_SEQUENTIAL: Final = frozenset("\x07\x1b\x9b")


def annotate(stderr: str, violations: Iterable[Violation], *, dropped: int = 0) -> str:
    """Return what a command wrote, neutralised, with a block of its violations if there are any.

    ``dropped`` is how many more there were that nobody kept.
    """
    safe = neutralise(stderr)
    lines = _lines(tuple(violations), dropped)
    if not lines:
        return safe
    block = "\n".join((OPENING, *lines, CLOSING))
    return f"{safe}{block}\n" if not safe or safe.endswith("\n") else f"{safe}\n{block}"


def annotate_bytes(stderr: bytes, violations: Iterable[Violation], *, dropped: int = 0) -> bytes:
    """Do the same to bytes; those that are not UTF-8 stay as they are."""
    text = stderr.decode("utf-8", "surrogateescape")
    return annotate(text, violations, dropped=dropped).encode("utf-8", "surrogateescape")


def strip(text: str) -> str:
    """Return an annotated text without the blocks in it."""
    kept: list[str] = []
    done = 0
    for start, end in _blocks(text):
        ours = text[end : end + 1] == "\n"
        # Without a line end after it, the one before it is ours.
        kept.append(text[done : start if ours else max(start - 1, done)])
        done = end + ours
    return "".join(kept) + text[done:]


def entries(text: str) -> tuple[str, ...]:
    """Return the lines of all blocks in an annotated text."""
    inner = (text[start + len(OPENING) + 1 : end - len(CLOSING) - 1] for start, end in _blocks(text))
    return tuple(line for block in inner for line in block.split("\n"))


def neutralise(text: str) -> str:
    """Return a text from inside in which nothing can be taken for the tag; most texts come back as they are."""
    if not any(bracket in text for bracket in (BRACKETS if not text.isascii() else "<")) and "&" not in text:
        return text
    kept: list[str] = []
    done = 0
    for tag in forged_tags(text):
        kept += text[done : tag.start], _defused(text, tag)
        done = tag.end
    return "".join(kept) + text[done:]


def _defused(text: str, tag: ForgedTag) -> str:
    bracket, ahead, name = text[tag.start], text[tag.start + 1 : tag.name], text[tag.name : tag.end]
    if not _SEQUENTIAL.isdisjoint(ahead + name):
        # This bracket may stand in a terminal sequence. For one before the sequence, the name must be none either.
        name = _spelled(name[0]) + name[1:]
    return _spelled(bracket) + ahead + name


def _spelled(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 (the widest that two hexadecimal digits hold)
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 (four digits)


def _lines(violations: tuple[Violation, ...], dropped: int) -> list[str]:
    lines = [_line(violation) for violation in violations[-MOST:]]
    more = sum(violation.times for violation in violations[:-MOST]) + dropped
    return [*lines, f"and {more} more before these" if lines else f"{more} refusals"] if more else lines


def _line(violation: Violation) -> str:
    return neutralise(violation.text())


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each block begins and ends: its tags stand alone on their lines, and no bracket is between them."""
    at = 0
    while (start := text.find(OPENING, at)) >= 0:
        at = start + len(OPENING)
        inner = text.find("<", at)
        end = inner + len(CLOSING)
        alone = (
            text[start - 1 : start] in ("", "\n") and text[at : at + 1] == "\n" and text[end : end + 1] in ("", "\n")
        )
        if alone and text.startswith(CLOSING, inner) and text[inner - 1] == "\n" and inner > at + 1:
            yield start, end
            at = end
