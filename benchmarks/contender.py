"""What is compared: ways to run one shell line, each behind the same few calls.

Rules: ``prepare`` may use the network and takes as long as it likes; from ``start`` on everything is local. The time
of a command runs from the moment it is asked for until its end is known, and is taken by whoever asks: in this
process, or in a driver (see ``driven``) for libraries of another interpreter.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from pathlib import Path

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

    @abstractmethod
    def prefix(self) -> tuple[str, ...]:
        """Return the words before the line."""

    async def start(self, ground: Ground) -> None:
        """Find the words once: they are no part of the measured time."""
        self.ground = ground
        self.words = self.prefix()

    async def run(self, line: str) -> float:
        """Spawn the program and wait for it."""
        return spawn((*self.words, line))


def spawn(words: tuple[str, ...]) -> float:
    """Run a program with its streams on the null device and return the seconds that it took."""
    began = time.perf_counter()
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=_SILENT)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - began
    if status:
        message = f"{Path(words[0]).name} ended with status {os.waitstatus_to_exitcode(status)}"
        raise FailedError(message)
    return took


_SILENT = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
