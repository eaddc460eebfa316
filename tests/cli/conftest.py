"""A project, a home and a managed file of the test's own, the command line run in them, and somebody at a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stockade.cli.main import main
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PATIENCE = 30.0
# Makes standard input the controlling terminal, then becomes the program.
SIT_DOWN = "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Result:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def facts(self) -> Any:
        return json.loads(self.out)


class Here:
    """Runs commands in a directory that no other settings reach."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.managed = root / "etc" / "managed-settings.json"
        for folder in (self.project / ".git", self.home, self.managed.parent):
            folder.mkdir(parents=True)
        self.local = self.project / ".stockade" / "settings.local.json"
        self._capsys = capsys

    @property
    def locations(self) -> Locations:
        return Locations(str(self.project), str(self.home), managed=str(self.managed))

    def __call__(self, *arguments: str) -> Result:
        try:
            status = main(arguments, self.locations)
        except SystemExit as end:  # argparse leaves this way after --help
            status = int(end.code or 0)
        out, err = self._capsys.readouterr()
        return Result(status, out, err)

    def write(self, path: Path, settings: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        return path

    def user(self, settings: object) -> Path:
        return self.write(self.home / ".stockade" / "settings.json", settings)

    def project_file(self, settings: object) -> Path:
        return self.write(self.project / ".stockade" / "settings.json", settings)

    def manage(self, settings: object) -> Path:
        return self.write(self.managed, settings)


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here(tmp_path.resolve(), capsys)
    monkeypatch.chdir(found.project)
    return found


class Seat:
    """Somebody at a terminal with a program on it: types, and looks at the screen."""

    def __init__(self, words: Sequence[str], cwd: Path, environment: dict[str, str], size: tuple[int, int]) -> None:
        self.keys, self.line = os.openpty()
        self.resize(*size)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SIT_DOWN, *words],
            stdin=self.line,
            stdout=self.line,
            stderr=self.line,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        self._seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.line)

    def is_raw(self) -> bool:
        return not self.modes()[3] & termios.ICANON

    def type(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self.keys, data) :]

    def paste(self, data: bytes) -> bytes:
        """Type, looking at the screen meanwhile, until nothing more is taken for a second; return what is left."""
        os.set_blocking(self.keys, False)
        last = time.monotonic()
        while data and time.monotonic() < last + 1:
            ready, writable, _ = select.select([self.keys], [self.keys], [], 0.1)
            if ready:
                self._seen += os.read(self.keys, 65536)
            if writable:
                with suppress(BlockingIOError):
                    data = data[os.write(self.keys, data[:4096]) :]
                    last = time.monotonic()
        os.set_blocking(self.keys, True)
        return data

    def sees(self, pattern: str) -> str:
        """Wait until the screen shows it after what was seen before; return all up to there."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern.encode(), self._seen, re.DOTALL)):
            self._look(pattern, deadline)
        text, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return text.decode(errors="replace")

    def _look(self, pattern: str, deadline: float) -> None:
        ready, _, _ = select.select([self.keys], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            pytest.fail(f"{pattern!r} did not appear after {self._seen!r}")
        self._seen += os.read(self.keys, 65536)

    @property
    def seen(self) -> bytes:
        """What was shown since something was last waited for."""
        return self._seen

    def screen(self) -> str:
        """Return the same as text."""
        return self._seen.decode(errors="replace")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"still not so; the screen shows {self._seen!r}"
            time.sleep(0.01)

    def status(self) -> int:
        """Wait for the end of the program, looking at the screen meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end; the screen shows {self._seen!r}"
            ready, _, _ = select.select([self.keys], [], [], 0.01)
            if ready:
                self._seen += os.read(self.keys, 65536)
        return self.process.returncode

    def hang_up(self) -> None:
        for descriptor in (self.keys, self.line):
            with suppress(OSError):
                os.close(descriptor)

    def leave(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()


class Outside:
    """The command line as its users start it: a program of its own, in a project and a home of the test's own."""

    def __init__(self, here: Here) -> None:
        self.project = here.project
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(here.home),
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            "PS1": "ready$ ",
        }
        self.words = (sys.executable, "-m", "stockade")
        self._seats: list[Seat] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        usual: dict[str, Any] = {
            "cwd": self.project,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        process: subprocess.Popen[bytes] = subprocess.Popen([*self.words, *arguments], **usual | options)
        self._processes.append(process)
        return process

    def run(self, *arguments: str, given: str = "", **options: Any) -> tuple[int, str, str]:
        """Return status, output and errors."""
        process = self.start(*arguments, stdin=subprocess.PIPE, **options)
        try:
            out, err = process.communicate(given.encode(), timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    def seat(self, *words: str, size: tuple[int, int] = (24, 80)) -> Seat:
        """Start any program with somebody at its terminal."""
        seat = Seat(words, self.project, self.environment, size)
        self._seats.append(seat)
        return seat

    def shell(self) -> Seat:
        """A shell of the host with somebody at its terminal, who can say ``stockade``."""
        path = self.project.parent / "bin" / "stockade"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {" ".join(self.words)} "$@"\n')
        path.chmod(0o755)
        self.environment["PATH"] = f"{path.parent}:{self.environment['PATH']}"
        seat = self.seat("bash", "--norc", "--noprofile", "--noediting", "-i")
        seat.sees(r"ready\$ ")
        return seat

    def appears(self, name: str) -> Path:
        path = self.project / name
        deadline = time.monotonic() + PATIENCE
        while not path.exists():
            assert time.monotonic() < deadline, f"{name} did not appear"
            time.sleep(0.01)
        return path

    def leave(self) -> None:
        for seat in self._seats:
            seat.leave()
        for process in self._processes:
            if process.poll() is None:  # a test has failed, and others must not suffer from that
                process.kill()
                process.communicate()


@pytest.fixture
def outside(here: Here) -> Iterator[Outside]:
    found = Outside(here)
    yield found
    found.leave()
