r"""Patterns of places as regular expressions that Seatbelt can match.

Used of its language: ``^ $ . * + ? | ( ) [ ]`` and a backslash before a special character. Nothing is used that a small
matcher might lack: no counts, no named classes, no lookahead, no flags; in brackets only ranges, none of whose ends is
special. It matches bytes, so that a wildcard for one character is written as the UTF-8 sequences of such characters.
Names are taken to be valid UTF-8 there, as the file systems of macOS make sure.

A regular expression is a text; bytes that stand alone in it travel as surrogate escapes, as in ``sexpr``.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.sexpr import bytes_of, text_of
from stockade.policy.name_glob import DEEP, Chars, Glob
from stockade.policy.path_pattern import PathPattern, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.policy.name_glob import Element
    from stockade.policy.path_pattern import Part

_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")
#: Not wanted as the end of a range in brackets.
_SPECIAL_IN_BRACKETS: Final = frozenset("\\^[]-")
#: Any one character of a name: of ASCII, or the first byte of a sequence with all that belong to it.
_ANY: Final = text_of(b"([^/\x80-\xff]|[\xc0-\xff][\x80-\xbf]+)")
_SOME_NAMES: Final = "(/[^/]+)*"
_LAST: Final = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
#: Up to which character a sequence is one byte long, two, three.
_LENGTHS: Final = (0x7F, 0x7FF, 0xFFFF)
#: Characters beyond ASCII that are the same as these letters where case does not count (``str.casefold``).
FOLDED: Final = {
    "k": ("\u212a",),
    "s": ("\u017f",),
    "ff": ("\ufb00",),
    "fi": ("\ufb01",),
    "fl": ("\ufb02",),
    "ss": ("\u00df", "\u1e9e"),
    "st": ("\ufb05", "\ufb06"),
}
#: Where the search for a name may end.
END: Final = "(/|$)"


def regex_of(pattern: PathPattern) -> str:
    """Return what matches the paths that a pattern covers: its matches, and all below them."""
    return whole(f"^{body_of(pattern.parts)}{END}") if pattern.parts else "^/"


def whole(regex: str) -> str:
    """Return the same regular expression, with bytes that amount to a character as that."""
    return text_of(bytes_of(regex))


def body_of(parts: Iterable[Part]) -> str:
    """Return what matches the path that these parts make, without its end."""
    return "".join(_part(part) for part in parts)


def escaped(name: str) -> str:
    """Return what matches exactly this text."""
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in name)


def folded(name: str) -> str:
    """Return what matches this name, an ASCII one, whatever the case."""
    pieces, at = [], 0
    while at < len(name):
        pair = name[at : at + 2].casefold()
        if len(pair) == len("fi") and pair in FOLDED:
            pieces.append(f"({_either_case(pair[0])}{_either_case(pair[1])}|{'|'.join(FOLDED[pair])})")
            at += 2
        else:
            pieces.append(_either_case(name[at].casefold()))
            at += 1
    return "".join(pieces)


def rests(pattern: PathPattern, names: Iterable[str]) -> tuple[tuple[Part, ...], ...]:
    """Return what is left of a pattern to be matched below the place made of these names; one for each way there."""
    states = {0}
    for name in names:
        states = {after for state in _reached(pattern.parts, states) for after in _after(pattern.parts, state, name)}
    reached = states if len(pattern.parts) not in _reached(pattern.parts, states) else {*states, len(pattern.parts)}
    return tuple(pattern.parts[state:] for state in sorted(reached))


def below(place: Iterable[str], rest: tuple[Part, ...]) -> PathPattern:
    """Return the pattern of what is left of one, below a place."""
    names = [part for part in rest if isinstance(part, str)]
    if len(names) == len(rest):
        return PathPattern.literal(joined([*place, *names]))
    above = PathPattern.literal(joined(place))
    return PathPattern(above.text, above.path, (*above.parts, *rest))


def _part(part: Part) -> str:
    if isinstance(part, str):
        return f"/{escaped(part)}"
    if part == DEEP:
        return _SOME_NAMES
    if part.tokens == (None,):
        return "/[^/]+"
    return "/" + "".join(_token(token) for token in part.tokens)


def _token(token: Element) -> str:
    if token is None:
        return "[^/]*"
    return _characters(token) if isinstance(token, Chars) else escaped(token)


def _characters(chars: Chars) -> str:
    if chars.negated and not chars.ranges:
        return _ANY
    ranges = _joined(sorted((ord(low), ord(high)) for low, high in chars.ranges))
    wanted = list(_complement(ranges) if chars.negated else ranges)
    ways = list(_ways(wanted))
    # Nothing at all is matched by a set of nothing but slashes, for no name holds one.
    return f"({'|'.join(ways)})" if ways else "[^/]/"


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in ranges:
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _complement(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = 1
    for low, high in ranges:
        if start < low:
            yield start, low - 1
        start = high + 1
    if start <= _LAST:
        yield start, _LAST


def _ways(ranges: list[tuple[int, int]]) -> Iterator[str]:
    """Yield what matches the characters in these ranges, but the slash."""
    inside, slash = [], ord("/")
    for low, high in ranges:
        for start, end in ((low, min(high, slash - 1)), (max(low, slash + 1), min(high, _LENGTHS[0]))):
            plain, special = _trimmed(start, end)
            inside += plain
            yield from special
        for least, most in ((_LENGTHS[0] + 1, _FIRST_SURROGATE - 1), (_LAST_SURROGATE + 1, _LAST)):
            yield from _sequences(max(low, least), min(high, most))
    if inside:
        yield f"[{''.join(inside)}]"


def _trimmed(start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the range as it can stand in brackets, if anything is left, and the special characters at its ends."""
    special: list[str] = []
    while start <= end and chr(start) in _SPECIAL_IN_BRACKETS:
        special.append(escaped(chr(start)))
        start += 1
    while start <= end and chr(end) in _SPECIAL_IN_BRACKETS:
        special.append(escaped(chr(end)))
        end -= 1
    if start > end:
        return [], special
    return [chr(start) if start == end else f"{chr(start)}-{chr(end)}"], special


