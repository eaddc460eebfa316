"""``stockade.filesystem.inspection``: which directories are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem import inspection
from stockade.filesystem.cover import Cover, Covers
from stockade.filesystem.inspection import Ground, Inspection
from stockade.filesystem.plan import Mount, Operation, Plan

if TYPE_CHECKING:
    from pathlib import Path


def looked(
    root: Path, *, changed: tuple[str, ...] = (), replaced: tuple[str, ...] = (), seen: tuple[str, ...] = ()
) -> list[str]:
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(root), "a root"),)))])
    changes = [f"{root}/{name}".rstrip("/") for name in changed]
    found = Inspection().look(covers, ground(root, *seen), changes, [f"{root}/{name}" for name in replaced])
    return sorted(finding.path.removeprefix(f"{root}/") for finding in found)


def ground(root: Path, *seen: str) -> Ground:
    return Ground(
        depth=3,
        configs=False,
        spared=lambda _: False,
        holders=(),
        bare={},
        seen={f"{root}/{name}" for name in seen}.__contains__,
        since=0,
        links=lambda _path, _signature: None,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("one", "one/two", "one/two/three", "one/two/three/four", "node_modules/x"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / ".mcp.json").touch()
    return tmp_path


def test_new_directories_are_searched_down_to_the_depth(root: Path) -> None:
    assert looked(root, changed=("",)) == ["one/.mcp.json", "one/two/.mcp.json", "one/two/three/.mcp.json"]


def test_known_directories_are_searched_where_they_changed(root: Path) -> None:
    assert looked(root, changed=("", "one/two"), seen=("one", "one/two", "one/two/three")) == ["one/two/.mcp.json"]


def test_below_what_was_replaced_everything_is_searched(root: Path) -> None:
    found = looked(root, replaced=("one",), seen=("one", "one/two", "one/two/three"))

    assert found == ["one/.mcp.json", "one/two/.mcp.json", "one/two/three/.mcp.json"]


def test_nothing_changed_nothing_is_found(root: Path) -> None:
    assert looked(root) == []


def test_a_search_that_was_cut_says_so_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_MOST", 2)
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(root), "a root"),)))])
    session = Inspection()

    (told,) = (finding for finding in session.look(covers, ground(root), [str(root)]) if not finding.path)
    assert told.failure == f'below "{root}" there are more than 2 directories'
    assert session.look(covers, ground(root), [str(root)]) == []
