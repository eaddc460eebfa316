"""Patterns of commands, as people write them in ``excludedCommands`` and in ``Bash(...)`` rules.

``npm run test``   that command, with any further arguments; words are compared whole, so not ``npm run tests``
``npm run:*``      the same: the words before ``:*``, and anything after them; not ``npmx``
``docker *``       a ``*`` that is a word stands for any number of words, also none: ``docker`` matches too
``git * main``     once there is a ``*``, the pattern covers the whole command: ``git push main -f`` does not match
``docker*``        a ``*`` in a word stands for any characters of that word; at the very end also for further words
``./bin/*``        in the name of the command no ``*`` stands for a ``/``: ``docker*`` is not ``docker/../evil``
``A=1 npm ci``     assignments must be spelled, as they can change what runs; no ``*`` word stands for them

A pattern speaks of one simple command. It is compared with the words that the shell would pass, after quoting; a word
that only the shell knows (``$x``, ``*.txt``) is matched by a free place alone, and never as the name of the command.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeVar
from stockade.errors import InvalidTextError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stockade.policy.shell_line import SimpleCommand, Word

T = TypeVar("T")
STAR = "*"
_SPECIAL = frozenset(";&|<>()`$'\"\\")
_LEADS_AWAY = ("", ".", "..")


class CommandPattern(Value):
    """A pattern of one simple command; build it with ``CommandPattern.parse``."""

    text: str
    words: tuple[str, ...]
    assignments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """Read a pattern; raise InvalidTextError if it is empty or more than the plain words of one command."""
        _check(text)
        words = text.removesuffix(":*").split()
        named = next((at for at, word in enumerate(words) if not _is_assignment(word)), len(words))
        if named == len(words):
            raise _invalid(text, "names no command")
        free_tail = text.endswith(STAR) or STAR not in "".join(words[named:])
        tail = (STAR,) if free_tail and words[-1] != STAR else ()
        return cls(text, tuple(words[named:]) + tail, tuple(words[:named]))

    @property
    def is_universal(self) -> bool:
        """Whether it matches every command."""
        return not self.assignments and not "".join(self.words).strip(STAR)

    def matches(self, command: SimpleCommand) -> bool:
        """Say whether the command is one of those that the pattern speaks of."""
        if not command.words or not command.words[0].literal or len(command.assignments) != len(self.assignments):
            return False
        if not all(map(_matches_word, self.assignments, command.assignments)):
            return False
        return self._may_name(command.words[0]) and _matches(self.words, command.words, _matches_word)

    def _may_name(self, name: Word) -> bool:
        """Say whether the name fits part by part, so that no star leads to another directory."""
        if self.is_universal or STAR not in self.words[0]:
            return True
        mine, theirs = self.words[0].split("/"), name.text.split("/")
        return len(mine) == len(theirs) and all(map(_may_be_part, mine, theirs))

    def __str__(self) -> str:
        """Return the pattern as it was written."""
        return self.text


def _check(text: str) -> None:
    if not text.replace("\t", " ").isprintable():
        raise _invalid(text, "holds a character that cannot be printed")
    if text != text.strip():
        raise _invalid(text, "begins or ends with a blank")
    if special := next((char for char in text if char in _SPECIAL), ""):
        raise _invalid(text, f"holds a {special}")


def _invalid(text: str, what: str) -> InvalidTextError:
    hint = "write the plain words of one command, such as `npm run test`, `npm:*` or `docker *`; * stands for the rest"
    return InvalidTextError(f"the command pattern {text!a} {what}", hint)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _may_be_part(pattern: str, part: str) -> bool:
    return pattern == part or (part not in _LEADS_AWAY and matches_text(pattern, part))


def _matches_word(pattern: str, word: Word) -> bool:
    return word.literal and matches_text(pattern, word.text)


def matches_text(pattern: str, text: str) -> bool:
    """Match a text, a star with any characters; a word may be 64 kB long, so nothing is done for each character."""
    first, *middle = pattern.split(STAR)
    if not middle:
        return pattern == text
    last = middle.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _matches(pattern: Sequence[str], items: Sequence[T], same: Callable[[str, T], bool]) -> bool:
    """Match items one by one, a star with any number of them; goes back to the last star only, so never slow."""
    at = star = resume = 0
    starred = False
    for_item = 0
    while for_item < len(items):
        if at < len(pattern) and pattern[at] == STAR:
            starred, star, resume = True, at, for_item
            at += 1
        elif at < len(pattern) and same(pattern[at], items[for_item]):
            at += 1
            for_item += 1
        elif starred:
            resume += 1
            at, for_item = star + 1, resume
        else:
            return False
    return all(item == STAR for item in pattern[at:])
