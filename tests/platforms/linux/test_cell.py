"""``stockade.platforms.linux.cell``: when a jail is in use, and whether it fits another plan."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, cast

import pytest

from stockade.filesystem.plan import Placeholder, Plan
from stockade.platforms.linux.cell import Cell, bare_roots

if TYPE_CHECKING:
    from pathlib import Path


class Lease:
    """Placeholders that are there."""

    def __init__(self, *targets: str) -> None:
        self.targets = targets


class Footing:
    """Mounts that lie where they were laid, or do not."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds

    def holds(self, _touched: set[str]) -> bool:
        return self._holds


def cell(*, holds: bool = True, watched: bool = True) -> Cell:
    nothing = cast("Any", None)
    footing = cast("Any", Footing(holds=holds)) if watched else None
    return Cell(nothing, cast("Any", "policy"), Plan(), cast("Any", Lease()), footing)


def test_a_jail_is_in_use_by_commands_and_visitors() -> None:
    made = cell()
    assert (made.active, made.busy) == (False, False)
    made.receiving = True
    assert (made.active, made.busy) == (False, True)
    made.guests = 1
    assert (made.active, made.busy) == (True, True)
    made.guests, made.receiving, made.tickets = 0, False, {1: 1}
    assert (made.active, made.busy) == (True, True)


def test_a_root_that_fills_or_empties_gets_another_jail(tmp_path: Path) -> None:
    root = str(tmp_path)
    target = f"{root}/.mcp.json"
    plan = Plan(placeholders=(Placeholder(target, "missing", root),))
    nothing = cast("Any", None)
    lease, footing = cast("Any", Lease(target)), cast("Any", Footing(holds=True))
    bare, full = (
        Cell(nothing, cast("Any", "policy"), plan, lease, footing, unlisted)
        for unlisted in (((root, (".mcp.json",)),), ())
    )

    def fit(touched: set[str]) -> tuple[bool, bool]:
        return tuple(each.fits(cast("Any", "policy"), plan, touched) for each in (bare, full))  # type: ignore[return-value]

    (tmp_path / ".mcp.json").touch()
    assert fit({target}) == (True, False)
    (tmp_path / "file").touch()
    assert fit({f"{root}/file"}) == (False, True)
    assert fit(set()) == (True, True)  # nothing happened, so nobody looks


@pytest.mark.parametrize(
    ("made", "policy", "plan", "expected"),
    [
        pytest.param(cell(), "policy", Plan(), True, id="the same"),
        pytest.param(cell(), "another", Plan(), False, id="another policy"),
        pytest.param(cell(), "policy", Plan(notes=("x",)), False, id="another plan"),
        pytest.param(cell(holds=False), "policy", Plan(), False, id="something was replaced"),
        pytest.param(cell(watched=False), "policy", Plan(), False, id="nobody watched"),
    ],
)
def test_whether_a_jail_fits(made: Cell, policy: str, plan: Plan, expected: bool) -> None:  # noqa: FBT001
    assert made.fits(cast("Any", policy), plan, set()) is expected


def _plan(*placeholders: tuple[str, str]) -> Plan:
    return Plan(placeholders=tuple(Placeholder(path, "missing", root) for path, root in placeholders))


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A root that holds a placeholder of each shape."""
    (tmp_path / "root" / ".vscode").mkdir(parents=True)
    (tmp_path / "root" / ".mcp.json").touch()
    os.mknod(tmp_path / "root" / "refs", stat.S_IFSOCK)
    return str(tmp_path / "root")


NAMES = (".mcp.json", ".vscode", "refs")


def _targets(root: str) -> list[str]:
    return [f"{root}/{name}" for name in NAMES]


@pytest.mark.parametrize(
    ("others", "bare"),
    [
        pytest.param((), True, id="nothing"),
        pytest.param((".git",), True, id="an empty repository"),
        pytest.param(("file",), False, id="a file"),
        pytest.param((".git", ".gitignore"), False, id="a repository with a file"),
    ],
)
def test_a_root_with_nothing_but_placeholders_is_bare(root: str, others: tuple[str, ...], *, bare: bool) -> None:
    for name in others:
        os.mkdir(f"{root}/{name}")
    plan = _plan(*((target, root) for target in _targets(root)))
    assert bare_roots(plan, _targets(root)) == (((root, NAMES),) if bare else ())


def test_only_roots_count(root: str) -> None:
    target = f"{root}/.vscode/settings.json"
    assert bare_roots(_plan((target, root)), [target]) == ()
    assert bare_roots(_plan((target, "/")), ["/refs"]) == ()


def test_each_root_counts_for_itself(root: str, tmp_path: Path) -> None:
    for name, files in (("full", (".mcp.json", "file")), ("bare", (".mcp.json",))):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    roots = [root, str(tmp_path / "full"), str(tmp_path / "bare"), str(tmp_path / "missing")]
    targets = [*_targets(root), *(f"{each}/.mcp.json" for each in roots[1:])]
    plan = _plan(*((target, os.path.dirname(target)) for target in targets))
    assert bare_roots(plan, targets) == ((root, NAMES), (roots[2], (".mcp.json",)))


def test_without_placeholders_there_is_nothing_to_leave_out(root: str) -> None:
    assert bare_roots(_plan((f"{root}/refs", root)), []) == ()
    assert bare_roots(Plan(), []) == ()
