from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedule import FEWEST, schedule, turns


@pytest.mark.parametrize(
    ("rounds", "cost", "budget", "expected"),
    [
        pytest.param(5, 0.001, 30, {0, 1, 2, 3, 4}, id="who can afford it runs always"),
        pytest.param(100, 2, 40, set(range(0, 100, 5)), id="who is slow runs now and then, evenly"),
        pytest.param(100, 60, 30, set(range(0, 100, 10)), id="but often enough for a median"),
        pytest.param(4, 60, 30, {0, 1, 2, 3}, id="never more often than there are rounds"),
        pytest.param(3, 0, 30, {0, 1, 2}, id="no cost known"),
    ],
)
def test_turns(rounds: int, cost: float, budget: float, expected: set[int]) -> None:
    assert turns(rounds, cost, budget) == expected


@given(st.integers(1, 60), st.dictionaries(st.text(), st.floats(0, 100), max_size=5), st.floats(0, 100))
def test_everybody_runs_as_often_as_planned_and_at_most_once_a_round(
    rounds: int, costs: dict[str, float], budget: float
) -> None:
    plan = schedule(rounds, costs, budget)
    assert len(plan) == rounds
    assert all(len(set(names)) == len(names) for names in plan)
    counts = {name: sum(name in names for names in plan) for name in costs}
    assert counts == {name: len(turns(rounds, cost, budget)) for name, cost in costs.items()}
    assert all(count >= min(rounds, FEWEST) for count in counts.values())


def test_the_order_changes_from_round_to_round_but_not_from_run_to_run() -> None:
    costs = dict.fromkeys("abcdef", 0.001)
    plan = schedule(20, costs, 30)
    assert plan == schedule(20, costs, 30)
    assert len({tuple(names) for names in plan}) > 1
