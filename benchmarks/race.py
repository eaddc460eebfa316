"""A race: all contenders on one tree, in interleaved rounds.

Who fails is out, with the reason; the others go on.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import tree
from contender import Contender, FailedError, Ground, MissingError
from schedule import schedule
from stockade.errors import StockadeError
from stockade.value import Value
from table import Summary

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

LINE = "true"
_WARM_UPS = 3


class Place(Value):
    """How one contender did on one tree; ``protects`` tells whether hooks and configuration withstood the probe."""

    summary: Summary
    protects: str


class Race:
    """One tree and those who run on it."""

    def __init__(self, contenders: Sequence[Contender], forest: tree.Tree, ground: Ground) -> None:
        """Take those that could be prepared."""
        self.contenders = {each.name: each for each in contenders}
        self.forest = forest
        self.ground = ground
        self.protects: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    async def run(self, rounds: int, budget: float) -> dict[str, Place]:
        """Start all, run the rounds, stop all."""
        async with AsyncExitStack() as sessions:
            for name, each in self.contenders.items():
                await self._attempt(name, self._enter(each, sessions))
            costs = {name: await self._attempt(name, self._warm_up(self.contenders[name])) for name in self._running()}
            samples = await self._rounds(schedule(rounds, {name: costs[name] for name in self._running()}, budget))
        return {name: Place(Summary.of(samples[name]), self.protects[name]) for name in self._running()}

    def _running(self) -> list[str]:
        return [name for name in self.contenders if name not in self.failures]

    async def _attempt(self, name: str, work: Coroutine[None, None, float]) -> float:
        try:
            return await work
        except (FailedError, MissingError, StockadeError, OSError) as error:
            self.failures[name] = str(error) or type(error).__name__
            return 0.0

    async def _enter(self, contender: Contender, sessions: AsyncExitStack) -> float:
        await contender.start(self.ground)
        sessions.push_async_callback(contender.stop)
        if contender.has_shell:
            took = await contender.run(tree.attack(self.forest))
            self.protects[contender.name] = tree.verdict(self.forest)
            return took
        self.protects[contender.name] = "-"
        return 0.0

    async def _warm_up(self, contender: Contender) -> float:
        return min([await contender.run(LINE) for _ in range(_WARM_UPS)])

    async def _rounds(self, plan: list[list[str]]) -> dict[str, list[float]]:
        samples: dict[str, list[float]] = {name: [] for name in self.contenders}
        for names in plan:
            for name in names:
                if name not in self.failures:
                    samples[name].append(await self._attempt(name, self.contenders[name].run(LINE)))
        return samples
