"""Policies of the test's own, by settings; a project, a home and tools that live in them; shells that run a line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy


class Yard:
    """A project and a home that no other settings reach."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.outside = root / "outside"
        self.managed = root / "etc" / "managed-settings.json"
        for folder in (self.project / ".git", self.home, self.outside, self.managed.parent):
            folder.mkdir(parents=True)
        self.local = self.project / ".stockade" / "settings.local.json"

    @property
    def locations(self) -> Locations:
        return Locations(str(self.project), str(self.home), managed=str(self.managed))

    def policy(self, permissions: dict[str, tuple[str, ...]] | None = None, **values: Any) -> SandboxPolicy:
        """A policy with settings given as ``filesystem__allowWrite=("/x",)``, and rules by their list."""
        named: dict[str, object] = {f"sandbox.{name.replace('__', '.')}": value for name, value in values.items()}
        named = {"sandbox.enabled": True} | named
        named |= {f"permissions.{name}": rules for name, rules in (permissions or {}).items()}
        settings = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(settings, cwd=str(self.project), home=str(self.home))

    def write(self, path: Path, settings: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
        return path

    def user(self, settings: object) -> Path:
        return self.write(self.home / ".stockade" / "settings.json", settings)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path.resolve())


_PROGRAM = "#!/bin/sh\n: > '{mark}'\n"
# As far as lines need it: options, assignments, and then the command.
_SUDO = """#!/bin/sh
while getopts u:g:nES o; do :; done
shift $((OPTIND - 1))
while case $1 in *=*) ;; *) false ;; esac; do shift; done
exec "$@"
"""


class Stage:
    """Shells run a line in which a harmless program named ``forbidden`` is hidden; a mark shows whether it ran."""

    def __init__(self, root: Path) -> None:
        self.programs = root / "programs"
        self.directory = root / "directory"
        self.mark = root / "mark"
        self.programs.mkdir()
        for name, text in (("forbidden", _PROGRAM.format(mark=self.mark)), ("sudo", _SUDO)):
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.programs),
            "LC_ALL": "C.UTF-8",
            "x": "forbidden",
            "w": "env forbidden",
            "v": "1 forbidden",
            "k": "-exec",
        }

    def runs(self, shell: str, line: str) -> bool:
        """Say whether a shell that runs a line starts the program."""
        self.mark.unlink(missing_ok=True)
        self.directory.mkdir()
        os.link(self.programs / "forbidden", self.directory / "forbidden")
        process = subprocess.Popen(
            (shell, "-c", line),
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(self.directory)
        return self.mark.exists()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
