"""The load: a server and clients written in C (``drivers/load.c``), compiled when a benchmark runs."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contender import MissingError
from peers import call, need
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SOURCE = Path(__file__).parent / "drivers" / "load.c"
NAME = "load"


class Load(Value):
    """What the clients are asked for: the words after the way and the address of the proxy."""

    kind: str
    plain: bool
    words: tuple[str, ...]

    def line(self, program: str, proxy: str, port: int) -> tuple[str, ...]:
        """Return the words of the client; without a ``proxy`` it goes directly."""
        way = ("plain" if self.plain else "connect") if proxy else "direct"
        return (program, self.kind, way, proxy or "-", str(port), *self.words)


def bulk(size: int, *, plain: bool) -> Load:
    """One answer of that many bytes; gives bytes per second."""
    return Load("bulk", plain, (str(size),))


def tunnels(clients: int, seconds: float) -> Load:
    """Make new tunnels, one after the other by each client; gives how many per second."""
    return Load("tunnels", plain=False, words=(str(clients), str(seconds)))


def latency(count: int, *, plain: bool) -> Load:
    """Small requests on one connection; gives the seconds of each."""
    return Load("latency", plain, (str(count),))


def hold(count: int, until: Path) -> Load:
    """Open tunnels that are held until a file is there."""
    return Load("hold", plain=False, words=(str(count), str(until)))


def build(directory: Path) -> Path:
    """Compile the program, or raise ``MissingError``."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        need({"gcc": "gcc", "ld": "libc6-dev"})
        compiler = "gcc"
    program = directory / NAME
    call([compiler, "-O2", "-pthread", "-o", str(program), str(_SOURCE)])
    return program


@contextmanager
def server(program: Path) -> Iterator[int]:
    """Run the server; its port is the value."""
    running = subprocess.Popen([program, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        port = running.stdout.readline() if running.stdout else ""
        if not port:
            message = "the server of the load did not start"
            raise MissingError(message)
        yield int(port)
    finally:
        running.kill()
        running.communicate()


def numbers(output: str) -> Sequence[float]:
    """Read what a client printed."""
    return [float(word) for word in output.split()]
