"""Could a line do what a pattern speaks of? For rules that deny or ask, where doubt counts against the line.

``policy.exclusion`` asks whether all of a line is covered for certain; here one part that *may* match is enough:

- every simple command counts, also in substitutions, whatever is assigned before it, by its path too (``/bin/rm``);
- a word that only the shell knows may be any words that fit it: ``$x`` all, ``/bin/r?`` also ``/bin/rm``; as the name
  of a command any such command, as an argument any such argument;
- options that the pattern does not know may stand between its words, each with a value (``git -C x push``);
- commands that run others (``env``, ``sudo``, ``xargs``, ``trap``) are looked through, and so is a line given to a
  shell, also where it touches an option (``env -S'rm x'``); what a shell is given to read may be anything.

A line is read three times, until it is understood: exactly (``policy.shell_line``), loosely (``loose_line``: it is
known where each command has its name), and roughly (``rough_line``), where every word may begin a command and every
unknown word may be one. All of it has one budget (``effort``); a line that takes more cannot be judged.

No wall: a script may hold anything, and ``rm -fr`` is not ``rm -rf``. What must not happen is prevented by the
sandbox, not by these rules.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.shell_line import SimpleCommand, parse
from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.hidden_code import hidden_in_text, hidden_in_value, hidden_in_word, hidden_in_words
from stockade.tool.loose_line import read_loosely
from stockade.tool.loose_word import fits
from stockade.tool.possibility import ANYTHING, Possibility, Text
from stockade.tool.rough_line import rough_commands
from stockade.tool.shell_input import may_be_input
from stockade.tool.word_reader import UnclearError
from stockade.tool.wrapper import RUNNERS, SHELLS, WRAPPERS, possibilities
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stockade.policy.command_pattern import CommandPattern
    from stockade.settings.layer import Sourced
    from stockade.tool.loose_line import LooseCommand
    from stockade.tool.loose_word import LooseWord

__all__ = ["TOO_LONG", "WRAPPERS", "Possible", "Reading", "TooLong", "may_match"]

_STAR: Final = "*"
_DEEPEST: Final = 4
#: Where quotes mean nothing, it is not known what these are given.
_READERS: Final = SHELLS | frozenset(("xargs", "gxargs", "zargs", "parallel", "eval"))
# However it is quoted, the name of a shell has such an end; a busybox is one.
_SHELL: Final = re.compile(r"h['\"\\]*(?!\w)|box")
_SOURCES: Final = frozenset((".", "source"))
_READ_BY_NAME: Final = re.compile(r"[<=]\(|/dev/|/proc/")
_COST_OF_FITTING: Final = 4
#: Characters of a command that is compared to say whether it matches for certain; a longer one may match.
_LONGEST_COMPARED: Final = 4000
#: Options that have a value for certain.
_VALUED: Final = {"git": frozenset(("-C", "-c"))}


class Possible(Value):
    """A pattern that may match, the part of the line that it may match, and whether there is any doubt."""

    pattern: Sourced[CommandPattern]
    part: str
    certain: bool

    def __str__(self) -> str:
        """Return it in words: what matches which rule of which file."""
        verb = "matches" if self.certain else "may be what is meant by"
        return f"`{escape(self.part, 80)}` {verb} `{self.pattern.value}` of {self.pattern.origin}"


class TooLong(Value):
    """No answer: to judge the line would take too long."""


TOO_LONG: Final = TooLong()


class Reading:
    """A line that is judged, read once for all rules, with the budget that they share."""

    def __init__(self, line: str, effort: Effort | None = None) -> None:
        """Take a line; nothing is read yet."""
        self.line = line
        self.effort = effort or Effort()
        self._exact: tuple[SimpleCommand, ...] | None = None
        self._parts: tuple[Possibility, ...] | None = None

    def exact(self) -> tuple[SimpleCommand, ...]:
        """Return the commands of the line that are certain; nothing if it is not read with certainty."""
        if self._exact is None:
            try:
                self._exact = tuple(command for command in parse(self.line) if command.words)
            except InvalidTextError:
                self._exact = ()
        return self._exact

    def parts(self) -> tuple[Possibility, ...]:
        """Return all words that may be run as a command."""
        if self._parts is None:
            self._parts = tuple(_parts(self.line, 0, self.effort))
        return self._parts


def may_match(patterns: Sequence[Sourced[CommandPattern]], line: str | Reading) -> Possible | TooLong | None:
    """Return the first pattern that some part of a line may match; one that matches for certain comes first."""
    if not patterns:
        return None
    reading = Reading(line) if isinstance(line, str) else line
    rules = _Rules(patterns)
    try:
        return rules.certain(reading) or rules.doubtful(reading)
    except TooMuchError:
        return TOO_LONG


class _Rules:
    """Patterns, by the name of the command that they speak of."""

    def __init__(self, patterns: Sequence[Sourced[CommandPattern]]) -> None:
        self.patterns = patterns
        self.named: dict[str, list[int]] = {}
        self.wild: list[int] = []
        for at, pattern in enumerate(patterns):
            name = pattern.value.words[0]
            (self.wild if _STAR in name else self.named.setdefault(name, [])).append(at)

    def candidates(self, text: str, effort: Effort) -> list[int]:
        """Return which patterns may speak of a command, by its known name."""
        effort.spend(1 + len(self.wild) // 4)
        last = text.rpartition("/")[2]
        names = {text, last}
        found = [at for name in names for at in self.named.get(name, ())]
        found += (at for at in self.wild if any(fits(self.patterns[at].value.words[0], name) for name in names))
        return sorted(found)

    def certain(self, reading: Reading) -> Possible | None:
        for command in reading.exact():
            if sum(len(word.text) for word in command.words) > _LONGEST_COMPARED:
                continue
            for at in self.candidates(command.words[0].text, reading.effort):
                reading.effort.spend(len(command.words))
                pattern = self.patterns[at]
                if pattern.value.but(assignments=()).matches(SimpleCommand(command.words)):
                    return Possible(pattern, " ".join(word.text for word in command.words), certain=True)
        return None

    def doubtful(self, reading: Reading) -> Possible | None:
        for part in reading.parts():
            name = part.words[part.start]
            reading.effort.spend()
            chosen = self.candidates(name.shape, reading.effort) if name.literal else range(len(self.patterns))
            for at in chosen:
                if _may(self.patterns[at].value.words, part, reading.effort):
                    return Possible(self.patterns[at], str(part), certain=False)
        return None


def _parts(line: str, depth: int, effort: Effort) -> Iterator[Possibility]:
    try:
        commands = read_loosely(line, effort, strict=depth > 0)
    except UnclearError:
        yield from _rough_parts(line, effort)
        return
    for_shells = bool(_SHELL.search(line))
    for command in commands:
        yield from _followed(_hidden(command, effort, for_shells=for_shells), depth, effort)
        if command.words:
            yield from _followed(possibilities(command.words, effort), depth, effort)


def _hidden(command: LooseCommand, effort: Effort, *, for_shells: bool) -> Iterator[Possibility | Text]:
    """Yield what runs because of the words and values around a command."""
    for word in (*command.words, *command.assignments):
        yield from hidden_in_word(word, for_shells=for_shells)
    for word in command.values:
        yield from hidden_in_value(word)
    if command.text:
        yield from hidden_in_text(command.text)
    if command.words:
        yield from hidden_in_words(command.words, 0, effort)


def _followed(found: Iterable[Possibility | Text], depth: int, effort: Effort) -> Iterator[Possibility]:
    """Yield possible commands, and those of the texts that a shell may read."""
    for each in found:
        if isinstance(each, Possibility):
            yield each
        elif depth >= _DEEPEST:
            yield ANYTHING
        else:
            yield from _parts(each.text, depth + 1, effort)


def _rough_parts(line: str, effort: Effort) -> Iterator[Possibility]:
    """Yield every word of a line that was not understood as the beginning of a command."""
    for words in rough_commands(line, effort):
        for at, word in enumerate(words):
            effort.spend()
            yield Possibility(words, at)
            if word.is_split or (word.literal and word.name in _READERS):
                yield ANYTHING
                return
            # The words of a text that a shell reads are here already.
            found = (*hidden_in_word(word), *hidden_in_words(words, at, effort))
            yield from (each for each in found if isinstance(each, Possibility))
            if word.name not in _SOURCES:
                yield from _rough_run(words[at:], effort)
            elif may_be_input(words[at + 1]) if at + 1 < len(words) else _READ_BY_NAME.search(line):
                yield ANYTHING


def _rough_run(words: tuple[LooseWord, ...], effort: Effort) -> Iterator[Possibility]:
    name = words[0].name
    runs_options = name in RUNNERS or name.startswith("git-")
    if name in WRAPPERS or runs_options or not words[0].literal:
        for each in possibilities(words, effort):
            if isinstance(each, Possibility):
                yield each
            elif runs_options or name == "env":
                # Where quotes mean nothing, it is not known where a value ends that touches its option.
                yield ANYTHING


def _may(pattern: tuple[str, ...], part: Possibility, effort: Effort) -> bool:
    """Match with both sides open; ``states`` are the places in the pattern that may come next."""
    words = part.words
    effort.spend(1 if words[part.start].literal else _COST_OF_FITTING)
    if not words[part.start].may_be(pattern[0], is_name=True):
        return False
    if words[part.start].is_split:
        return True
    states = _onward({0, 1} if pattern[0] == _STAR else {1}, pattern)
    skippable: set[int] = set()
    # Only before the first plain word, and only if the pattern speaks of no options.
    valued = _VALUED.get(words[part.start].name, frozenset()) if "-" not in "".join(pattern[1:]) else frozenset()
    is_value = False
    for at in range(part.start + 1, len(words)):
        if len(pattern) in states and pattern[-1] == _STAR:
            return True
        word = words[at]
        effort.spend()
        is_value = not is_value and words[at - 1].shape in valued and not word.is_split and not word.is_glob
        if not is_value and not word.shape.startswith("-"):
            valued = frozenset()
        after = set() if is_value else {reached for state in states for reached in _after(pattern, state, word)}
        # An option that the pattern does not know may stand anywhere, and so may its value: `git -C x push`.
        skipped = {state for state in states if word.shape.startswith("-") and not is_value} - {len(pattern)}
        states = _onward(after | skipped | skippable, pattern)
        skippable = skipped
        if not states:
            return False
    return len(pattern) in states or part.goes_on


def _after(pattern: tuple[str, ...], state: int, word: LooseWord) -> Iterable[int]:
    """Return the places that may come next once a word has come at one."""
    if not word.literal:
        return range(state, len(pattern) + 1)
    if state == len(pattern):
        return ()
    if pattern[state] == _STAR:
        return (state,)
    return (state + 1,) if word.may_be(pattern[state]) else ()


def _onward(states: Iterable[int], pattern: tuple[str, ...]) -> set[int]:
    """Add the places that are reached because a star may stand for nothing."""
    reached = set(states)
    for state in tuple(reached):
        at = state
        while at < len(pattern) and pattern[at] == _STAR:
            at += 1
            reached.add(at)
    return reached
