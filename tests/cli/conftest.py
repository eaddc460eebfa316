"""A project, a home and a managed file of the test's own, and the command line run in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stockade.cli.main import main
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from pathlib import Path


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
