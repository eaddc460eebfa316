"""The walls tried for real: every attack once outside, as the control, and once inside.

Rules: each run gets an ``Arena`` of its own, with all that the attacks aim at, and what counts is the arena afterwards,
not what the script says. An attack that does not even work outside proves nothing, and that is said.
Nothing of the machine but the arenas is touched.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from enum import Enum
from pathlib import Path

from stockade.annotation import TYPE_CHECKING, Final, Self
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.platforms.linux.attack import ATTACKS, PRELUDE, Attack, Damage
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import TypeAlias

    #: Runs words in an arena; returns the exit status and all that was printed.
    Runner: TypeAlias = Callable[["Arena", list[str]], tuple[int, str]]

_CANARY: Final = "what-nobody-inside-may-read"
_PATIENCE: Final = 20.0


class Verdict(Enum):
    """What an attack has shown."""

    HELD = "held"
    HOLE = "hole"
    MOOT = "moot"


class Attempt(Value):
    """One attack and what came of it; ``note`` is the last line that it printed inside, or why it is moot."""

    name: str
    verdict: Verdict
    note: str = ""


class Arena:
    """A project, and things around it that must not be reached from it."""

    def __init__(self) -> None:
        """Make the files, start the services and the process."""
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="proof-of-stockade-"))
        self.project = f"{self.folder}/project"
        self.outside = f"{self.folder}/outside"
        self._make_files()
        self.abstract = os.path.basename(self.folder)
        self._services = (
            _service(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            _service(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            _service(socket.AF_UNIX, socket.SOCK_STREAM, f"{self.outside}/socket"),
            _service(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract}"),
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"],
            env={"SECRET": _CANARY},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _make_files(self) -> None:
        for folder in (f"{self.project}/.git/hooks", f"{self.project}/denied", self.outside):
            os.makedirs(folder)
        Path(self.project, "denied", "secret").write_text(_CANARY)
        Path(self.outside, "victim").write_text("unchanged")
        os.symlink(self.outside, f"{self.project}/link")

    def words(self, attack: Attack) -> list[str]:
        """Return the command that makes the attack here."""
        targets = {
            "project": self.project,
            "outside": self.outside,
            "process": self._process.pid,
            "tcp": self._services[0].getsockname()[1],
            "udp": self._services[1].getsockname()[1],
            "abstract": self.abstract,
        }
        return [sys.executable, "-I", "-S", "-c", PRELUDE + attack.script, json.dumps(targets)]

    def shows(self, damage: Damage, status: int, printed: str) -> bool:
        """Say whether the attack succeeded, by the state of things afterwards."""
        signs: dict[Damage, Callable[[], bool]] = {
            Damage.WRITTEN: lambda: Path(self.outside, "victim").read_text() != "unchanged",
            Damage.HOOKED: lambda: os.path.lexists(f"{self.project}/.git/hooks/pre-commit"),
            Damage.DEAD: self._is_dead,
            Damage.CONNECTED: lambda: any(_reached(service) for service in self._services),
            Damage.SAID: lambda: status == 0,
            Damage.READ: lambda: _CANARY in printed,
        }
        return signs[damage]()

    def _is_dead(self) -> bool:
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        return True

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing."""
        for service in self._services:
            service.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def prove(inside: Runner, attacks: tuple[Attack, ...] = ATTACKS) -> Iterator[Attempt]:
    """Make every attack; ``inside`` builds walls around the arena's project and runs the words there."""
    _require_life(inside)
    for attack in attacks:
        if attack.harmless and not _make(attack, outside)[0]:
            yield Attempt(attack.name, *_moot(attack, inside))
            continue
        succeeded, note = _make(attack, inside)
        yield Attempt(attack.name, Verdict.HOLE if succeeded else Verdict.HELD, note)


def _require_life(inside: Runner) -> None:
    """Raise unless honest work succeeds inside: where nothing runs, every attack fails and proves nothing."""
    with Arena() as arena:
        work = Attack("work", Damage.SAID, "write(f'{project}/made')")
        status, printed = inside(arena, arena.words(work))
        if status or not os.path.exists(f"{arena.project}/made"):
            lines = printed.strip().splitlines()
            message = f"honest work fails behind the walls: {escape(lines[-1]) if lines else f'status {status}'}"
            raise UnavailableError(message, "run `stockade doctor`, and report this if it finds nothing")


def _moot(attack: Attack, inside: Runner) -> tuple[Verdict, str]:
    """Try it inside all the same: what does not work outside may still work there."""
    succeeded, note = _make(attack, inside)
    return (Verdict.HOLE, note) if succeeded else (Verdict.MOOT, "does not work outside either")


def _make(attack: Attack, run: Runner) -> tuple[bool, str]:
    with Arena() as arena:
        status, printed = run(arena, arena.words(attack))
        lines = printed.strip().splitlines()
        return arena.shows(attack.damage, status, printed), lines[-1] if lines else ""


def outside(arena: Arena, words: list[str]) -> tuple[int, str]:
    """Run words without walls."""
    try:
        ran = subprocess.run(  # noqa: S603 - the attacks are our own
            words, cwd=arena.project, capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, "took too long"
    return ran.returncode, (ran.stdout + ran.stderr).decode(errors="replace")


def _service(family: int, kind: int, address: object) -> socket.socket:
    service = socket.socket(family, kind)
    service.bind(address)  # type: ignore[arg-type] # its type depends on the family
    if kind == socket.SOCK_STREAM:
        service.listen()
    service.setblocking(False)
    return service


def _reached(service: socket.socket) -> bool:
    """Say whether somebody has connected, or sent something."""
    try:
        if service.type == socket.SOCK_DGRAM:
            return bool(service.recv(1))
        service.accept()[0].close()
    except BlockingIOError:
        return False
    return True
