"""Which programs a line would start outside the walls, and which of them commands inside could have written.

A name on PATH is whatever lies there. With an activated environment PATH begins in the project, where every command
inside may write: one call plants ``.venv/bin/docker``, and the next, ``docker ps``, excluded and allowed, would run it
outside. Rules, for everything that runs outside while the walls stand:

- A name is looked for on PATH without the entries that commands can write, and without relative ones. The command's
  environment has the same PATH (``stockade.tool.outside_environment``), so that what it starts by name is found in the
  same way.
- A program that lies in such a place after all is *planted*: by its path, by a link on the way to it, by a word in its
  first line, or because it is only there. So is a script that an interpreter is given, unless it lies elsewhere, and
  what a wrapper (``timeout``, ``env``) is given. A call with a planted program is asked for, with that reason, whatever
  a rule allows.
- A bypass of a runner of the project's own code (``stockade.tool.project_code``) is asked for as well: a rule that
  allows ``npm test`` may have been meant for inside.
- Somebody who says yes to a planted program or to a runner gets what they would expect: then PATH is the whole one, and
  the question names every program of the line that this PATH finds in a writable place.
- The shell itself is chosen by the same rule, and reads no start-up file that commands can write.

What a program reads apart from that (its own configuration, a Makefile) is not looked at.
Source of truth: execve(2) on interpreters.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.platforms.private_cache import caches_directory
from stockade.platforms.requirements import is_program
from stockade.policy.builtin import changes_directory, is_builtin
from stockade.policy.shell_line import parse
from stockade.sandbox.shell import choose
from stockade.tool.outside_environment import PATH, OutsideEnvironment, counts
from stockade.tool.project_code import asks_only, has_no_script, is_interpreter, is_runner, runs_its_words
from stockade.tool.written_inside import WrittenInside
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stockade.policy.files import FileRules
    from stockade.policy.shell_line import SimpleCommand, Word

#: As the kernel has it: the longest first line, and how often an interpreter may have one itself.
_FIRST_LINE: Final = 256
_DEEPEST: Final = 5
#: Names that are looked up for one line; nobody would read more.
_MOST: Final = 200
_UNQUOTED: Final = str.maketrans(dict.fromkeys("'\"\\", ""))
_PATH_LIKE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-@/")


class Planted(Value):
    """A program that commands inside could have written, by its name in the line, and why that is so."""

    name: str
    why: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"`{escape(self.name, 80)}` {self.why}"


class Programs(Value):
    """What a line would start outside: programs that are planted, and notes about those that are not what PATH says.

    ``whole_path``: once somebody has said yes, it runs with all of PATH; then ``shadowed`` are planted too.
    """

    planted: tuple[Planted, ...] = ()
    shadowed: tuple[Planted, ...] = ()
    notes: tuple[str, ...] = ()
    whole_path: bool = False

    @property
    def shown(self) -> str:
        """What somebody should know before they say yes."""
        return ", ".join(map(str, dict.fromkeys((*self.planted, *self.shadowed)))) if self.whole_path else ""


class Surroundings(Value):
    """What a call gets that leaves the walls: the words that start its shell, and the environment.

    ``approved`` is the environment of a call that somebody has said yes to.
    """

    programs: Programs
    shell: tuple[str, ...]
    environment: Mapping[str, str]
    approved: Mapping[str, str]


def surroundings(
    line: str,
    rules: FileRules,
    environment: Mapping[str, str],
    directory: str,
    *,
    temporary: str = "",
    bypass: bool = False,
) -> Surroundings:
    """Return what a line gets outside, where commands inside may write by ``rules``. Raises UnavailableError."""
    lookup = Lookup(rules, environment, directory, temporary)
    programs, shell = lookup.programs(line, bypass=bypass), lookup.shell()
    safe = lookup.environment.safe(shell[0])
    return Surroundings(programs, shell, safe, lookup.environment.approved(shell[0]) if programs.whole_path else safe)


class Lookup:
    """Looks programs up for calls that run outside, in one directory, as the disk is now."""

    def __init__(self, rules: FileRules, environment: Mapping[str, str], directory: str, temporary: str = "") -> None:
        """Take what commands may write (``temporary`` and private caches too), and what the call would get."""
        self.written = WrittenInside(rules, temporary, caches_directory(rules.home, environment))
        self.environment = OutsideEnvironment(environment, self.written, directory)
        self._directory = directory
        self._shell = environment.get("SHELL", "")
        self._entries = environment.get(PATH, os.defpath).split(os.pathsep)
        self._safe = tuple(entry for entry in self._entries if counts(entry, self.written))
        self.dropped = tuple(dict.fromkeys(entry for entry in self._entries if entry not in self._safe))

    def shell(self) -> tuple[str, ...]:
        """Return the words that start the shell for a line outside. Raises UnavailableError if no shell is left."""
        safe = self.environment.safe("")
        shell = choose(safe | {"SHELL": self._shell}, acceptable=lambda path: path not in self.written)
        start_up = os.path.join(safe.get("ZDOTDIR") or safe.get("HOME", "/"), ".zshenv")
        # zsh reads these two whatever it is started for; bash has BASH_ENV for that, which is not there any more.
        read_only = start_up not in self.written and f"{start_up}.zwc" not in self.written
        return (shell,) if read_only or os.path.basename(shell) != "zsh" else (shell, "-f")

    def programs(self, line: str, *, bypass: bool = False) -> Programs:
        """Return what a line would start; ``bypass``: by a call's own wish, not because a setting excludes it."""
        try:
            commands = [command for command in parse(line) if command.words]
        except InvalidTextError:
            return self._guessed(line)
        names = tuple(dict.fromkeys(command.words[0].text for command in commands))
        if len(names) > _MOST:
            many = Planted(names[0], f"is one of {len(names)} programs, which are too many to look up")
            return Programs((many,), whole_path=True)
        planted = tuple(dict.fromkeys(self._planted(commands, bypass=bypass)))
        notes = tuple(note for name in names if (note := self._note(name)))
        whole = bool(planted) or any(map(is_runner, names))
        return Programs(planted, tuple(self._shadowed(names)), notes, whole)

    def find(self, name: str) -> str:
        """Return where a name is found outside, or nothing."""
        return self._hit(name, self._safe)[1]

    def _hit(self, name: str, entries: Iterable[str]) -> tuple[str, str]:
        """Return the first entry of a list in which there is a program of this name, and its path there."""
        for entry in entries:
            path = os.path.join(self._directory, entry, name)
            if is_program(path):
                return entry, path
        return "", ""

    def _planted(self, commands: Sequence[SimpleCommand], *, bypass: bool) -> Iterator[Planted]:
        moves = changes_directory(commands)
        for command in commands:
            name = command.words[0]
            for word in command.assignments:
                variable, _, value = word.text.partition("=")
                if self.environment.kept(variable, value) != value:
                    yield Planted(word.text, "names a place that commands inside can write")
            if name.literal and not is_builtin(name.text):
                why = self._why(name.text, command.words[1:], moves=moves, bypass=bypass)
                if why:
                    yield Planted(name.text, why)

    def _why(self, name: str, words: Sequence[Word], *, moves: bool, bypass: bool) -> str:
        """Say why a command is planted, or nothing."""
        if "/" in name and moves and not name.startswith("/"):
            return "is looked for in the directory that the line goes to"
        path = self.find(name) if "/" not in name else os.path.join(self._directory, name)
        if not path:
            _, shadow = self._hit(name, self.dropped)
            return _can_be_written(shadow) if shadow else ""
        if path in self.written:
            return _can_be_written(path)
        real = os.path.realpath(path)
        if bypass and (is_runner(name) or is_runner(real)):
            return "runs what files of the project say, which commands inside can write"
        return self._why_first_line(path) or self._why_words(name, real, words, moves=moves)

    def _why_first_line(self, path: str, depth: int = 0) -> str:
        """Say why the first line of a script names something planted; ``env`` finds a bare name as we do."""
        words = _first_line(path)
        if not words or depth == _DEEPEST:
            return ""
        for word in (words[0], *(word for word in words[1:] if "/" in word)):
            if os.path.join(self._directory, word) in self.written:
                return f'is run by "{escape(word)}", which commands inside can write'
        return self._why_first_line(words[0], depth + 1)

    def _why_words(self, name: str, real: str, words: Sequence[Word], *, moves: bool) -> str:
        """Say why the words of an interpreter or a wrapper are planted."""
        if runs_its_words(name) or runs_its_words(real):
            return self._why_any_word(words, moves=moves)
        if not is_interpreter(name) and not is_interpreter(real):
            return ""
        if asks_only(real, [word.text for word in words]):
            return ""
        script = words[0] if words else None
        unknown = script is None or not script.literal or script.text.startswith("-") or has_no_script(name)
        if unknown or script is None or (moves and not script.text.startswith("/")):
            return "runs what its words say, which no rule can judge"
        path = os.path.join(self._directory, script.text)
        return f'runs "{escape(path)}", which commands inside can write' if path in self.written else ""

    def _why_any_word(self, words: Sequence[Word], *, moves: bool) -> str:
        for word in words:
            path = os.path.join(self._directory, word.text)
            relative = moves and "/" in word.text and not word.text.startswith("/")
            if not word.literal or relative or (os.path.isfile(path) and path in self.written):
                return f"is given `{escape(word.text, 80)}`, which commands inside can write"
            if is_interpreter(word.text) or is_runner(word.text):
                return f"runs `{escape(word.text, 80)}`, which runs what files and words say"
        return ""

    def _note(self, name: str) -> str:
        """Say that a name means another program outside than PATH would say."""
        shadow, found = self._shadow(name), self.find(name)
        if not shadow or found in ("", shadow) or is_builtin(name):
            return ""
        return f'{escape(name)} is "{escape(found)}" here: commands inside can write "{escape(shadow)}"'

    def _shadow(self, name: str) -> str:
        """Return what the whole PATH finds for a name, if that lies where commands can write."""
        entry, path = ("", "") if "/" in name else self._hit(name, self._entries)
        return path if path and (entry in self.dropped or path in self.written) else ""

    def _shadowed(self, names: Iterable[str]) -> Iterator[Planted]:
        for name in names:
            if shadow := self._shadow(name):
                yield Planted(name, _can_be_written(shadow))

    def _guessed(self, line: str) -> Programs:
        """Return what a line that is not understood may start: every word of it may be a name."""
        spaced = "".join(char if char in _PATH_LIKE else " " for char in line.translate(_UNQUOTED))
        words = tuple(dict.fromkeys(spaced.split()))[:_MOST]
        shadowed = tuple(self._shadowed(words))
        paths = [word for word in words if "/" in word]
        written = [word for word in paths if self._is_written_program(os.path.join(self._directory, word))]
        planted = [one for one in shadowed if not self.find(one.name)]
        planted += [Planted(word, _can_be_written(os.path.join(self._directory, word))) for word in written]
        whole = bool(planted) or any(is_runner(word) or is_interpreter(word) for word in words)
        return Programs(tuple(planted), shadowed, whole_path=whole)

    def _is_written_program(self, path: str) -> bool:
        return is_program(path) and path in self.written


def _can_be_written(path: str) -> str:
    return f'is "{escape(path)}", which commands inside can write'


def _first_line(path: str) -> list[str]:
    """Return the words of the first line of a script, without the marks; nothing of a program."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return []
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        head = os.read(descriptor, _FIRST_LINE) if regular else b""
    except OSError:
        return []
    finally:
        os.close(descriptor)
    line = head.removeprefix(b"#!").split(b"\n")[0] if head.startswith(b"#!") else b""
    return [os.fsdecode(word) for word in line.split()]
