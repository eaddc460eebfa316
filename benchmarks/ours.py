"""Stockade itself, as a library and as a command line, with the settings file that srt is given too."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from contender import Contender, FailedError, Ground, MissingError, Spawned
from stockade import __version__, load_policy
from stockade.sandbox.asynchronous import Sandbox


class Library(Contender):
    """One session; each command is a call."""

    name = "stockade"
    title = "**stockade library**"
    sandbox: Sandbox

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - is here already
        """Return the version."""
        return __version__

    async def start(self, ground: Ground) -> None:
        """Open the session."""
        self.sandbox = Sandbox(load_policy(ground.tree, settings_file=str(ground.settings)))
        await self.sandbox.open()

    async def run(self, line: str) -> float:
        """Call it as any program would."""
        began = time.perf_counter()
        done = await self.sandbox.run(line)
        took = time.perf_counter() - began
        if not done.ok:
            message = f"the command ended with status {done.status}"
            raise FailedError(message)
        return took

    async def stop(self) -> None:
        """Close the session."""
        await self.sandbox.close()


class CommandLine(Spawned):
    """The program, from nothing to the end of the command."""

    name = "stockade-cli"
    title = "**stockade command line**"

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - is here already
        """Look whether it is installed."""
        _script()
        return __version__

    def prefix(self) -> tuple[str, ...]:
        """Start it as users do."""
        return (_script(), "run", "--settings", str(self.ground.settings), "-c")


def _script() -> str:
    script = Path(sys.executable).with_name("stockade")
    if not script.exists():
        message = "no `stockade` beside this interpreter: run scripts/setup"
        raise MissingError(message)
    return str(script)
