"""The targets that the numbers are held against; nothing fails on them, for machines differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from stockade.value import Value
from table import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

#: Median seconds by contender and number of repositories.
Medians: TypeAlias = Mapping[str, Mapping[int, float]]

ABOVE_BARE = 0.003
FLAT = 1.3
OVER_SRT = 10.0
OVER_SRT_COMMAND = 5.0


class Target(Value):
    """One target: what is compared, and whether each number reaches it (``None``: a side is missing)."""

    text: str
    cells: tuple[str, ...]
    met: bool | None

    def row(self) -> list[str]:
        """Return the row of the table."""
        return [self.text, *self.cells, {True: "yes", False: "NO", None: "not measured"}[self.met]]


def judge(medians: Medians, sizes: tuple[int, ...]) -> list[Target]:
    """Hold the medians against all targets."""

    def above(text: str, name: str) -> Target:
        return _each(text, sizes, lambda size: _difference(medians, name, size))

    def faster(text: str, ours: str, theirs: str, least: float) -> Target:
        return _each(text, sizes, lambda size: _ratio(medians, theirs, ours, size, least))

    return [
        above("library above bare posix_spawn: at most 3 ms", "bare"),
        above("library above bare asyncio: at most 3 ms", "bare-asyncio"),
        _flat(medians, sizes),
        faster("srt library / library: at least 10", "stockade", "srt", OVER_SRT),
        faster("sandlock / library: above 1", "stockade", "sandlock", 1.0),
        faster("bwrap / library: above 1", "stockade", "bwrap", 1.0),
        faster("srt command line / command line: at least 5", "stockade-cli", "srt-cli", OVER_SRT_COMMAND),
    ]


def _each(text: str, sizes: tuple[int, ...], look: Callable[[int], tuple[str, bool] | None]) -> Target:
    found = [look(size) for size in sizes]
    cells = tuple("-" if one is None else one[0] for one in found)
    known = [one[1] for one in found if one is not None]
    return Target(text, cells, all(known) if known else None)


def _difference(medians: Medians, name: str, size: int) -> tuple[str, bool] | None:
    ours, bare = medians.get("stockade", {}).get(size), medians.get(name, {}).get(size)
    if ours is None or bare is None:
        return None
    return f"{'+' if ours >= bare else ''}{milliseconds(ours - bare)} ms", ours - bare <= ABOVE_BARE


def _ratio(medians: Medians, theirs: str, ours: str, size: int, least: float) -> tuple[str, bool] | None:
    over, under = medians.get(theirs, {}).get(size), medians.get(ours, {}).get(size)
    if over is None or under is None:
        return None
    ratio = over / under
    return f"{ratio:.1f}x", ratio >= least if least > 1 else ratio > 1


def _flat(medians: Medians, sizes: tuple[int, ...]) -> Target:
    ours = medians.get("stockade", {})
    first = ours.get(sizes[0])

    def look(size: int) -> tuple[str, bool] | None:
        here = ours.get(size)
        if first is None or here is None:
            return None
        return f"{here / first:.2f}x", here / first <= FLAT

    return _each(f"library against {sizes[0]} repositories: at most {FLAT}x", sizes, look)
