"""Commands that run other commands: what a command may run besides itself.

Of the wrappers that people use daily the grammar is known, so that only words that may be a command are taken for
one: ``timeout 5 make "$x"`` runs make. For all others each later word may begin a command. Where a command is given
what it runs by a pipe, a file or an unknown word, it may run anything (``UNKNOWN``).

Source of truth: the manuals of GNU coreutils 9, findutils 4.9, sudo 1.9, util-linux 2.38, bash 5.2, zsh 5.9. An option
that is not listed may have a value or not.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import ANY, LooseWord, fits, plain
from stockade.tool.option_runner import PROGRAMS, run_by_git, run_by_options
from stockade.tool.possibility import ANYTHING, Possibility, Text
from stockade.tool.shell_input import may_be_input
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.tool.effort import Effort

SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "rzsh", "csh", "tcsh"))
#: Commands that run what their words say.
WRAPPERS: Final = SHELLS | frozenset(
    word
    for line in (
        "eval . source env sudo doas su nice ionice chrt taskset nohup setsid stdbuf time timeout command builtin exec",
        "xargs parallel watch strace ltrace busybox toybox chroot unshare nsenter find flock script ssh runuser",
        "trap alias hash mapfile readarray complete compgen bind noglob sg pkexec run0 systemd-run fakeroot prlimit",
        "setarch linux32 linux64 numactl unbuffer xvfb-run dbus-run-session faketime bwrap gdb valgrind entr setpriv",
        "nocorrect - repeat coproc catchsegv chpst softlimit setuidgid gosu tini dumb-init expect fd fdfind arch",
        "start-stop-daemon daemonize screen tmux at batch crontab capsh firejail proot perf rlwrap torsocks",
        "proxychains sshpass cgexec gtimeout genv gnice gxargs gfind gstdbuf gnohup zargs zmv sched emulate",
        "add-zsh-hook caffeinate ssh-agent choom x86_64 i386 i486 i586 i686 uname26 uclampset runcon systemd-inhibit",
        "chronic jobs zpty zstyle",
    )
    for word in line.split()
)
#: Other programs that run what some of their words say.
RUNNERS: Final = PROGRAMS | {"git", "print"}
_LOADER: Final = re.compile(r"ld(-linux|64|-musl|\.so|-2).*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[\w./:,@%+-]*", re.ASCII)
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_DEEPEST: Final = 5
_EXECUTE: Final = ("-exec", "-execdir", "-ok", "-okdir")
# These run what they are given to read.
_READERS: Final = frozenset(("parallel", "su", "script", "chroot", "unshare", "nsenter", "at", "batch", "expect"))


class _Grammar(Value):
    """The options of a wrapper: letters with a value, letters without, words before the command, assignments too."""

    valued: str = ""
    flags: str = ""
    operands: int = 0
    assigns: bool = False
    #: Letters with which it reads commands, and with which it only looks for one.
    reads: str = ""
    looks: str = ""


_GRAMMARS: Final = {
    "env": _Grammar("uC", "i0v", assigns=True),
    "sudo": _Grammar("ughpCrtUDRT", "nEHkKbASPBN", assigns=True, reads="sie"),
    "doas": _Grammar("uC", "nL", reads="s"),
    "nice": _Grammar("n"),
    "nohup": _Grammar(),
    "setsid": _Grammar("", "cfw"),
    "stdbuf": _Grammar("ioe"),
    "ionice": _Grammar("cn", "t"),
    "timeout": _Grammar("sk", "vfp", operands=1),
    "xargs": _Grammar("InPLsdaE", "0rtpxo"),
    "command": _Grammar("", "p", looks="vV"),
    "builtin": _Grammar(),
    "noglob": _Grammar(),
    "exec": _Grammar("a", "cl"),
    "time": _Grammar("fo", "pavqV"),
}

# In a wrapper that is looked through word by word, these are read as they are by themselves.
_DEFINITE: Final = SHELLS | frozenset((*_GRAMMARS, "eval", ".", "source", "find"))


def possibilities(words: tuple[LooseWord, ...], effort: Effort, depth: int = 0) -> Iterator[Possibility | Text]:
    """Yield a command, and all that it may run."""
    effort.spend(len(words) // 4)
    if depth > _DEEPEST:
        yield ANYTHING
        return
    at, goes_on = 0, False
    while True:
        effort.spend()
        yield Possibility(words, at, goes_on)
        name = words[at]
        if not name.literal:
            if name.is_split or _may_wrap(name.name, effort):
                yield ANYTHING
            return
        kind = name.name
        if kind in _GRAMMARS:
            run = _Run(_GRAMMARS[kind], words, at, goes_on=goes_on, is_env=kind == "env", is_xargs=kind == "xargs")
            yield from run.inner(effort, depth)
            if run.command is None:
                return
            words, at, goes_on = run.command.words, run.command.start, run.command.goes_on
            continue
        if kind.startswith("git-"):
            # What git runs for its commands can be run by its own name.
            words, at = (plain("git"), plain(kind[4:]), *words[at + 1 :]), 0
            continue
        yield from _besides(kind, words[at:], effort, depth)
        if goes_on and kind in WRAPPERS:
            yield ANYTHING
        return


def _besides(kind: str, words: tuple[LooseWord, ...], effort: Effort, depth: int) -> Iterator[Possibility | Text]:
    if kind == "git":
        yield from run_by_git(words, effort)
    elif kind in PROGRAMS:
        yield from run_by_options(kind, words, effort)
    elif kind == "print":
        yield from _printed(words[1:])
    elif kind in WRAPPERS or _LOADER.fullmatch(kind):
        yield from _others(kind, words, effort, depth)


def _may_wrap(shape: str, effort: Effort) -> bool:
    effort.spend(20)
    return any(fits(wrapper, shape) for wrapper in WRAPPERS)


class _Run:
    """Looks for the command of a wrapper whose grammar is known; ``command`` is where it is for certain."""

    def __init__(
        self, grammar: _Grammar, words: tuple[LooseWord, ...], at: int, *, goes_on: bool, is_env: bool, is_xargs: bool
    ) -> None:
        self.grammar = grammar
        self.words = words
        self.start = at
        self.goes_on = goes_on or is_xargs
        self.is_env = is_env
        self.is_xargs = is_xargs
        self.inherited = goes_on
        self.command: Possibility | None = None
        #: Fewest plain words that have come; whether the next may be a value ("no", "yes", "maybe"); what else came.
        self.plain = 0
        self.value = "no"
        self.doubt = False
        self.ended = False
        self.letters = ""

    def inner(self, effort: Effort, depth: int) -> Iterator[Possibility | Text]:
        if self.is_xargs:
            effort.spend(len(self.words) // 2)
            self.words = _replaced(self.words, self.start)
        for at in range(self.start + 1, len(self.words)):
            effort.spend()
            word = self.words[at]
            if word.is_split:
                yield ANYTHING
                return
            if self.is_env and self.splits(word):
                yield from _split_string(self.words, at)
                return
            if self.is_argument(word):
                if self.operand(word, at):
                    return
                if self.plain <= self.grammar.operands or not word.literal:
                    yield from self.candidate(at, effort, depth)
            elif not set(self.letters).isdisjoint(self.grammar.looks):
                return
        if self.inherited or not set(self.letters).isdisjoint(self.grammar.reads):
            yield ANYTHING

    def is_argument(self, word: LooseWord) -> bool:
        """Say whether a word is no option, no value of one, and no assignment."""
        if self.ends_options(word):
            return False
        if self.is_option(word):
            self.option(word)
            return False
        if self.value == "yes" and not word.is_glob:
            self.value = "no"
            return False
        # After `set -k` every shell word of that form is an assignment.
        return not _ASSIGNED.match(word.shape) and not (self.grammar.assigns and "=" in word.shape)

    def operand(self, word: LooseWord, at: int) -> bool:
        """Say whether a plain word is the command for certain; count it if it is not."""
        maybe_value, self.value = self.value != "no", "no"
        if word.is_glob or maybe_value or (self.grammar.assigns and not word.literal):
            self.doubt = True
            return False
        self.plain += 1
        if self.plain > self.grammar.operands:
            self.command = Possibility(self.words, at, self.goes_on)
            return True
        return False

    def candidate(self, at: int, effort: Effort, depth: int) -> Iterator[Possibility | Text]:
        """Yield what runs if a word is the command; an unknown word counts only where the options leave a doubt."""
        word = self.words[at]
        if word.literal and word.name not in WRAPPERS:
            yield Possibility(self.words, at, self.goes_on)
        elif word.literal or word.is_glob or self.doubt:
            yield from possibilities(self.words[at:], effort, depth + 1)
            if self.goes_on:
                yield ANYTHING

    def ends_options(self, word: LooseWord) -> bool:
        if self.ended or self.value == "yes" or word.shape != "--":
            return False
        self.ended = self.value == "no"
        self.doubt = self.doubt or not self.ended
        self.value = "no"
        return True

    def is_option(self, word: LooseWord) -> bool:
        return not self.ended and len(word.shape) > 1 and word.shape[0] in "-+" and self.value != "yes"

    def option(self, word: LooseWord) -> None:
        text = word.shape
        if text.startswith("--"):
            self.value = "no" if "=" in text else "maybe"
            return
        self.value = "no"
        for at, letter in enumerate(text[1:], 1):
            self.letters += letter
            if letter in self.grammar.valued:
                self.value = "yes" if at == len(text) - 1 else "no"
                return
            if letter not in self.grammar.flags + self.grammar.reads + self.grammar.looks and not letter.isdigit():
                self.value = "maybe"

    def splits(self, word: LooseWord) -> bool:
        """Say whether a word makes env read a text: ``-S``, ``-iS``, ``--split-string=``."""
        if self.ended or self.value == "yes":
            return False
        text = word.shape
        return text.startswith("--s") or bool(re.match(r"-[^-]*S", text))


def _replaced(words: tuple[LooseWord, ...], start: int) -> tuple[LooseWord, ...]:
    """Return words in which those are unknown that xargs replaces."""
    marks = {"{}"}
    for at in range(start + 1, len(words)):
        text = words[at].shape
        if not text.startswith("-"):
            continue
        value = text[3:] if re.match(r"-[0rtpxo][IJi]", text) else text[2:]
        if re.match(r"-[0rtpxo]?[IJi]", text):
            marks.add(value or (words[at + 1].shape if at + 1 < len(words) else "{}"))
        elif text.startswith("--r"):
            marks.add(text.partition("=")[2] or "{}")
    return words[: start + 1] + tuple(_marked(word, marks) for word in words[start + 1 :])


def _marked(word: LooseWord, marks: set[str]) -> LooseWord:
    shape = word.shape
    for mark in marks:
        shape = shape.replace(mark, ANY)
    return word if shape == word.shape else LooseWord(word.spelling, shape, word.is_split, word.is_glob)


def _split_string(words: tuple[LooseWord, ...], at: int) -> Iterator[Possibility | Text]:
    text = words[at].shape
    following = at + 1
    if text.startswith("--"):
        _, equals, text = text.partition("=")
    else:
        equals = text = text.partition("S")[2]
    if not equals and following < len(words):
        text, following = words[following].shape, following + 1
    if not text or not re.fullmatch(r"[A-Za-z0-9_./=: \t@%+,-]*", text) or not words[at].literal:
        yield ANYTHING
        return
    yield Text(" ".join(("env", text, *(_quoted(word) for word in words[following:]))))


def _quoted(word: LooseWord) -> str:
    return "'" + word.shape.replace("'", "'\\''") + "'" if word.literal else word.spelling


def _others(kind: str, words: tuple[LooseWord, ...], effort: Effort, depth: int) -> Iterator[Possibility | Text]:
    effort.spend(len(words))
    if kind in SHELLS:
        yield from _shell(words)
    elif kind == "eval":
        yield from _evaluated(words[1:])
    elif kind in (".", "source"):
        if len(words) > 1:
            yield Possibility(words, 1)
        if len(words) == 1 or may_be_input(words[1]) or words[1].is_split:
            yield ANYTHING
    elif kind in ("find", "gfind"):
        yield from _find(words, effort, depth)
    else:
        yield from _every_word(kind, words, effort, depth)


def _printed(words: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    """Yield what zsh's ``print -P`` runs: it expands its words once more, as it does with a prompt."""
    options = [word for word in words if word.shape[:1] == "-"]
    expands = any("P" in word.shape or not word.literal for word in options)
    if expands and any(not word.literal or re.search(r"[$`]", word.shape) for word in words):
        yield ANYTHING


