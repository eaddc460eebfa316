r"""One name with wildcards in it: ``*.log``, ``log?``, ``[a-z]*``; and ``**``, which is any number of names.

The language is that of ``stockade.policy.path_pattern``, whose names these are. A name is matched by going back to the
last ``*`` only, so that no pattern costs more than its length times that of the name.
"""

from __future__ import annotations

from stockade.annotation import Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.value import Value

_SPECIAL: Final = frozenset("*?[]\\{}")


class Chars(Value):
    """One character out of a set; the negation of no ranges at all is any character."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]

    def matches(self, character: str) -> bool:
        """Tell whether the character is in the set."""
        return any(low <= character <= high for low, high in self.ranges) is not self.negated


#: ``None`` is any run of characters, a string one character that stands for itself.
Element: TypeAlias = "str | Chars | None"


class Glob(Value):
    """One name with wildcards; without tokens it is ``**``, any number of names."""

    text: str
    tokens: tuple[Element, ...]

    def matches(self, name: str) -> bool:
        """Match greedily, going back to the last ``*`` only: quadratic at worst, never exponential."""
        at, token, star, retry = 0, 0, -1, 0
        while at < len(name):
            if token < len(self.tokens) and self.tokens[token] is None:
                star, retry = token, at
                token += 1
            elif token < len(self.tokens) and _is(self.tokens[token], name[at]):
                token, at = token + 1, at + 1
            elif star >= 0:
                retry += 1
                token, at = star + 1, retry
            else:
                return False
        return all(rest is None for rest in self.tokens[token:])


#: Any number of names, none included.
DEEP: Final = Glob("**", ())


def escaped(name: str) -> str:
    """Return the text of a pattern that means exactly this name."""
    if _SPECIAL.isdisjoint(name):
        return name
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in name)


def refusal(text: str, what: str, hint: str) -> InvalidTextError:
    """Return the error that shows a pattern and says what is wrong with it."""
    return InvalidTextError(f'path pattern "{escape(text)}" {what}', hint)


def _is(token: Element, character: str) -> bool:
    return token.matches(character) if isinstance(token, Chars) else token == character


def elements_of(piece: str, whole: str) -> tuple[Element, ...]:
    """Read one name of the pattern ``whole``, or raise ``InvalidTextError``."""
    tokens: list[Element] = []
    at = 0
    while at < len(piece):
        character = piece[at]
        at += 1
        if character == "\\":
            if at == len(piece):
                raise refusal(whole, "has a backslash with nothing to escape", r"Write \\ for a backslash.")
            tokens.append(piece[at])
            at += 1
        elif character == "*":
            if not tokens or tokens[-1] is not None:
                tokens.append(None)
        elif character == "?":
            tokens.append(Chars(True, ()))
        elif character == "[":
            chars, at = _set(piece, at, whole)
            tokens.append(chars)
        else:
            _refuse_alternatives(piece, at, whole)
            tokens.append(character)
    return tuple(tokens)


def _refuse_alternatives(piece: str, at: int, whole: str) -> None:
    # Taken as a name, "*.{pem,key}" would match nothing and protect nothing, in silence.
    inner, closed, _ = piece[at:].partition("}")
    if piece[at - 1] == "{" and closed and "," in inner:
        raise refusal(
            whole, "has braces with alternatives", r"Write one pattern for each, or \{ for a name with a brace."
        )


def _set(piece: str, at: int, whole: str) -> tuple[Chars, int]:
    """Read a set of characters from behind its ``[``; return it and where it ends."""
    negated = piece[at : at + 1] in ("!", "^")
    at += negated
    first, ranges = at, list[tuple[str, str]]()
    while piece[at : at + 1] != "]" or at == first:
        if piece[at : at + 2] in ("[:", "[.", "[="):
            raise refusal(whole, "has a named class of characters", "Write the characters out, as in [a-zA-Z].")
        low, at = _member(piece, at, whole)
        high = low
        if piece[at : at + 1] == "-" and piece[at + 1 : at + 2] not in ("]", ""):
            high, at = _member(piece, at + 1, whole)
        if high < low:
            raise refusal(whole, "has a range that runs backwards", "Write the lower end first, as in [a-z].")
        ranges.append((low, high))
    return Chars(negated, tuple(ranges)), at + 1


def _member(piece: str, at: int, whole: str) -> tuple[str, int]:
    at += piece[at : at + 1] == "\\"
    if at >= len(piece):
        raise refusal(whole, "has a [ that is never closed", r"Close it with ], or write \[ for a bracket in a name.")
    return piece[at], at + 1
