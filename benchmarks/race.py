"""A race: all contenders, each on a tree of its own, in interleaved rounds.

Trees are alike, but not shared: some sandboxes leave marks beside what they protect while a session lives, which
another would meet. Who fails is out, with the reason; the others go on.
"""

from __future__ import annotations

import os
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
    from pathlib import Path

LINE = "true"
_WARM_UPS = 3


class Place(Value):
    """How one contender did on one tree; ``protects`` tells whether hooks and configuration withstood the probe."""

    summary: Summary
    protects: str


class Course(Value):
    """What all trees of a race have in common: where they are planted, how large, under which policy."""

    base: Path
    repositories: int
    settings: Path
    cache: Path


class Race:
    """Those who run, and how far they got."""

    def __init__(self, contenders: Sequence[Contender], course: Course) -> None:
        """Take those that could be prepared."""
        self.contenders = {each.name: each for each in contenders}
        self.course = course
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
            said = str(error) or type(error).__name__
            self.failures[name] = said.replace(str(self.course.base), "...")
            return 0.0

    async def _enter(self, contender: Contender, sessions: AsyncExitStack) -> float:
        forest = tree.plant(self._directory(contender), self.course.repositories)
        os.chdir(forest.directory)
        await contender.start(Ground(self.course.cache, forest.directory, forest.protected(), self.course.settings))
        sessions.push_async_callback(contender.stop)
        self.protects[contender.name] = "-"
        if contender.has_shell:
            await contender.run(tree.attack(forest))
            self.protects[contender.name] = tree.verdict(forest)
        return 0.0

    def _directory(self, contender: Contender) -> Path:
        return self.course.base / contender.name

    async def _warm_up(self, contender: Contender) -> float:
        return min([await self._sample(contender) for _ in range(_WARM_UPS)])

    async def _sample(self, contender: Contender) -> float:
        os.chdir(self._directory(contender))
        return await contender.run(LINE)

    async def _rounds(self, plan: list[list[str]]) -> dict[str, list[float]]:
        samples: dict[str, list[float]] = {name: [] for name in self.contenders}
        for names in plan:
            for name in names:
                if name not in self.failures:
                    samples[name].append(await self._attempt(name, self._sample(self.contenders[name])))
        return samples
