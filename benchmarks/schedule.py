"""Who runs in which round.

Everybody who can afford it runs once in each round, so that a burst of noise on the machine hits all alike. Who is so
slow that this would take longer than its budget runs in fewer rounds, spread evenly over the whole run.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FEWEST = 10


def turns(rounds: int, cost: float, budget: float) -> frozenset[int]:
    """Return the rounds in which somebody takes part whose command costs that many seconds."""
    affordable = rounds if cost * rounds <= budget else int(budget / cost)
    count = min(rounds, max(FEWEST, affordable))
    return frozenset(index * rounds // count for index in range(count))


def schedule(rounds: int, costs: Mapping[str, float], budget: float) -> list[list[str]]:
    """Return the names of each round, in an order that differs from round to round but not from run to run."""
    taking = {name: turns(rounds, cost, budget) for name, cost in costs.items()}
    order = random.Random(0)  # noqa: S311 - a fair order, no secret
    plan = []
    for index in range(rounds):
        names = [name for name in costs if index in taking[name]]
        order.shuffle(names)
        plan.append(names)
    return plan
