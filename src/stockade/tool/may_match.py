"""Could a line do what a pattern speaks of? For rules that deny or ask, where doubt counts against the line.

``policy.exclusion`` asks whether all of a line is covered for certain; here one part that *may* match is enough:

- every simple command counts, also in substitutions, whatever is assigned before it, by its path too (``/bin/rm``);
- a word that only the shell knows (``$x``, ``*.txt``) may be any words, as the name of a command any command;
- options that the pattern does not know may stand between its words, each with a value (``git -C x push``);
- commands that run others (``env``, ``sudo``, ``xargs``, ``trap``) are looked through, and so is a line given to a
  shell, also where it touches an option (``env -S'rm x'``); what a shell is given to read may be anything;
- a line that is not certain to be read right is searched word by word.

No wall: a script may hold anything, and ``rm -fr`` is not ``rm -rf``. What must not happen is prevented by the
sandbox, not by these rules.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.exclusion import may_run_subscript
from stockade.policy.shell_line import SimpleCommand, Word, parse
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stockade.policy.command_pattern import CommandPattern
    from stockade.settings.layer import Sourced

_STAR: Final = "*"
_DEEPEST: Final = 4
_MOST_WORDS: Final = 1000
_SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "eval", ".", "source"))
#: Commands that run what their words say.
WRAPPERS: Final = _SHELLS | frozenset(
    word
    for line in (
        "env sudo doas su nice ionice chrt taskset nohup setsid stdbuf time timeout command builtin exec xargs",
        "parallel watch strace ltrace busybox toybox chroot unshare nsenter find flock script ssh runuser setpriv",
        "trap alias hash mapfile readarray complete compgen bind noglob sg pkexec run0 systemd-run fakeroot prlimit",
        "setarch linux32 linux64 numactl unbuffer xvfb-run dbus-run-session faketime bwrap gdb valgrind entr",
    )
    for word in line.split()
)
_KEYWORDS: Final = frozenset(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "coproc"))
_OPEN: Final = frozenset("$*?[{~^")
_INPUTS: Final = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
_BREAKS: Final = str.maketrans(dict.fromkeys(";&|()<>`\r", "\n") | dict.fromkeys("'\"", ""))


class Possible(Value):
    """A pattern that may match, the part of the line that it may match, and whether there is any doubt."""

    pattern: Sourced[CommandPattern]
    part: str
    certain: bool

    def __str__(self) -> str:
        """Return it in words: what matches which rule of which file."""
        verb = "matches" if self.certain else "may be what is meant by"
        return f"`{escape(self.part, 80)}` {verb} `{self.pattern.value}` of {self.pattern.origin}"


class _Part(Value):
    """Words that may be run as one command; ``sure`` if they are certain to be."""

    words: tuple[Word, ...]
    sure: bool

    def __str__(self) -> str:
        return " ".join(word.text for word in self.words)


#: What is piped into a shell, or is too much to look at.
_UNSEEN: Final = _Part((Word("(what cannot be seen)", literal=False),), sure=False)


def may_match(patterns: Sequence[Sourced[CommandPattern]], line: str) -> Possible | None:
    """Return the first pattern that some part of a line may match; one that matches for certain comes first."""
    if not patterns:
        return None
    found: Possible | None = None
    for part in _parts(line, 0):
        for pattern in patterns:
            if not _may(pattern.value.words, part.words):
                continue
            if part.sure and pattern.value.but(assignments=()).matches(SimpleCommand(part.words)):
                return Possible(pattern, str(part), certain=True)
            found = found or Possible(pattern, str(part), certain=False)
    return found


def _parts(line: str, depth: int) -> Iterator[_Part]:
    try:
        commands = parse(line)
    except InvalidTextError:
        yield from _rough_parts(line)
        return
    for command in commands:
        if command.words:
            yield from _with_inner(tuple(map(_settled, command.words)), depth)


def _with_inner(words: tuple[Word, ...], depth: int) -> Iterator[_Part]:
    """Yield a command, and what it may run: any later word of a wrapper may begin another command."""
    yield _Part(words, sure=depth == 0)
    for word in words:
        if word.literal and may_run_subscript(word):
            yield from _rough_parts(word.text)
    if not words[0].literal or _name(words[0]) not in WRAPPERS:
        return
    rest = words[1:]
    if len(rest) > _MOST_WORDS or any(_reads_input(words[at:]) for at in range(len(words))):
        yield _UNSEEN
        return
    for at, word in enumerate(rest):
        for text in _values(word):
            yield _Part((Word(text, literal=word.literal), *rest[at + 1 :]), sure=False)
            if word.literal and depth < _DEEPEST and not text.replace("-", "").isalnum():
                yield from (part.but(sure=False) for part in _parts(text, depth + 1))


def _values(word: Word) -> Iterator[str]:
    """Yield what in a word of a wrapper may be a command: the word, or what is written to an option or to an alias."""
    if word.text.startswith("--"):
        yield from filter(None, (word.text.partition("=")[2],))
    elif word.text.startswith("-"):
        # `-S` and `-qc` may have a value that begins at once.
        yield from filter(None, (word.text[start:] for start in (2, 3)))
    elif not _is_assignment(word):
        yield word.text
    elif " " in word.text:
        yield word.text.partition("=")[2]


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _reads_input(words: tuple[Word, ...]) -> bool:
    """Say whether words are a shell that runs what it is given to read."""
    if not words[0].literal or _name(words[0]) not in _SHELLS:
        return False
    options = [word.text for word in words[1:] if word.text.startswith("-")]
    if len(options) == len(words) - 1 or not _INPUTS.isdisjoint(word.text for word in words[1:]):
        return True
    return any("s" in option and not option.startswith("--") for option in options)


def _rough_parts(line: str) -> Iterator[_Part]:
    """Yield every run of words of a line that was not understood."""
    text = line.replace("\\\n", "").replace("\\", "").translate(_BREAKS)
    for piece in text.split("\n"):
        words = tuple(Word(text, literal=_OPEN.isdisjoint(text)) for text in piece.split())
        if len(words) > _MOST_WORDS:
            yield _UNSEEN
            continue
        start = next((at for at, word in enumerate(words) if not _is_prefix(word)), len(words))
        wrapped = False
        for at in range(start, len(words)):
            # Only where a command is named, a word that nobody knows may be one: arguments are often such.
            named = at == start or words[at - 1].text in _KEYWORDS
            if named or words[at].literal or (wrapped and "$" in words[at].text):
                yield _Part(words[at:], sure=False)
            if (named or wrapped) and _reads_input(words[at:]):
                yield _UNSEEN
            wrapped = wrapped or _name(words[at]) in WRAPPERS


def _is_prefix(word: Word) -> bool:
    return word.text in _KEYWORDS or _is_assignment(word)


def _is_assignment(word: Word) -> bool:
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _settled(word: Word) -> Word:
    """Return a word that is only open because of the home directory as what it will end with."""
    plain = word.text.removeprefix("~")
    if word.literal or plain == word.text or not _OPEN.isdisjoint(plain) or "'" in plain or '"' in plain:
        return word
    return Word(word.text)


def _may(pattern: tuple[str, ...], words: tuple[Word, ...]) -> bool:
    """Match with both sides open; ``states`` are the places in the pattern that may come next."""
    states = _onward({0}, pattern)
    skippable: set[int] = set()
    for at, word in enumerate(words):
        after = {reached for state in states for reached in _after(pattern, state, word, is_name=at == 0)}
        # An option that the pattern does not know may stand anywhere, and so may its value: `git -C x push`.
        skipped = {state for state in states if at and word.literal and word.text.startswith("-")} - {len(pattern)}
        states = _onward(after | skipped | skippable, pattern)
        skippable = skipped
        if not states:
            return False
    return len(pattern) in states


def _after(pattern: tuple[str, ...], state: int, word: Word, *, is_name: bool) -> Iterable[int]:
    """Return the places that may come next once a word has come at one."""
    if not word.literal:
        return range(state, len(pattern) + 1)
    if state == len(pattern):
        return ()
    if pattern[state] == _STAR:
        return (state,)
    return (state + 1,) if _same(pattern[state], word.text, is_name=is_name) else ()


def _onward(states: Iterable[int], pattern: tuple[str, ...]) -> set[int]:
    """Add the places that are reached because a star may stand for nothing."""
    reached = set(states)
    for state in tuple(reached):
        at = state
        while at < len(pattern) and pattern[at] == _STAR:
            at += 1
            reached.add(at)
    return reached


def _same(pattern: str, text: str, *, is_name: bool) -> bool:
    from fnmatch import fnmatchcase

    # In a pattern only the star is special.
    glob = pattern.replace("[", "[[]").replace("?", "[?]")
    return fnmatchcase(text, glob) or (is_name and fnmatchcase(text.rpartition("/")[2], glob))
