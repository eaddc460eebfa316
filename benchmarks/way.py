"""The ways to a server that are compared: directly, through our proxy, from inside our sandbox, from inside srt's.

A way runs the client of the load (see ``load``) and returns what it printed. Inside a sandbox the client is a command
like any other: it finds the proxy in its environment, and writes to a file in the tree that it may write to.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, cast

from contender import Contender, FailedError, Ground
from load import NAME, Load
from ours import Library
from peers import SrtLibrary
from processes import descendants
from stockade import __version__

if TYPE_CHECKING:
    from driven import Driven

_DRIVER = Path(__file__).parent / "drivers" / "proxy_driver.py"
_PATIENCE = 300


class Way(ABC):
    """One way; ``name`` is for the command line, ``title`` for the table."""

    name: str
    title: str
    is_peer = False
    has_proxy = True

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - only those that install something need the place
        """Install what is needed and return the version, or raise ``MissingError``."""
        return ""

    async def start(self, ground: Ground, port: int) -> None:
        """Begin; the program of the load lies in the tree."""
        self.ground = ground
        self.port = port

    @abstractmethod
    async def run(self, load: Load) -> str:
        """Run a client to its end and return what it printed, or raise ``FailedError``."""

    def processes(self) -> list[int]:
        """Return the processes between the client and the server."""
        return []

    async def stop(self) -> None:
        """Leave nothing behind."""
        return


async def _client(words: tuple[str, ...]) -> str:
    pipe = asyncio.subprocess.PIPE
    client = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
    output, errors = await asyncio.wait_for(client.communicate(), _PATIENCE)
    if client.returncode:
        message = errors.decode(errors="replace").strip() or f"the client ended with status {client.returncode}"
        raise FailedError(message)
    return output.decode()


class Direct(Way):
    """No proxy."""

    name = "direct"
    title = "direct"
    has_proxy = False

    async def run(self, load: Load) -> str:
        """Run the client here."""
        return await _client(load.line(str(self.ground.tree / NAME), "", self.port))


class Alone(Way):
    """Our proxy without a sandbox."""

    name = "proxy"
    title = "**stockade's proxy alone**"
    running: asyncio.subprocess.Process
    proxy: str

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - is here already
        """Return the version."""
        return __version__

    async def start(self, ground: Ground, port: int) -> None:
        """Start the proxy in a process of its own."""
        await super().start(ground, port)
        words = [sys.executable, "-I", str(_DRIVER), str(port)]
        pipe = asyncio.subprocess.PIPE
        self.running = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
        self.proxy = (await self.running.stdout.readline()).decode().strip() if self.running.stdout else ""
        if not self.proxy:
            message = "the proxy did not start"
            raise FailedError(message)

    async def run(self, load: Load) -> str:
        """Run the client here."""
        return await _client(load.line(str(self.ground.tree / NAME), self.proxy, self.port))

    def processes(self) -> list[int]:
        """Return the proxy."""
        return [self.running.pid]

    async def stop(self) -> None:
        """End the proxy by the end of its input."""
        await self.running.communicate(b"")  # without input it would be left open


class Inside(Way):
    """The client is a command of a sandbox."""

    contender: Contender
    variable = "HTTP_PROXY"

    def prepare(self, cache: Path) -> str:
        """Prepare the sandbox."""
        return self.contender.prepare(cache)

    async def start(self, ground: Ground, port: int) -> None:
        """Open the sandbox."""
        await super().start(ground, port)
        os.chdir(ground.tree)
        await self.contender.start(ground)

    async def run(self, load: Load) -> str:
        """Run the client as a command."""
        output, errors = self.ground.tree / "output", self.ground.tree / "errors"
        words = load.line(str(self.ground.tree / NAME), "PROXY", self.port)
        line = shlex.join(words).replace("PROXY", f'"${self.variable}"')
        os.chdir(self.ground.tree)
        try:
            await self.contender.run(f"{line} >{output} 2>{errors}")
        except FailedError as error:
            said = errors.read_text("utf-8").strip() if errors.exists() else ""
            raise FailedError(said or str(error)) from error
        return output.read_text("utf-8")

    async def stop(self) -> None:
        """Close the sandbox."""
        await self.contender.stop()


class Session(Inside):
    """Our sandbox, with the proxy of its session."""

    name = "stockade"
    title = "**from a stockade session**"

    def __init__(self) -> None:
        """Use the library."""
        self.contender = Library()

    def processes(self) -> list[int]:
        """Return the proxy of the session."""
        return [pid for pid in descendants(os.getpid()) if "stockade.network.proxy_main" in _words(pid)]


class Srt(Inside):
    """srt's sandbox: its bridges and its proxy."""

    name = "srt"
    title = "from srt's sandbox"
    is_peer = True

    def __init__(self) -> None:
        """Use the library."""
        self.contender = SrtLibrary()

    def processes(self) -> list[int]:
        """Return node and the bridges on the host's side and inside."""
        driver = cast("Driven", self.contender).driver.pid
        return [driver, *(pid for pid in descendants(driver) if "socat" in _words(pid))]


def _words(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_text("utf-8", errors="replace").replace("\0", " ")
    except OSError:
        return ""


WAYS: tuple[type[Way], ...] = (Direct, Alone, Session, Srt)
