"""What a session's helpers cost in memory, and whether anything grows with the number of commands.

    python benchmarks/memory.py [--repositories N] [--commands N]

One session runs ``true`` again and again. Looked at after the first command, after a fifth of them, after all and once
the session is closed: processes, memory (proportional share, and what they wrote) and descriptors of the helpers,
written memory and descriptors of the program that owns the session. The table is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import time
from pathlib import Path

import machine
import tree
from contender import Ground
from ours import Library
from processes import Holding, UnreadableError, descendants, holding
from results import write
from stockade.errors import StockadeError
from stockade.value import Value
from table import render
from workplace import Workplace, workplace

RESULTS = Path(__file__).with_name("results.md")
MOST_MEMORY = 60_000_000


class Options(argparse.Namespace):
    """The command line, typed."""

    repositories: int
    commands: int
    output: Path


class Look(Value):
    """What was seen at one moment."""

    moment: str
    helpers: Holding
    owner: Holding

    @classmethod
    def now(cls, moment: str) -> Look:
        """Look at the helpers and at this program; what waits for the garbage collector is no leak."""
        gc.collect()
        own = os.getpid()
        return cls(moment, holding(descendants(own)), holding([own]))

    def row(self) -> list[str]:
        """Return the row of the table."""
        helpers, owner = self.helpers, self.owner
        theirs = [str(helpers.processes), _megabytes(helpers.memory), _megabytes(helpers.written)]
        return [
            self.moment,
            *theirs,
            str(helpers.descriptors),
            _megabytes(owner.written),
            str(owner.descriptors),
        ]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


async def observe(library: Library, ground: Ground, commands: int) -> list[Look]:
    """Run a session and look at it four times, and once before."""
    looks = [Look.now("before the session")]
    await library.start(ground)
    try:
        done = 0
        for goal in (1, max(1, commands // 5), commands):
            for _ in range(goal - done):
                await library.run("true")
            done = goal
            looks.append(Look.now(f"after {goal:,} command{'s' if goal > 1 else ''}"))
    finally:
        await library.stop()
    looks.append(Look.now("session closed"))
    return looks


def report(looks: list[Look], repositories: int, took: float) -> str:
    """Return the section of the results."""
    facts = "\n".join(f"- {fact}" for fact in (*machine.facts(), f"{repositories} repositories, {took:.0f} s"))
    header = ["", "helpers", "PSS", "written", "descriptors", "owner's written", "owner's descriptors"]
    most = max(look.helpers.memory for look in looks)
    met = "yes" if most < MOST_MEMORY else "NO"
    verdict = f"Target, helpers under {_megabytes(MOST_MEMORY)} together: {_megabytes(most)} at most, {met}."
    return "\n\n".join([facts, render(header, [look.row() for look in looks]), verdict])


def _options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repositories", type=int, default=30, help="in the tree (default: %(default)s)")
    parser.add_argument("--commands", type=int, default=5000, help="to run (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    return parser.parse_args(namespace=Options())


def _measure(options: Options, place: Workplace) -> str:
    forest = tree.plant(place.base / "tree", options.repositories)
    os.chdir(forest.directory)
    began = time.monotonic()
    ground = Ground(place.base, forest.directory, forest.protected(), place.settings)
    looks = asyncio.run(observe(Library(), ground, options.commands))
    return report(looks, options.repositories, time.monotonic() - began)


def main() -> None:
    """Measure, print, write."""
    options = _options()
    output = options.output.absolute()
    try:
        with workplace() as place:
            text = _measure(options, place)
    except (StockadeError, UnreadableError) as error:
        sys.exit(f"memory: {error}")
    print(text)
    write(output, "Memory", text)


if __name__ == "__main__":
    main()
