"""What is compared: ways to run one shell line, each behind the same few calls.

Rules: ``prepare`` may use the network and takes as long as it likes; from ``start`` on everything is local. The time
of a command runs from the moment it is asked for until its end is known, and is taken by whoever asks: in this
process, or in a driver (see ``driven``) for libraries of another interpreter.
"""

from __future__ import annotations

import os
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

from stockade.value import Value

SHELL = "/bin/bash"


class MissingError(Exception):
    """A contender cannot take part; the text says why."""


class FailedError(Exception):
    """A command that should have succeeded did not."""


class Ground(Value):
    """Where a contender works: the cache of installed peers, the tree it may write to, the policy as a file."""

    cache: Path
    tree: Path
    protected: tuple[Path, ...]
    settings: Path


class Contender(ABC):
    """One way to run a shell line. ``name`` is for the command line, ``title`` for the table."""

    name: str
    title: str
    is_peer = False
    has_shell = True

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - only those that install something need the place
        """Install what is needed and return the version, or raise ``MissingError``."""
        return ""

    @abstractmethod
    async def start(self, ground: Ground) -> None:
        """Begin a session; called once for each tree."""

    @abstractmethod
    async def run(self, line: str) -> float:
        """Run a line to its end and return the seconds, or raise ``FailedError``."""

    async def stop(self) -> None:
        """End the session and leave nothing behind."""
        return


class Spawned(Contender):
    """A contender whose every command is a program of its own, started as cheaply as the system can."""

    ground: Ground
    words: tuple[str, ...]
    errors: BinaryIO

    @abstractmethod
    def prefix(self) -> tuple[str, ...]:
        """Return the words before the line."""

    async def start(self, ground: Ground) -> None:
        """Find the words once: they are no part of the measured time."""
        self.ground = ground
        self.words = self.prefix()
        self.errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the session

    async def run(self, line: str) -> float:
        """Spawn the program and wait for it."""
        return spawn((*self.words, line), self.errors)

    async def stop(self) -> None:
        """Close the file of complaints."""
        self.errors.close()


def spawn(words: tuple[str, ...], errors: BinaryIO) -> float:
    """Run a program without input or output and return the seconds that it took; its complaints go to a file."""
    actions = [*_SILENT, (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
    began = time.perf_counter()
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - began
    if status:
        raise FailedError(_complaint(Path(words[0]).name, os.waitstatus_to_exitcode(status), errors))
    return took


def _complaint(program: str, code: int, errors: BinaryIO) -> str:
    errors.seek(0)
    said = " ".join(errors.read().decode(errors="replace").split())
    return f"{program} ended with status {code}: {said[-_LONGEST:]}"


_LONGEST = 300
_SILENT = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(2)]
