"""What a session knows of the disk before a command and after it; the walls' own tests show it at work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import policy_for

from stockade.errors import UnavailableError
from stockade.placeholder import MARK, is_kept
from stockade.platforms.linux import placeholders
from stockade.platforms.linux.cell import Cell
from stockade.platforms.linux.lookout import Lookout
from stockade.platforms.linux.staging import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stockade.filesystem.plan import Plan
    from stockade.policy.model import SandboxPolicy


class Yard:
    """A project, and a lookout on it."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.lookout = Lookout()

    def policy(self, **settings: object) -> SandboxPolicy:
        return policy_for(self.project, self.home, **settings)

    def plan(self, *, once: bool = False) -> Plan:
        return self.lookout.plan(self.policy().files, once=once)

    def cell(self) -> Cell:
        """Return a jail that is none: placeholders and stages are real."""
        plan = self.plan()
        lease = placeholders.acquire({one.path: one.shape for one in plan.placeholders})
        self.lookout.stage(plan, lease)
        return Cell(None, self.policy(), plan, lease, None)  # type: ignore[arg-type]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path.resolve())
    yield made
    made.lookout.close()


def test_a_plan_follows_the_disk(yard: Yard) -> None:
    first = yard.plan()
    assert yard.plan() == first
    (yard.project / ".git").mkdir()
    (yard.project / ".git/HEAD").touch()
    assert yard.plan() != first
    assert str(yard.project / ".git") in yard.lookout.take_touched()


def test_the_plan_of_one_command_is_made_once(yard: Yard) -> None:
    assert yard.plan(once=True) == yard.plan(once=True)
    assert yard.lookout.take_touched() == set()


def test_a_rule_that_cannot_be_enforced_is_an_error(yard: Yard) -> None:
    policy = yard.policy(filesystem__denyRead=("/**/x",))
    with pytest.raises(UnavailableError):
        yard.lookout.plan(policy.files, once=True)


def test_what_commands_make_on_a_stage_becomes_the_projects_when_none_runs(yard: Yard) -> None:
    cell = yard.cell()
    stage = yard.project / ".git" / NAME
    assert stage.is_dir()
    assert len(yard.lookout.locks) == 1
    yard.lookout.begin(cell, alone=True)
    cell.tickets[1] = 1
    (stage / "HEAD").write_text("ref: refs/heads/main\n")
    (stage / "config").write_text("[core]\n\tfsmonitor = evil\n")
    assert yard.lookout.look([cell], cell.policy.files) == []
    assert yard.lookout.is_waiting()
    assert not (yard.project / ".git/HEAD").exists()
    cell.tickets.clear()
    (found,) = yard.lookout.look([cell], cell.policy.files)
    assert found.path == str(yard.project / ".git/config")
    assert (yard.project / ".git/HEAD").exists()
    assert not yard.lookout.is_waiting()
    yard.lookout.let_go(cell.lease, [])


def test_not_while_a_visitor_may_come(yard: Yard) -> None:
    cell = yard.cell()
    yard.lookout.begin(cell, alone=True)
    cell.receiving = True
    (yard.project / ".git" / NAME / "HEAD").write_text("ref: refs/heads/main\n")
    yard.lookout.look([cell], cell.policy.files)
    assert yard.lookout.is_waiting()
    yard.lookout.let_go(cell.lease, [])


def test_a_stage_in_which_nothing_was_made_goes_with_the_last_jail(yard: Yard) -> None:
    cell = yard.cell()
    yard.lookout.let_go(cell.lease, [])
    assert not (yard.project / ".git").exists()


def test_directories_for_what_is_lifted_are_made_and_go_again_if_nothing_is_in_them(tmp_path: Path) -> None:
    lookout = Lookout()
    paths = [f"{tmp_path}/{name}" for name in ("empty", "used", "kept", "users")]
    for name in ("kept", "users"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "kept", ns=(MARK, MARK))
    assert is_kept(str(tmp_path / "kept"))
    lookout.make(paths)
    assert not any(is_kept(path) for path in paths)
    (tmp_path / "used" / "file").touch()
    lookout.close()
    lookout.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "used", "users"]


def test_nothing_is_made_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(UnavailableError, match=r"cannot make .*/link/\.claude"):
        Lookout().make([f"{tmp_path}/link/.claude"])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_directory_that_cannot_be_made_for_what_is_lifted_in_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UnavailableError, match=r"cannot make .*/file/\.claude, of which allowProtected lifts"
    ) as caught:
        Lookout().make([f"{tmp_path}/file/.claude"])
    assert caught.value.hint == "make it yourself, or lift nothing in it"
