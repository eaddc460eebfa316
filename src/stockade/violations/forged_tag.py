r"""Finds what a generous reader could take for the tag of a block of violations.

To such a reader, upper case, entities, bracket look-alikes, letters of other scripts, blanks, line ends, terminal
sequences and characters that nobody sees make no difference, nor do further signs between the words. What a terminal
would put together, by moving back and writing over it, is for ``overstrike``. No list of look-alikes is complete: where
a reader knows the session's id (``mark``), it needs none.

Rules:

- The search reads a text once from each bracket, and never past the next one: no text makes it slow.
- No pattern has a possessive quantifier or an atomic group. In Python before 3.11.5 a possessive loop keeps what an
  iteration has read that then failed (python/cpython, gh-106052): forged tags with entities passed. So a pattern here
  matches one piece, and the loops are Python's.
- Repetitions in a pattern are followed by something that cannot begin with what they repeat: a failure gives back
  each sign once, in constant time.

Source of truth for what nobody sees: ``stockade.escape``, and the combining marks of Unicode that sit on letters.
"""

from __future__ import annotations

import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

# The singular is enough to be taken for it, and so is half of its letters if the others are of another script.
_NAME: Final = "sandboxviolation"
_ENOUGH: Final = len(_NAME) // 2
# How many letters the search for brackets looks at.
_AT_ONCE: Final = 4
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

#: Every character that can be read as the bracket of a tag, apart from entities; as pieces of a character class. They
#: are those that Unicode calls confusable with it, and those named for what they look like: less-than, left-pointing
#: angle, left arrowhead, precedes, left-pointing triangle.
BRACKETS: Final = (
    "<\u00ab\u02c2\u02f1\u140a\u1438\u16b2\u2039\u2264\u2266\u2268\u226a\u226e\u2270\u2272\u2274\u2276-\u227a\u227c\u227e\u22b0"
    "\u22b2\u22b4\u22d6\u22d8\u22da-\u22dc\u22de\u22e6\u22e8\u2329\u2343\u23f4\u25c0-\u25c5\u276c\u276e\u2770\u27e8\u27ea\u2976\u2977\u2991"
    "\u2993-\u2996\u29c0\u29cf\u29fc\u2a79-\u2abc\u2af7-\u2afa\u2b9c\u2bc7\u3008\u300a\u3031\u304f\ufe3d\ufe3f\ufe64\uff1c\U0001d236\U0001f890"
)
_SLASHES: Final = (
    "/\\\\!?\u1735\u2041\u2044\u2215\u233f\u2571\u2572\u27cb\u27cd\u29f5-\u29f9\u2afb\u2afd\u2cc6\u2e4a\u2f03\u30ce\u31d3"
    "\u3033\u4e3f\ufe68\uff0f\uff3c\U0001d23a\U0001f67c\U0001f67d"
)
_JOINTS: Final = "_.\\-\u00b7\u2010-\u2015\u203f\u2040\u2054\u2212\ufe33\ufe34\ufe4d-\ufe4f\ufe58\ufe63\uff0d\uff3f"
# Without the two that begin a terminal sequence.
_BLANKS: Final = (
    "\0-\x1a\x1c-\x20\x7f-\x9a\x9c-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffd"
)
_UNSEEN: Final = "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u2de0-\u2dff\u3099\u309a"
    "\ua66f-\ua672\ua674-\ua67d\ua69e\ua69f\ua8e0-\ua8f1\ufe20-\ufe2f\U00010376-\U0001037a\U0001133b"
    "\U00011366-\U00011374\U0001d242-\U0001d244\U0001e000-\U0001e02a"
)
_UNDECODED: Final = "\ud800-\udfff"
_BETWEEN: Final = f"{_BLANKS}{_UNSEEN}{_MARKS}{_UNDECODED}{_JOINTS}"
_STARTERS: Final = "\x1b\x9b"
# With case ignored, a dotted capital I and a long s would count as ASCII, since their small letters are.
_FOREIGN: Final = f"(?![{_BETWEEN}{_STARTERS}{BRACKETS}{_SLASHES}])(?-i:[^\0-\x7f])"

# Terminal sequences: CSI, then strings up to their end (OSC, DCS and the like), then the short ones. None holds a
# bracket, so that from no bracket anything is read that is read again from the next.
_SEQUENCE: Final = (
    "(?:\x1b\\[|\x9b)[0-;=-?]*[ -%'-/]*[@-~]"
    f"|\x1b[\\]PX^_][^\x07\x1b&{BRACKETS}]*(?:\x07|\x1b\\\\)"
    "|\x1b[ -%'-/]*[0-;=-Z\\\\^-~]"
)

