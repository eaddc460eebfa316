"""``stockade.filesystem.spot``: editors and agents, in one directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.cover import Cover, Covers
from stockade.filesystem.finding import Memo
from stockade.filesystem.plan import Mount, Operation, Plan
from stockade.filesystem.repository_inspection import RepositoryInspection
from stockade.filesystem.spot import look_at_spot
from stockade.policy.protected_names import OBEYED

if TYPE_CHECKING:
    from pathlib import Path


def _looked_at(place: Path) -> RepositoryInspection:
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(place), "a root"),)))])
    look = RepositoryInspection(covers, Memo(), configs=False, spared=lambda _: False)
    look_at_spot(str(place), look, None, since=0, started=0)
    return look


def test_all_that_is_obeyed_and_nothing_else(tmp_path: Path) -> None:
    names = [f"{name}/{entry}".rstrip("/") for name, entries in OBEYED.items() for entry in entries]
    for name in (*names, ".vscode/extensions.json", ".claude/notes", ".bashrc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    look = _looked_at(tmp_path)

    assert [finding.path.removeprefix(f"{tmp_path}/") for finding in look.findings] == names


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param((), False, id="nothing"),
        pytest.param((".gitignore",), False, id="what commands see"),
        pytest.param((".gitignore", "workspace.xml"), True, id="that and more"),
        pytest.param(("workspace.xml",), True, id="something else"),
    ],
)
def test_a_copy_of_what_keeps_a_name_is_nothing(tmp_path: Path, content: tuple[str, ...], *, found: bool) -> None:
    for name in (".idea", ".mcp.json"):
        (tmp_path / name).mkdir()
        for entry in content:
            (tmp_path / name / entry).touch()

    look = _looked_at(tmp_path)

    assert [finding.path.rpartition("/")[2] for finding in look.findings] == ([".mcp.json", ".idea"] if found else [])


def test_a_link_of_that_name_is_something(tmp_path: Path) -> None:
    (tmp_path / ".idea").mkdir()
    (tmp_path / ".idea" / ".gitignore").symlink_to("/etc/passwd")
    assert _looked_at(tmp_path).findings
