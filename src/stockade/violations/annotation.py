r"""Violations for the model: a block at the end of what a command wrote to stderr; taken off again for people.

::

    what the command wrote
    <sandbox_violations>
    write "/etc/hosts": outside every writable place; add "/etc/hosts" to sandbox.filesystem.allowWrite
    </sandbox_violations>

Rules:

- With a ``mark``, both tags carry its id, as in ``<sandbox_violations id="...">``: a reader who knows the id needs to
  believe no other.
- Nothing from inside opens or closes the tag. Whatever a reader could take for it is *neutralised* before ours is
  appended: the bracket in front of it becomes ``\x3c`` (see ``forged_tag``). If a terminal would put a tag together out
  of pieces, by going back (see ``overstrike``), all that goes back is spelled out. The id of the mark is hidden. All
  other output stays as it is, to the byte.
- What a command wrote to stdout needs ``neutralise`` too, where a model sees both.
- ``strip`` is for text that ``annotate`` made: there, no block is anybody else's. It takes blocks of every mark.
- The separation is undone as well: text without a line end at its end gets one before the block and none after.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import spell
from stockade.violations.forged_tag import forged_tags, has_brackets
from stockade.violations.mark import PLAIN, tags
from stockade.violations.overstrike import moves, shown, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.violations.forged_tag import ForgedTag
    from stockade.violations.mark import Mark
    from stockade.violations.violation import Violation

OPENING: Final = PLAIN.opening
CLOSING: Final = PLAIN.closing

#: So many are told; a model needs no more to understand, and each costs it attention.
MOST: Final = 20

_SEQUENTIAL: Final = frozenset("\x07\x1b\x9b")


def annotate(stderr: str, violations: Iterable[Violation], *, dropped: int = 0, mark: Mark = PLAIN) -> str:
    """Return what a command wrote, neutralised, with a block of its violations if there are any.

    ``dropped`` is how many more there were that nobody kept.
    """
    safe = neutralise(stderr, mark)
    lines = [neutralise(line, mark) for line in _lines(tuple(violations), dropped)]
    if not lines:
        return safe
    block = "\n".join((mark.opening, *lines, mark.closing))
    return f"{safe}{block}\n" if not safe or safe.endswith("\n") else f"{safe}\n{block}"


def annotate_bytes(stderr: bytes, violations: Iterable[Violation], *, dropped: int = 0, mark: Mark = PLAIN) -> bytes:
    """Do the same to bytes; those that are not UTF-8 stay as they are."""
    text = stderr.decode("utf-8", "surrogateescape")
    return annotate(text, violations, dropped=dropped, mark=mark).encode("utf-8", "surrogateescape")


def strip(text: str) -> str:
    """Return an annotated text without the blocks in it."""
    kept: list[str] = []
    done = 0
    for start, _, _, end in _blocks(text):
        ours = text[end : end + 1] == "\n"
        # Without a line end after it, the one before it is ours.
        kept.append(text[done : start if ours else max(start - 1, done)])
        done = end + ours
    return "".join(kept) + text[done:]


def entries(text: str) -> tuple[str, ...]:
    """Return the lines of all blocks in an annotated text."""
    inner = (text[begin + 1 : until - 1] for _, begin, until, _ in _blocks(text))
    return tuple(line for block in inner for line in block.split("\n"))


def neutralise(text: str, mark: Mark = PLAIN) -> str:
    """Return a text from inside in which nothing can be taken for the tag; most texts come back as they are."""
    text = _without_tags(mark.hide(text))
    if has_brackets(text) and moves(text):
        seen = shown(text)
        if seen is None or next(forged_tags(seen), None) is not None:
            return _without_tags(spelled(text))
    return text


def _without_tags(text: str) -> str:
    if not has_brackets(text):
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
        name = spell(name[0]) + name[1:]
    return spell(bracket) + ahead + name


def _lines(violations: tuple[Violation, ...], dropped: int) -> list[str]:
    lines = [violation.text() for violation in violations[-MOST:]]
    more = sum(violation.times for violation in violations[:-MOST]) + dropped
    return [*lines, f"and {more} more before these" if lines else f"{more} refusals"] if more else lines


def _blocks(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each block begins, where its opening tag ends, where its closing one begins, and where it ends.

    Its tags stand alone on their lines, and no bracket is between them.
    """
    done = 0
    for start, at, mark in tags(text):
        inner = text.find("<", at)
        end = inner + len(mark.closing)
        closed = text.startswith(mark.closing, inner) and text[end : end + 1] in ("", "\n")
        if start >= done and inner > at + 1 and closed and text[inner - 1] == "\n":
            yield start, at, inner, end
            done = end
