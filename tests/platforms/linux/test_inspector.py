"""``stockade.platforms.linux.inspector``: when looks are due, and what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import policy_for

from stockade.filesystem.memory import Memory
from stockade.filesystem.scan import Scan, plan_now
from stockade.platforms.linux import inspector as inspectors
from stockade.platforms.linux.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path


def begun(root: Path, *, watched: bool = False) -> tuple[Inspector, Memory]:
    rules = policy_for(root, root.parent / "home").files
    made = Inspector()
    made.prepare()
    memory = Memory(watch=watched)
    made.begin(plan_now(rules, memory), rules, memory, watched=watched, alone=True)
    return made, memory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/pkg").mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize("watched", [False, True])
def test_what_appears_is_found_once(root: Path, watched: bool) -> None:  # noqa: FBT001
    made, memory = begun(root, watched=watched)
    assert made.look() == []
    (root / "pkg/.mcp.json").touch()
    memory.refresh()
    assert [finding.path for finding in made.look()] == [f"{root}/pkg/.mcp.json"]
    memory.refresh()
    assert made.look() == []


@pytest.mark.parametrize("watched", [False, True])
def test_what_appears_later_in_a_new_directory_is_found(root: Path, watched: bool) -> None:  # noqa: FBT001
    rules = policy_for(root, root.parent / "home").files
    with Scan(rules) as scan:
        memory = scan.memory if watched else Memory(watch=False)
        made = Inspector()
        made.begin(plan_now(rules, memory), rules, memory, watched=watched, alone=True)
        (root / "new").mkdir()
        scan.refresh()
        assert made.look() == []
        (root / "new/.mcp.json").touch()
        scan.refresh()
        assert [finding.path for finding in made.look()] == [f"{root}/new/.mcp.json"]


def test_looks_are_due_while_commands_run(root: Path) -> None:
    made, _ = begun(root)
    left = made.left()
    assert left is not None
    assert 0 <= left <= inspectors.INTERVAL
    made.look(last=True)
    made.keep(())
    assert (made.left(), made.is_due) == (None, False)


def test_where_a_clock_was_set_every_directory_is_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = begun(root)
    (root / "pkg/.mcp.json").touch()
    later = inspectors._Moment(made._began.real + 10**12, made._began.steady)
    monkeypatch.setattr(made, "_began", later)
    assert [finding.path for finding in made.look()] == [f"{root}/pkg/.mcp.json"]


def test_a_look_that_fails_is_a_finding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = begun(root)

    def fails(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(made, "_look", fails)
    (finding,) = made.look()
    assert (finding.path, finding.failure) == ("", "RecursionError: ")
