"""``stockade.filesystem.inspection``: which directories are looked at."""

from __future__ import annotations

import subprocess
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


def test_an_index_that_was_read_while_a_command_ran_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store to a mapped page that is dirty already changes no time of the file."""
    monkeypatch.setattr("stockade.filesystem.repository_inspection.signature_of", lambda _: (0, 0, 0, 0, 0))
    deep = tmp_path / "deep"
    for repository in (tmp_path, deep, deep / "sub"):
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    add(tmp_path, "160000", "deep")
    (deep / "sub/.git/config").write_text("[alias]\nx = y\n")
    add(deep, "100644", "sub")
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(tmp_path), "a root"),)))])
    session = Inspection()
    running = ground(tmp_path).but(holders=(str(tmp_path),))
    assert session.look(covers, running, []) == []
    subprocess.run(["git", "rm", "-q", "--cached", "sub"], cwd=deep, check=True)
    add(deep, "160000", "sub")

    (found,) = session.look(covers, running.but(last=True, again=True), [])
    assert found.path == f"{deep}/sub/.git/config"


def add(repository: Path, mode: str, name: str) -> None:
    entry = f"{mode} {'1' * 40}\t{name}\n"
    subprocess.run(["git", "update-index", "--index-info"], input=entry, text=True, cwd=repository, check=True)


def test_a_search_that_was_cut_says_so_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_MOST", 2)
    covers = Covers([Cover(Plan(mounts=(Mount(Operation.WRITABLE, str(root), "a root"),)))])
    session = Inspection()

    (told,) = (finding for finding in session.look(covers, ground(root), [str(root)]) if not finding.path)
    assert told.failure == f'below "{root}" there are more than 2 directories'
    assert session.look(covers, ground(root), [str(root)]) == []
