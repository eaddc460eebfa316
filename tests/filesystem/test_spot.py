"""``stockade.filesystem.spot``: editors and agents, in one directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.filesystem.cover import Cover, Covers
from stockade.filesystem.finding import Memo
from stockade.filesystem.plan import Mount, Operation, Plan
from stockade.filesystem.repository_inspection import RepositoryInspection
from stockade.filesystem.spot import look_at_spot
from stockade.policy.protected_names import OBEYED

if TYPE_CHECKING:
    from pathlib import Path


def test_all_that_is_obeyed_and_nothing_else(tmp_path: Path) -> None:
    names = [f"{name}/{entry}".rstrip("/") for name, entries in OBEYED.items() for entry in entries]
    for name in (*names, ".vscode/extensions.json", ".claude/notes", ".bashrc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(tmp_path), "a root"),)))])
    look = RepositoryInspection(covers, Memo(), configs=False, spared=lambda _: False)

    look_at_spot(str(tmp_path), look, None, since=0, started=0)

    assert [finding.path.removeprefix(f"{tmp_path}/") for finding in look.findings] == names