def _sequences(low: int, high: int) -> Iterator[str]:
    """Yield what matches the UTF-8 of the characters in a range beyond ASCII."""
    for least, most in zip(_LENGTHS, (*_LENGTHS[1:], _LAST), strict=True):
        first, last = max(low, least + 1), min(high, most)
        if first <= last:
            yield from _split(chr(first).encode(), chr(last).encode())


def _split(first: bytes, last: bytes) -> Iterator[str]:
    """Yield ranges byte by byte that together are all sequences from the first to the last."""
    if len(first) == 1:
        yield _range(first[0], last[0])
        return
    lowest, highest = b"\x80" * (len(first) - 1), b"\xbf" * (len(first) - 1)
    if first[0] == last[0]:
        yield from (_range(first[0], first[0]) + rest for rest in _split(first[1:], last[1:]))
        return
    start, end = first[0], last[0]
    if first[1:] != lowest:
        yield from (_range(start, start) + rest for rest in _split(first[1:], highest))
        start += 1
    if last[1:] != highest:
        yield from (_range(end, end) + rest for rest in _split(lowest, last[1:]))
        end -= 1
    if start <= end:
        yield _range(start, end) + _range(0x80, 0xBF) * len(lowest)


def _range(low: int, high: int) -> str:
    return text_of(bytes([low])) if low == high else text_of(b"[%c-%c]" % (low, high))


def _either_case(letter: str) -> str:
    if letter in FOLDED:
        return f"([{letter.upper()}{letter}]|{'|'.join(FOLDED[letter])})"
    return f"[{letter.upper()}{letter}]" if letter.isalpha() else escaped(letter)


def _after(parts: tuple[Part, ...], state: int, name: str) -> tuple[int, ...]:
    if state == len(parts):
        return ()
    part = parts[state]
    if part == DEEP:
        return (state,)
    matches = part.matches(name) if isinstance(part, Glob) else part == name
    return (state + 1,) if matches else ()


def _reached(parts: tuple[Part, ...], states: set[int]) -> set[int]:
    return states | {state + 1 for state in states if state < len(parts) and parts[state] == DEEP}