# References: what stands behind the ampersand of an entity, and behind every "amp;" after it.
_NO_SIGN: Final = (
    "#0*(?:9|10|13|32|45|46|95|160|173|819[2-9]|820\\d|823[2-9]|828[7-9]|829\\d|830[0-3]|65279)(?!\\d);?"
    "|#x0*(?:9|a|d|20|2d|2e|5f|a0|ad|200[0-9a-f]|202[89a-f]|205f|206[0-9a-f]|feff)(?![0-9a-f]);?"
    "|(?:nbsp|shy|zwnj|zwj|lrm|rlm|tab|newline|nobreak|zerowidthspace|ensp|emsp|thinsp|hairsp|lowbar|underbar);"
)
_BRACKET: Final = "#0*60(?!\\d);?|#x0*3c(?![0-9a-f]);?|lt;?|(?:lang|langle|lsaquo|laquo);"
# What may be the reference of any bracket; which one it is says _is_bracket.
_REFERENCE: Final = "#0*(?!0)\\d{1,8}(?!\\d);?|#x0*(?!0)[0-9a-f]{1,7}(?![0-9a-f]);?|[a-z][a-z0-9]{1,30};"
# Two of them need no end, whatever comes next.
_ENDLESS: Final = "lt|laquo"
# HTML reads this number as Windows did.
_WINDOWS_BRACKET: Final = 0x8B
_SLASH: Final = "#0*47(?!\\d);?|#x0*2f(?![0-9a-f]);?|sol;|frasl;"
_LETTER: Final = (
    f"(?!{_BRACKET})(?:#0*(?!0)\\d{{1,8}}(?!\\d)|#x0*(?!0)[0-9a-f]{{1,7}}(?![0-9a-f])|[a-z][a-z0-9]{{1,30}});?"
)
_AGAIN: Final = "(?:amp;?|#0*38(?!\\d);?|#x0*26(?![0-9a-f]);?)(?=[#a-z])"


class ForgedTag(Value):
    """Where its bracket stands, where its name begins, and where the last letter of the name ends."""

    start: int
    name: int
    end: int


def has_brackets(text: str) -> bool:
    """Say whether anything in a text can be read as a bracket."""
    if text.isascii():
        return "<" in text or "&" in text
    import re

    return re.search(f"[&{BRACKETS}]", text) is not None


def forged_tags(text: str) -> Iterator[ForgedTag]:
    """Yield everything in a text that could be taken for the tag, in order."""
    reader = _Reader(text)
    for found in _pattern(_bracket()).finditer(text):
        tag = reader.tag_at(found.start())
        if tag is not None:
            yield tag


