"""Stockade itself, as a library and as a command line, with the settings file that srt is given too."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

from contender import Contender, FailedError, Ground, MissingError, Spawned


def version() -> str:
    """Return the version of the library, if it can run commands at all."""
    stockade = importlib.import_module("stockade")
    if not hasattr(stockade, "Sandbox"):
        message = "this version has no Sandbox yet"
        raise MissingError(message)
    return str(stockade.__version__)


def open_sandbox(ground: Ground) -> Any:
    """Return a sandbox for the tree, not yet entered."""
    stockade: Any = importlib.import_module("stockade")
    return stockade.Sandbox(stockade.load_policy(ground.tree, settings_file=str(ground.settings)))


class Library(Contender):
    """One session; each command is a call."""

    name = "stockade"
    title = "**stockade library**"
    sandbox: Any

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - is here already
        """Look whether it is there."""
        return version()

    async def start(self, ground: Ground) -> None:
        """Open the session."""
        self.sandbox = open_sandbox(ground)
        await self.sandbox.__aenter__()

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
        await self.sandbox.__aexit__(None, None, None)


class CommandLine(Spawned):
    """The program, from nothing to the end of the command."""

    name = "stockade-cli"
    title = "**stockade command line**"

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - is here already
        """Look whether it is there."""
        return version()

    def prefix(self) -> tuple[str, ...]:
        """Start it as users do."""
        script = Path(sys.executable).with_name("stockade")
        if not script.exists():
            message = "no `stockade` beside this interpreter: run scripts/setup"
            raise MissingError(message)
        return (str(script), "run", "--settings", str(self.ground.settings), "-c")
