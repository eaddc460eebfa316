"""What a change costs: this checkout and another one, side by side.

    git worktree add ../before <commit>
    python benchmarks/versions.py ../before [--rounds N] [--sizes 3,30,300]

In trees with 3, 30 and 300 repositories the library and the command line of both run ``true`` once in each round, in an
order that changes from round to round. The table is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import subprocess
import sys
import time
from pathlib import Path

import machine
from contender import Contender, Ground, Spawned
from driven import Driven
from race import Course, Place, Race
from results import write
from table import render
from workplace import workplace

SIZES = "3,30,300"
RESULTS = Path(__file__).with_name("results.md")
_HERE = Path(__file__).resolve().parents[1]
_DRIVERS = Path(__file__).resolve().parent / "drivers"
_NOTES = """\
Median / 95th percentile in milliseconds; behind the medians of this checkout how many times those of the other."""


class Options(argparse.Namespace):
    """The command line, typed."""

    other: Path
    rounds: int
    sizes: str
    output: Path


class _Library(Driven):
    """A session of one checkout."""

    def __init__(self, name: str, checkout: Path) -> None:
        self.name = self.title = name
        self._source = checkout / "src"

    def words(self, ground: Ground) -> tuple[str, ...]:
        """Start the driver with that checkout's code."""
        driver = str(_DRIVERS / "library_driver.py")
        return sys.executable, driver, str(self._source), str(ground.tree), str(ground.settings)


class _CommandLine(Spawned):
    """The command line of one checkout."""

    def __init__(self, name: str, checkout: Path) -> None:
        self.name = self.title = name
        self._source = checkout / "src"

    def prefix(self) -> tuple[str, ...]:
        """Start it by a script that is as short as the installed one."""
        driver = str(_DRIVERS / "command_line_driver.py")
        return sys.executable, driver, str(self._source), "run", "--settings", str(self.ground.settings), "-c"


def _options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=60, help="rounds for each tree (default: %(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="repositories in the trees (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    if not (options.other / "src" / "stockade" / "__init__.py").is_file():
        parser.error(f"{options.other} is no checkout of Stockade: it has no src/stockade")
    return options


def _revision(checkout: Path) -> str:
    asked = ["git", "-C", str(checkout), "log", "-1", "--format=%h %s"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _rows(places: dict[int, dict[str, Place]]) -> list[list[str]]:
    rows = []
    for kind in ("library", "command line"):
        for which in ("other", "this"):
            cells = []
            for by_name in places.values():
                place, other = by_name.get(f"{which} {kind}"), by_name.get(f"other {kind}")
                ratio = f" ({place.summary.median / other.summary.median:.2f}x)" if place and other else ""
                cells.append("-" if place is None else f"{place.summary}{ratio if which == 'this' else ''}")
            rows.append([f"{kind}, {which} checkout", *cells])
    return rows


def main() -> None:
    """Measure, print, write."""
    options = _options()
    other, output = options.other.resolve(), options.output.absolute()
    checkouts = {"other": other, "this": _HERE}
    for checkout in checkouts.values():
        compileall.compile_dir(checkout / "src", quiet=1)  # so that neither compiles anything while it is measured
    places: dict[int, dict[str, Place]] = {}
    sizes = [int(size) for size in options.sizes.split(",")]
    began, load = time.monotonic(), machine.load()
    with workplace() as place:
        for size in sizes:
            print(f"{size} repositories ...", file=sys.stderr)
            contenders: list[Contender] = []
            for which, checkout in checkouts.items():
                contenders += (
                    _Library(f"{which} library", checkout),
                    _CommandLine(f"{which} command line", checkout),
                )
            race = Race(contenders, Course(place.base / str(size), size, place.settings, place.base))
            places[size] = asyncio.run(race.run(options.rounds, 60.0))
            for name, reason in race.failures.items():
                print(f"{name}: {reason}", file=sys.stderr)
    took = time.monotonic() - began
    facts = [*machine.facts(), f"other: {_revision(other)}"]
    facts.append(f"{options.rounds} rounds in {took:.0f} s, load {load} before, {machine.load()} after")
    table = render(["`true`", *(f"{size} repositories" for size in sizes)], _rows(places))
    text = "\n\n".join(["\n".join(f"- {fact}" for fact in facts), table, _NOTES])
    print(text)
    write(output, "Versions", text)


if __name__ == "__main__":
    main()
