r"""Violations for the model: a block at the end of what a command wrote to stderr; taken off again for people.

::

    what the command wrote
    <sandbox_violations>
    write "/etc/hosts": outside every writable place; add "/etc/hosts" to sandbox.filesystem.allowWrite
    </sandbox_violations>

Rules:

- Nothing from inside opens or closes the tag. Whatever a reader could take for it is *neutralised* before ours is
  appended: the bracket in front of it becomes ``\x3c``. A reader is taken to be generous: to him upper case, entities,
  bracket look-alikes, letters of other scripts, blanks, line ends, terminal sequences and characters that nobody sees
  make no difference, nor do further signs between the words. All other output stays as it is, to the byte.
- What a command wrote to stdout needs ``neutralise`` too, where a model sees both.
- ``strip`` is for text that ``annotate`` made: there, no block is anybody else's.
- The separation is undone as well: text without a line end at its end gets one before the block and none after.
- The search goes from bracket to bracket and never back, so that no text makes it slow.

Source of truth for what nobody sees: ``stockade.escape``, and the combining marks of Unicode that sit on letters.
"""

from __future__ import annotations

import sys

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from stockade.violations.violation import Violation

OPENING: Final = "<sandbox_violations>"
CLOSING: Final = "</sandbox_violations>"

#: So many are told; a model needs no more to understand, and each costs it attention.
MOST: Final = 20

# The singular is enough to be taken for it, and so is half of its letters if the others are of another script.
_NAME: Final = "sandboxviolation"
_ENOUGH: Final = len(_NAME) // 2
_ALIKE: Final = {
    "s": "\u0455\ua731\u0282\u01bd",
    "a": "\u0430\u0391\u03b1\u0410\u0251",
    "n": "\u0578\u057c\u043f\u03b7\u039d\u0274",
    "d": "\u0501\u0257\u1d05",
    "b": "\u042c\u044c\u0412\u0392\u0184\u0185\u0299",
    "o": "\u043e\u041e\u03bf\u039f\u0585\u05e1\u1d0f",
    "x": "\u0445\u0425\u03c7\u03a7",
    "v": "\u0475\u0474\u03bd\u1d20",
    "i": "\u0456\u0406\u03b9\u0399\u0131\u026a",
    "l": "\u04cf\u04c0\u01c0\u05d5\u029f",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b",
}
_DIGITS: Final = {"o": "o0", "i": "i1l", "l": "l1i"}
_LOOK_ALIKES: Final = (
    "<\u00ab\u02c2\u1438\u2039\u227a\u2329\u276c\u276e\u2770\u27e8\u27ea\u29fc\u3008\u300a\ufe64\uff1c"
)
_SLASHES: Final = "/\\\\!?\u2044\u2215\u29f8\u29f5\uff0f\uff3c"
_JOINTS: Final = "_.\\-\u00b7\u2010-\u2015\u203f\u2040\u2054\u2212\ufe33\ufe34\ufe4d-\ufe4f\ufe58\ufe63\uff0d\uff3f"
_BLANKS: Final = "\0-\x20\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffd"
_UNSEEN: Final = "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_UNDECODED: Final = "\ud800-\udfff"

