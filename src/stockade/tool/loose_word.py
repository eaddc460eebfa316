"""One word of a shell line, as what it may become: its *shape*.

The shape of a word that the shell leaves alone is its text. Where only the shell knows what will stand there, the
shape holds ``ANY`` (any characters) or ``ONE`` (one character): ``/bin/r?`` has the shape ``/bin/r`` + ``ONE``, which
``/bin/rm`` fits and ``/bin/ls`` does not. A word that ``is_split`` may become any number of words, all unknown (an
unquoted ``$x``, ``{a,b}``); a ``glob`` becomes one or more words that all fit its shape.

A shape may be wider than what can come, never narrower.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.policy.command_pattern import matches_text
from stockade.value import Value

# Characters that stand for no character (Unicode, section 23.7). In a line they only make a shape wider.
ANY: Final = "\ufdd0"
ONE: Final = "\ufdd1"
_EXPANDED: Final = frozenset("$`{~^#")
_LONGEST_SHAPE: Final = 200


class LooseWord(Value):
    """A word: its spelling, its shape, and what else is known of it; ``bare`` if nothing in it is quoted."""

    spelling: str
    shape: str
    is_split: bool = False
    is_glob: bool = False
    bare: bool = False

    @property
    def literal(self) -> bool:
        """Whether it is known which word it will be."""
        return not self.is_split and ANY not in self.shape and ONE not in self.shape

    @property
    def name(self) -> str:
        """The shape of the last part of its path: what a command is called.

        What a pattern stands for has no slash in it; a variable may have one: ``/usr"$x"rm`` may be ``/usr/bin/rm``.
        """
        last = self.shape.rpartition("/")[2]
        if ANY in last and (not self.is_glob or not _EXPANDED.isdisjoint(self.spelling)):
            return ANY + last.partition(ANY)[2]
        return last

    def may_be(self, pattern: str, *, is_name: bool = False) -> bool:
        """Say whether it may become one that fits a pattern, in which ``*`` stands for any characters."""
        return self.is_split or fits(pattern, self.shape) or (is_name and fits(pattern, self.name))


#: Words of which nothing is known, not even their number.
UNKNOWN: Final = LooseWord("(what cannot be seen)", ANY, is_split=True)


def plain(text: str) -> LooseWord:
    """Return a word that is what it says."""
    return LooseWord(text, text)


def fits(pattern: str, shape: str) -> bool:
    """Say whether some text fits both a pattern, with ``*``, and a shape."""
    if pattern == shape:
        return True
    if ANY not in shape and ONE not in shape:
        return matches_text(pattern, shape)
    if len(shape) > _LONGEST_SHAPE:
        return True
    # The places in the pattern that may come next, once a part of the shape has come.
    states = _onward(pattern, {0})
    for char in shape:
        if char == ANY:
            states = set(range(min(states), len(pattern) + 1))
        else:
            states = _onward(pattern, {reached for state in states for reached in _after(pattern, state, char)})
        if not states:
            return False
    return len(pattern) in states


def _after(pattern: str, state: int, char: str) -> tuple[int, ...]:
    if state == len(pattern):
        return ()
    if pattern[state] == "*":
        return (state,)
    return (state + 1,) if char in (ONE, pattern[state]) else ()


def _onward(pattern: str, states: set[int]) -> set[int]:
    reached = set(states)
    for state in states:
        at = state
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            reached.add(at)
    return reached
