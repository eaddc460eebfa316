"""Real shells, which run lines by the hundred or one by one, and what came of it.

Many lines run in one shell, each in a subshell of its own by ``eval``; that is quick, and what the stand-ins note says
which line it was. What a shell does by itself (a file that it writes, a program from elsewhere that it starts) is seen
for all of them together: by comparing the world before and after, and by strace where there is one.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from world import MOVED, PROBE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from world import Deed, World

#: The shells, and how each runs as the ``sh`` of some system.
NAMES = ("bash", "dash", "zsh")
WAYS = ("bash --posix", "zsh --emulate sh")
# Long enough for a busy machine. Whoever runs into it has found a line that hangs, which is worth a look.
PATIENCE = 60
_OPTIONS = {"bash": ("--norc", "--noprofile"), "zsh": ("-f",), "dash": ()}
_TRACED = re.compile(r'(execve(?:at)?|open(?:at)?|creat)\((?:AT_FDCWD, |\d+, )?"((?:[^"\\]|\\.)*)"(.*)')
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
_DEVICES = frozenset(("/dev/null", "/dev/tty"))


class Line(NamedTuple):
    """A line to run, and what is promised about it: that it is covered, that it ends in the directory of its start."""

    text: str
    covered: bool = True
    stays: bool = False


class Outcome(NamedTuple):
    """What lines have done together: the deeds of programs in this world, and what shells did that they should not."""

    deeds: tuple[Deed, ...]
    strange: tuple[str, ...]


class Shell:
    """One installed shell."""

    def __init__(self, name: str, program: str, world: World) -> None:
        self.program, self.world = os.path.realpath(program), world
        self.title = name
        self.name, *way = name.split(" ")
        self.command = (self.program, *way, *_OPTIONS[self.name])

    def run_all(self, lines: Sequence[Line], *, traced: bool = True) -> Outcome:
        """Run lines in one process, each in a subshell; a deed's ``line`` is the number of the line."""
        return self._script("".join(self._subshell(number, line) for number, line in enumerate(lines)), traced=traced)

    def run_each(self, lines: Sequence[Line]) -> Outcome:
        """Run lines as ``SHELL -c`` does, each in a process of its own; a deed's ``line`` is the number of the line."""
        start = " ".join(self.command)
        return self._script(
            "".join(
                f"FUZZ_LINE={number} {start} -c {_quoted(line.text)} <{self.world.feed}\n"
                for number, line in enumerate(lines)
            ),
            traced=False,
        )

    def _script(self, text: str, *, traced: bool) -> Outcome:
        # Some aliases zsh has from the start.
        before = "unalias -m '*'\n" if self.name == "zsh" else ""
        Path(self.world.script).write_text(before + text, "utf-8")
        return self._watched((*self.command, self.world.script), traced=traced)

    def run(self, line: str) -> Outcome:
        """Run a line as ``SHELL -c`` does."""
        return self._watched((*self.command, "-c", line))

    def run_words(self, words: tuple[str, ...]) -> Outcome:
        """Run a line by the words that start it in some way of its own, the program first."""
        return self._watched((*self.command, *words[1:]))

    def _subshell(self, number: int, line: Line) -> str:
        world, probe = self.world, f"{self.world.programs}/{PROBE}"
        after = [f"case $PATH in '{world.programs}') ;; *) {probe} 'PATH is another' ;; esac"]
        if line.stays:
            after.append(f"[ . -ef {world.here} ] || {probe} '{MOVED}'")
        if self.name == "bash":
            after.append(f'case "${{BASH_CMDS[*]}}" in *{world.evil}*) {probe} "a name is of another program" ;; esac')
            after.append(f'case "${{BASH_ALIASES[*]}}" in ?*) {probe} "there is an alias" ;; esac')
        if self.name == "zsh":
            after.append(f'case "$commands" in *{world.evil}*) {probe} "a name is of another program" ;; esac')
            after.append(f'case "$aliases$galiases$functions" in ?*) {probe} "there is an alias or function" ;; esac')
        start = f"(FUZZ_LINE={number}; export FUZZ_LINE; eval {_quoted(line.text)}\n"
        return start + "\n".join(after) + f"\n) <{world.feed}\n"

    def _watched(self, command: tuple[str, ...], *, traced: bool = True) -> Outcome:
        self.world.forget()
        strange = self._start((*(_tracer(self.world.trace) if traced else ()), *command))
        deeds = tuple(self.world.deeds())
        strange += self._traced()
        if changed := self.world.changes():
            strange.append(f"changed {', '.join(changed)}")
            self.world.reset()
        return Outcome(deeds, tuple(strange))

    def _start(self, command: tuple[str, ...]) -> list[str]:
        """Run a command to the end of its last process; say if that did not come."""
        alive, inherited = os.pipe()
        user = self.world.user
        feed = os.open(self.world.feed, os.O_RDONLY)
        try:
            process = subprocess.Popen(
                command,
                env=self.world.environment,
                cwd=self.world.here,
                stdin=feed,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[inherited],
                start_new_session=True,
                preexec_fn=_limit,  # noqa: PLW1509 -- the fuzzer has no threads
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
        finally:
            os.close(inherited)
            os.close(feed)
        try:
            # Ends when the last process in the background has closed its copy. A line may write into it.
            while select.select([alive], [], [], PATIENCE)[0]:
                if not os.read(alive, 65_536):
                    process.wait(PATIENCE)
                    return []
            return ["did not end"]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(alive)

    def _traced(self) -> list[str]:
        """Return the programs from outside this world that were started, and the files that shells opened to write."""
        found: dict[str, None] = {}
        ours = f"{self.world.root}/"
        first = True
        for call in Path(self.world.trace).read_text("utf-8", "replace").splitlines():
            if match := _TRACED.search(call):
                what, path, rest = match.groups()
                if what.startswith("execve"):
                    # A path that begins nowhere is looked for in the working directory, where stand-ins are, too.
                    if path.startswith("/") and not path.startswith(ours) and not (first and path == self.program):
                        found[f"started {path}"] = None
                    first = False
                elif path != self.world.log and path not in _DEVICES and _WRITES.search(rest):
                    found[f"opened {path} to write"] = None
        return list(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def installed(world: World, names: Sequence[str] = NAMES) -> list[Shell]:
    """Return the shells of this machine."""
    return [Shell(name, program, world) for name in names if (program := shutil.which(name.split(" ")[0]))]


def _limit() -> None:
    os.umask(0o022)
    for what, most in ((resource.RLIMIT_CPU, 30), (resource.RLIMIT_FSIZE, 8 << 20), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))


@cache
def _tracer_words() -> tuple[str, ...]:
    program = shutil.which("strace")
    if program is None:
        return ()
    calls = "trace=execve,?execveat,?open,openat,?creat"
    words = (program, "-f", "-qq", "--seccomp-bpf", "-e", calls, "-e", "signal=none", "-s", "256")
    tried = subprocess.run([*words, "-o", "/dev/null", "true"], capture_output=True, check=False, timeout=PATIENCE)
    return words if tried.returncode == 0 else ()


def _tracer(notes: str) -> tuple[str, ...]:
    words = _tracer_words()
    return (*words, "-o", notes) if words else ()
