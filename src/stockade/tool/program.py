"""Which programs a line would start outside the walls, and which of them commands inside could have written.

A name on PATH is whatever lies there. With an activated environment PATH begins in the project, where every command
inside may write: one call plants ``.venv/bin/docker``, and the next, ``docker ps``, excluded and allowed, would run it
outside. Rules, for everything that runs outside while the walls stand:

- A name is looked for on PATH without the entries that commands can write, and without relative ones. The command's
  environment has the same PATH, so that what it starts by name is found in the same way.
- A program that lies in such a place after all is *planted*: by its path, by a link on the way to it, by the
  interpreter in its first line, or because it is only there. So is a script that an interpreter is given, unless it
  lies elsewhere. A call with a planted program is asked for, with that reason, whatever a rule allows.
- Somebody who says yes to a planted program, or to a runner of the project's own code
  (``stockade.tool.project_code``), gets what they would expect: then PATH is the whole one, and the question names
  every program of the line that this PATH finds in a writable place.
- The shell itself is chosen by the same rule.

What a program reads apart from that (its own configuration, a Makefile) is not looked at.
Source of truth: execve(2) on interpreters, environ(7), ld.so(8).
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.builtin import is_builtin
from stockade.policy.files import Access, own_protections, survey
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.places import Disk, follow
from stockade.policy.shell_line import parse
from stockade.sandbox.shell import choose
from stockade.tool.project_code import asks_only, is_interpreter, is_runner
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stockade.policy.files import FileRules
    from stockade.policy.shell_line import SimpleCommand, Word

PATH: Final = "PATH"
#: Lists of directories, in which programs and loaders look for code.
_LISTS: Final = (PATH, "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB")
#: One file or directory each, from which code is run.
_SINGLE: Final = ("BASH_ENV", "ENV", "ZDOTDIR", "PYTHONHOME", "PYTHONSTARTUP", "GIT_EXEC_PATH")
_MOVING: Final = frozenset(("cd", "chdir", "pushd", "popd"))
#: As the kernel has it: the longest first line, and how often an interpreter may have one itself.
_FIRST_LINE: Final = 256
_DEEPEST: Final = 5
_MOST_WORDS: Final = 500
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
    """What a call gets that leaves the walls: the shell that reads its line, and the environment.

    ``whole`` is the environment of a call that somebody has said yes to.
    """

    programs: Programs
    shell: str
    environment: Mapping[str, str]
    whole: Mapping[str, str]


def surroundings(
    line: str, rules: FileRules, environment: Mapping[str, str], directory: str, temporary: str = ""
) -> Surroundings:
    """Return what a line gets outside, where commands inside may write by ``rules``. Raises UnavailableError."""
    lookup = Lookup(rules, environment, directory, temporary)
    programs = lookup.programs(line)
    safe = lookup.environment()
    return Surroundings(programs, lookup.shell(), safe, environment if programs.whole_path else safe)


class Lookup:
    """Looks programs up for calls that run outside, in one directory, as the disk is now."""

    def __init__(self, rules: FileRules, environment: Mapping[str, str], directory: str, temporary: str = "") -> None:
        """Take what commands may write (``temporary`` too), and what the call would get."""
        self._disk = Disk()
        ground = survey(rules, self._disk, search=False)
        # Of what is protected in writable places, only our own installation holds programs.
        self._ground = ground.but(protections=own_protections(ground))
        self._environment = environment
        self._directory = directory
        self._temporary = temporary
        self._entries = environment.get(PATH, os.defpath).split(os.pathsep)
        self.dropped = tuple(dict.fromkeys(entry for entry in self._entries if not self._counts(entry)))

    def environment(self) -> dict[str, str]:
        """Return the environment without the places, in lists of places to take code from, that commands can write."""
        found = dict(self._environment)
        for name in (*_LISTS, *_SINGLE):
            if name in found:
                found[name] = os.pathsep.join(entry for entry in _entries(name, found[name]) if self._counts(entry))
                if not found[name]:
                    del found[name]
        # Without PATH shells look in places of their own choosing; with an empty one in the working directory.
        return {PATH: os.defpath} | found

    def shell(self) -> str:
        """Return the shell that reads a line outside. Raises UnavailableError if there is none."""
        return choose(self.environment(), acceptable=lambda path: not self.is_writable(path))

    def programs(self, line: str) -> Programs:
        """Return what a line would start."""
        try:
            commands = [command for command in parse(line) if command.words]
        except InvalidTextError:
            return self._guessed(line)
        names = tuple(dict.fromkeys(command.words[0].text for command in commands))
        planted = tuple(dict.fromkeys(self._planted(commands)))
        notes = tuple(note for name in names if (note := self._note(name)))
        whole = bool(planted) or any(map(is_runner, names))
        return Programs(planted, tuple(self._shadowed(names)), notes, whole)

    def find(self, name: str) -> str:
        """Return where a name is found outside, or nothing."""
        return self._find(name, (entry for entry in self._entries if entry not in self.dropped))

    def is_writable(self, path: str) -> bool:
        """Say whether commands inside can write a path, or a link on the way to it."""
        try:
            trail = follow(path, self._disk)
        except InvalidTextError:
            return True
        parents = (os.path.dirname(step.link) for step in trail.steps)
        return any(map(self._may_write, (trail.place, *parents)))

    def _may_write(self, place: str) -> bool:
        if self._temporary and is_at_or_below(place, self._temporary):
            return True
        return self._ground.judge(Access.WRITE, place, self._disk).allowed

    def _counts(self, entry: str) -> bool:
        return entry.startswith("/") and not self.is_writable(entry)

    def _find(self, name: str, entries: Iterable[str]) -> str:
        return self._hit(name, entries)[1]

    def _hit(self, name: str, entries: Iterable[str]) -> tuple[str, str]:
        """Return the first entry of a list in which there is a program of this name, and its path there."""
        for entry in entries:
            path = os.path.join(self._directory, entry, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return entry, path
        return "", ""

    def _planted(self, commands: Sequence[SimpleCommand]) -> Iterator[Planted]:
        moves = any(command.words[0].text in _MOVING for command in commands)
        for command in commands:
            name = command.words[0]
            if not name.literal or is_builtin(name.text):
                continue
            why = self._why(name.text, moves=moves) or self._why_script(name.text, command.words[1:], moves=moves)
            if why:
                yield Planted(name.text, why)

    def _why(self, name: str, *, moves: bool) -> str:
        """Say why a program is planted, or nothing."""
        if "/" not in name:
            found = self.find(name)
            if found:
                return self._why_interpreter(found)
            shadow = self._find(name, self.dropped)
            return _can_be_written(shadow) if shadow else ""
        if moves and not name.startswith("/"):
            return "is looked for in the directory that the line goes to"
        path = os.path.join(self._directory, name)
        return _can_be_written(path) if self.is_writable(path) else self._why_interpreter(path)

    def _why_interpreter(self, path: str, depth: int = 0) -> str:
        """Say why the interpreter in the first line of a program is planted; ``env`` looks on PATH, as we do."""
        interpreter = _interpreter(path)
        if not interpreter or depth == _DEEPEST:
            return ""
        if self.is_writable(os.path.join(self._directory, interpreter)):
            return f'is run by "{escape(interpreter)}", which commands inside can write'
        return self._why_interpreter(interpreter, depth + 1)

    def _why_script(self, name: str, words: Sequence[Word], *, moves: bool) -> str:
        texts = [word.text for word in words]
        if not is_interpreter(name) or asks_only(texts):
            return ""
        script = next((word for word in words if not word.text.startswith("-")), None)
        if script is None or not script.literal or texts.index(script.text) != 0 or (moves and script.text[0:1] != "/"):
            return "runs what its words say, which no rule can judge"
        path = os.path.join(self._directory, script.text)
        if self.is_writable(path):
            return f'runs "{escape(path)}", which commands inside can write'
        return ""

    def _note(self, name: str) -> str:
        """Say that a name means another program outside than PATH would say."""
        shadow, found = self._shadow(name), self.find(name)
        if not shadow or not found:
            return ""
        return f'{escape(name)} is "{escape(found)}" here: commands inside can write "{escape(shadow)}"'

    def _shadow(self, name: str) -> str:
        """Return what the whole PATH finds for a name, if that lies where commands can write."""
        if "/" in name or is_builtin(name):
            return ""
        entry, path = self._hit(name, self._entries)
        return path if entry in self.dropped else ""

    def _shadowed(self, names: Iterable[str]) -> Iterator[Planted]:
        for name in names:
            if shadow := self._shadow(name):
                yield Planted(name, _can_be_written(shadow))

    def _guessed(self, line: str) -> Programs:
        """Return what a line that is not understood may start: every word of it may be a name."""
        spaced = "".join(char if char in _PATH_LIKE else " " for char in line)
        words = tuple(dict.fromkeys(spaced.split()))[:_MOST_WORDS]
        found = [planted for planted in self._shadowed(words) if not self.find(planted.name)]
        whole = bool(found) or any(is_runner(word) or is_interpreter(word) for word in words)
        return Programs(tuple(found), tuple(self._shadowed(words)), whole_path=whole)


def _can_be_written(path: str) -> str:
    return f'is "{escape(path)}", which commands inside can write'


def _entries(name: str, value: str) -> list[str]:
    """Return the places in a variable; libraries to preload may be parted by blanks too."""
    if name in _SINGLE:
        return [value]
    return (value.replace(" ", os.pathsep) if name in ("LD_PRELOAD", "LD_AUDIT") else value).split(os.pathsep)


def _interpreter(path: str) -> str:
    """Return the program that the first line of a script names, or nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        head = os.read(descriptor, _FIRST_LINE) if regular else b""
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    words = head.removeprefix(b"#!").split(b"\n")[0].split() if head.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""