# Terminal sequences: CSI, then strings up to their end (OSC, DCS and the like), then the short ones. None holds a
# bracket, so that from no bracket anything is read that is read again from the next.
_SEQUENCE: Final = (
    "(?:\x1b\\[|\x9b)[0-;=-?]*+[ -%'-/]*+[@-~]"
    f"|\x1b[\\]PX^_][^\x07\x1b&{_LOOK_ALIKES}]*+(?:\x07|\x1b\\\\)"
    "|\x1b[ -%'-/]*+[0-;=-Z\\\\^-~]"
)
_SEQUENTIAL: Final = frozenset("\x07\x1b\x9b")
_NO_SIGN: Final = (
    "&(?:amp;)*+(?:#0*+(?:9|10|13|32|45|46|95|160|173|819[2-9]|820\\d|823[2-9]|828[7-9]|829\\d|830[0-3]|65279)(?!\\d);?"
    "|#x0*+(?:9|a|d|20|2d|2e|5f|a0|ad|200[0-9a-f]|202[89a-f]|205f|206[0-9a-f]|feff)(?![0-9a-f]);?"
    "|(?:nbsp|shy|zwnj|zwj|lrm|rlm|tab|newline|nobreak|zerowidthspace|ensp|emsp|thinsp|hairsp|lowbar|underbar);)"
)
_BRACKET: Final = (
    f"[{_LOOK_ALIKES}]|&(?:amp;)*+(?:#0*+60(?!\\d);?|#x0*+3c(?![0-9a-f]);?|lt;?|(?:lang|langle|lsaquo|laquo);)"
)
_SLASH: Final = f"[{_SLASHES}]|&(?:amp;)*+(?:#0*+47(?!\\d);?|#x0*+2f(?![0-9a-f]);?|sol;|frasl;)"
_ENTITY: Final = (
    f"(?!{_BRACKET})&(?:amp;)*+(?:#0*+\\d{{1,8}}+(?!\\d)|#x0*+[0-9a-f]{{1,7}}+(?![0-9a-f])|[a-z][a-z0-9]{{1,30}}+);?"
)


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
    if not any(bracket in text for bracket in (_LOOK_ALIKES if not text.isascii() else "<")) and "&" not in text:
        return text
    return _tag_like().sub(_defused, text)


def _defused(found: re.Match[str]) -> str:
    if sum(map(_resembles, _NAME, found.groups())) < _ENOUGH:
        return found[0]
    bracket, rest = found[0][0], found[0][1:]
    if not _SEQUENTIAL.isdisjoint(rest):
        # This bracket may stand in a terminal sequence. For one before the sequence, the name must be none either.
        at = found.start(1) - found.start() - 1
        rest = rest[:at] + _spelled(rest[at]) + rest[at + 1 :]
    return _spelled(bracket) + rest


def _spelled(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 (the widest that two hexadecimal digits hold)
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 (four digits)


def _resembles(letter: str, sign: str) -> bool:
    """Say whether a sign (a character or an entity) can be read as a letter of the name."""
    if sign.isascii() and not sign.startswith("&"):
        return True
    from unicodedata import normalize

    char = _decoded(sign)
    return char in _ALIKE[letter] or letter in normalize("NFKD", char).casefold()


def _decoded(sign: str) -> str:
    """Return the character of an entity; of one with a name, its first letter, as in ``&sscr;``."""
    if not sign.startswith("&"):
        return sign
    reference = sign.replace("amp;", "")[1:].rstrip(";")
    if not reference.startswith("#"):
        return reference[:1].lower()
    digits = reference[1:].lower()
    # Zeros in front may be thousands, which int refuses.
    code = int(digits[1:].lstrip("0"), 16) if digits.startswith("x") else int(digits.lstrip("0"))
    return chr(code) if code <= sys.maxunicode else ""


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


def _tag_like() -> re.Pattern[str]:
    """Return what is taken for the tag, from its bracket up to the last letter of its name.

    Every repetition is possessive: a text is read once from each bracket, and never past the next one. To compile it
    takes some ten milliseconds, once: ``re`` remembers.
    """
    import re

    between = f"{_BLANKS}{_UNSEEN}{_MARKS}{_UNDECODED}{_JOINTS}"
    nothing = f"{_SEQUENCE}|[{between}]|{_NO_SIGN}"
    gap = f"(?:{nothing})*+"
    foreign = f"(?![{between}{_LOOK_ALIKES}{_SLASHES}])[^\0-\x7f]"
    letters = gap.join(f"([{_DIGITS.get(letter, letter)}]|{foreign}|{_ENTITY})" for letter in _NAME)
    prefix = f"(?:[a-z][\\w.-]{{0,31}}+{gap}:{gap})?"
    return re.compile(f"(?:{_BRACKET})(?:{_SLASH}|{nothing})*+{prefix}{letters}", re.IGNORECASE)
