"""``stockade.platforms.linux.cell``: when a jail is in use, and whether it fits another plan."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stockade.filesystem.plan import Plan
from stockade.platforms.linux.cell import Cell


class Footing:
    """Mounts that lie where they were laid, or do not."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds

    def holds(self, _touched: set[str]) -> bool:
        return self._holds


def cell(*, holds: bool = True, watched: bool = True) -> Cell:
    nothing = cast("Any", None)
    return Cell(nothing, cast("Any", "policy"), Plan(), nothing, cast("Any", Footing(holds=holds)) if watched else None)


def test_a_jail_is_in_use_by_commands_and_visitors() -> None:
    made = cell()
    assert (made.active, made.busy) == (False, False)
    made.receiving = True
    assert (made.active, made.busy) == (False, True)
    made.guests = 1
    assert (made.active, made.busy) == (True, True)
    made.guests, made.receiving, made.tickets = 0, False, {1: 1}
    assert (made.active, made.busy) == (True, True)


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