class _Reader:
    """Reads one text. Each method takes a place in it, and returns the place behind what it has read there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._between = _pattern(f"{_SEQUENCE}|[{_STARTERS}]|[{_BETWEEN}]+")
        self._ahead = _pattern(f"{_SEQUENCE}|[{_STARTERS}]|[{_BETWEEN}{_SLASHES}]+")
        self._no_sign = _pattern(_NO_SIGN)
        self._no_sign_ahead = _pattern(f"{_NO_SIGN}|{_SLASH}")
        self._brackets = (_pattern(_REFERENCE), _pattern(_ENDLESS))
        self._again = _pattern(_AGAIN)
        self._letter = _pattern(_LETTER)
        self._sign = _pattern(f"[a-z0-9]|{_FOREIGN}")
        self._prefix = _pattern("[a-z][\\w.-]{0,31}")

    def tag_at(self, start: int) -> ForgedTag | None:
        """Return the tag whose bracket stands there, if there is one."""
        at = self._past_bracket(start)
        if at is None:
            return None
        at = self._past(at, self._ahead, self._no_sign_ahead)
        for begin in (self._past_prefix(at), at):
            signs = [] if begin is None else self._name_at(begin)
            if signs and sum(map(_resembles, _NAME, (self._text[one:end] for one, end in signs))) >= _ENOUGH:
                return ForgedTag(start, signs[0][0], signs[-1][1])
        return None

    def _past_bracket(self, at: int) -> int | None:
        if self._text[at] != "&":
            return at + 1
        ends = (self._past_reference(at, pattern) for pattern in self._brackets)
        return next((end for end in ends if end is not None and _is_bracket(self._text[at:end])), None)

    def _past_prefix(self, at: int) -> int | None:
        """Return where the name begins behind a namespace and its colon."""
        found = self._prefix.match(self._text, at)
        if found is None:
            return None
        at = self._past_gap(found.end())
        return self._past_gap(at + 1) if self._text.startswith(":", at) else None

    def _name_at(self, at: int) -> list[tuple[int, int]]:
        """Return where each letter of the name begins and ends; nothing if one is missing."""
        signs: list[tuple[int, int]] = []
        for letter in _NAME:
            at = self._past_gap(at) if signs else at
            end = self._past_letter(at, letter)
            if end is None:
                return []
            signs.append((at, end))
            at = end
        return signs

    def _past_letter(self, at: int, letter: str) -> int | None:
        found = self._sign.match(self._text, at)
        if found is None:
            return self._past_reference(at, self._letter)
        sign = found[0]
        return found.end() if not sign.isascii() or sign.lower() in _DIGITS.get(letter, letter) else None

    def _past_gap(self, at: int) -> int:
        return self._past(at, self._between, self._no_sign)

    def _past(self, at: int, signs: re.Pattern[str], references: re.Pattern[str]) -> int:
        """Skip what makes no difference."""
        end: int | None = at
        while end is not None:
            at = end
            found = signs.match(self._text, at)
            end = found.end() if found else self._past_reference(at, references)
        return at

    def _past_reference(self, at: int, pattern: re.Pattern[str]) -> int | None:
        """Skip an entity, also an entity of an entity."""
        if not self._text.startswith("&", at):
            return None
        at += 1
        while again := self._again.match(self._text, at):
            at = again.end()
        found = pattern.match(self._text, at)
        return found.end() if found else None


def _bracket() -> str:
    """Return a pattern for the brackets that are worth a closer look, since ``re`` is ten times as fast as a loop here.

    It reads the first letters of the name itself, and gives up where an entity or a terminal sequence stands.
    """
    hiding = f"[{_STARTERS}]|&(?=[#a-z])"
    name = ""
    for letter in reversed(_NAME[:_AT_ONCE]):
        name = f"(?:{hiding}|(?:[{_DIGITS.get(letter, letter)}]|{_FOREIGN})[{_BETWEEN}]*{name})"
    prefix = f"[a-z][a-z0-9{_BETWEEN}]*(?:{hiding}|:|{_FOREIGN})"
    ahead = f"[{_BETWEEN}{_SLASHES}]*(?:{name}|{prefix})"
    return f"(?:[{BRACKETS}]|&(?:{_REFERENCE}|{_ENDLESS}))(?={ahead})|&(?={_AGAIN})"


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern. To compile all of them takes some milliseconds, once: ``re`` remembers."""
    import re

    return re.compile(text, re.IGNORECASE)


def _resembles(letter: str, sign: str) -> bool:
    """Say whether a sign (a character or an entity) can be read as a letter of the name."""
    if sign.isascii() and not sign.startswith("&"):
        return True
    from unicodedata import normalize

    char = _decoded(sign)
    return char in _ALIKE[letter] or letter in normalize("NFKD", char).casefold()


def _is_bracket(reference: str) -> bool:
    """Say whether an entity stands for a bracket."""
    char = _decoded(reference)
    name = _unwrapped(reference)
    if not name.startswith("#"):
        from html.entities import html5

        char = html5.get(f"{name};") or html5.get(f"{name.lower()};", "")
    return char == chr(_WINDOWS_BRACKET) or _pattern(f"[{BRACKETS}]").match(char) is not None


def _unwrapped(sign: str) -> str:
    """Return the innermost name or number of an entity of an entity."""
    at, again = 1, _pattern(_AGAIN)
    while found := again.match(sign, at):
        at = found.end()
    return sign[at:].rstrip(";")


def _decoded(sign: str) -> str:
    """Return the character of an entity; of one with a name, its first letter, as in ``&sscr;``."""
    if not sign.startswith("&"):
        return sign
    reference = _unwrapped(sign).lower()
    if not reference.startswith("#"):
        return reference[:1]
    digits = reference[1:]
    # Zeros in front may be thousands, which int refuses.
    code = int(digits[1:].lstrip("0"), 16) if digits.startswith("x") else int(digits.lstrip("0"))
    return chr(code) if code <= sys.maxunicode else ""