def _evaluated(words: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    if all(word.literal for word in words):
        yield Text(" ".join(word.shape for word in words))
    else:
        yield ANYTHING


def _shell(words: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    """Yield what a shell runs: the text behind ``-c``, or what it reads if no file is named."""
    takes_text = doubt = False
    for place, word in enumerate(words[1:], 1):
        if word.is_split or "stdin" in word.shape.lower():
            yield ANYTHING
            return
        if word.shape == "--" or _ASSIGNED.match(word.shape):
            continue
        if word.shape[:1] in ("-", "+") and word.shape != "-":
            if "s" in word.shape and not word.shape.startswith("--"):
                yield ANYTHING
            takes_text = takes_text or "c" in word.shape
            # It may have a value, as -o pipefail and --rcfile x have; fish takes -c'text' in one.
            doubt = doubt or word.shape.startswith("--") or "o" in word.shape.lower() or not word.literal
            yield Text(word.shape.partition("c")[2]) if word.literal else ANYTHING
            continue
        if takes_text or doubt:
            yield Text(word.shape) if word.literal else ANYTHING
        if not takes_text:
            yield ANYTHING if may_be_input(word) else Possibility(words, place)
        if not doubt:
            return
    if not takes_text:
        yield ANYTHING


def _find(words: tuple[LooseWord, ...], effort: Effort, depth: int) -> Iterator[Possibility | Text]:
    words = tuple(_marked(word, {"{}"}) for word in words)
    for place in range(1, len(words)):
        effort.spend()
        word, before = words[place], words[place - 1]
        if word.is_split or (word.is_glob and any(word.may_be(action) for action in _EXECUTE)):
            yield ANYTHING
            return
        if place > 1 and any(before.may_be(action) for action in _EXECUTE):
            yield from possibilities(words[place:], effort, depth + 1)


def _every_word(kind: str, words: tuple[LooseWord, ...], effort: Effort, depth: int) -> Iterator[Possibility | Text]:
    yield from _at_once(kind, words)
    for place in range(1, len(words)):
        word = words[place]
        if not word.literal and (word.is_split or word.shape[0] != "-" or kind in ("alias", "trap")):
            yield Possibility(words, place)
            if word.is_split or _may_wrap(word.name, effort) or kind in ("alias", "trap"):
                yield ANYTHING
                return
        for value in _values(word, is_alias=kind in ("alias", "hash")):
            effort.spend()
            yield Possibility(words, place) if value == word.shape else _behind(value, words[place + 1 :], effort)
            if not value.replace("-", "").isalnum():
                yield Text(value)
        if word.literal and (word.name in _DEFINITE or (place + 1 == len(words) and word.name in WRAPPERS)):
            yield from possibilities(words[place:], effort, depth + 1)
        if "{}" in word.shape:
            yield ANYTHING


def _at_once(kind: str, words: tuple[LooseWord, ...]) -> Iterator[Possibility]:
    """Yield what a wrapper runs whatever its single words are."""
    if kind == "parallel" and _has_its_words(words):
        end = next(at for at, word in enumerate(words) if word.shape == ":::")
        yield Possibility(words[:end], 1, goes_on=True)
    elif kind in _READERS:
        yield ANYTHING
    if kind == "hash" and any(word.shape[:2] == "-p" or "=" in word.shape for word in words[1:]):
        # From here on a name means another command.
        yield ANYTHING
    for word in words[1:] if kind == "alias" else ():
        if values := word.shape.partition("=")[2].split():
            # Other words come where the alias stands.
            yield Possibility(tuple(map(plain, values)), 0, goes_on=True)


def _has_its_words(words: tuple[LooseWord, ...]) -> bool:
    """Say whether parallel has all words in the line, and adds each at the end of its command."""
    shapes = [word.shape for word in words]
    return (
        all(word.literal for word in words)
        and ":::" in shapes[2:]
        and shapes[1][:1] != "-"
        and not any(shape.startswith((":::+", "::::")) or "{" in shape for shape in shapes)
    )


def _behind(value: str, rest: tuple[LooseWord, ...], effort: Effort) -> Possibility:
    effort.spend(len(rest))
    return Possibility((plain(value), *rest))


def _values(word: LooseWord, *, is_alias: bool) -> Iterator[str]:
    """Yield what in a word of a wrapper may be a command: the word, or what is written to an option or to an alias."""
    text = word.shape
    if not word.literal:
        return
    if text.startswith("--"):
        yield from filter(None, (text.partition("=")[2],))
    elif text.startswith("-"):
        # `-S` and `-qc` may have a value that begins at once.
        yield from filter(None, (text[start:] for start in (2, 3)))
    elif is_alias or not _ASSIGNMENT.fullmatch(text):
        yield text
        yield from filter(None, (text.partition("=")[2],))
