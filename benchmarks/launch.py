"""How long a command takes to start and end: bare, behind our walls, and behind those of our peers, side by side.

    python benchmarks/launch.py [--rounds N] [--only NAME,...] [--no-peers]

In trees with 3, 30 and 300 repositories every contender runs ``true`` once in each round, in an order that changes from
round to round. All are given the same policy as far as they can express it: read everything, write the tree, but not
the hooks and configuration of any repository, no network. The table is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

import machine
from bare import BareAsyncio, BareDirect, BareSpawn
from contender import Contender, MissingError
from ours import CommandLine, Library
from peers import PEERS
from race import Course, Place, Race
from results import write
from stockade.value import Value
from table import render
from target import judge
from workplace import Workplace, workplace

SIZES = (3, 30, 300)
CONTENDERS: tuple[type[Contender], ...] = (BareDirect, BareSpawn, BareAsyncio, Library, CommandLine, *PEERS)
RESULTS = Path(__file__).with_name("results.md")
NOTES = """\
Every cell: median / 95th percentile in milliseconds, then the number of samples where it is not that of the rounds. The
time of a library's command runs from the call to its result; that of a command line from its start to its end.
"Protected" tells whether a write to a hook and to the configuration of the first and last repository was refused."""


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    budget: float
    only: str
    no_peers: bool
    cache: Path
    output: Path


class Entry(Value):
    """A contender that takes part, with its version."""

    contender: Contender
    version: str


class Report(Value):
    """All that was measured: places by number of repositories and by contender."""

    places: dict[int, dict[str, Place]]
    failures: dict[str, str]
    conditions: tuple[str, ...]

    def text(self, rounds: int, missing: dict[str, str]) -> str:
        """Return the section of the results; ``missing`` are those that could not even start, with the reason."""
        facts = "\n".join(f"- {fact}" for fact in (*machine.facts(), *self.conditions))
        absent = "\n".join(f"- {name}: {reason}" for name, reason in (missing | self.failures).items())
        parts = [facts, self._table(rounds), NOTES, self._targets()]
        return "\n\n".join([*parts, f"Not measured:\n\n{absent}"] if absent else parts)

    def _table(self, rounds: int) -> str:
        header = ["`true`", *(f"{size} repositories" for size in self.places), "protected"]
        rows = []
        for kind in CONTENDERS:
            places = [by_name.get(kind.name) for by_name in self.places.values()]
            if any(places):
                verdicts = dict.fromkeys(place.protects for place in places if place)
                rows.append([kind.title, *(_cell(place, rounds) for place in places), ", ".join(verdicts)])
        return render(header, rows)

    def _targets(self) -> str:
        medians: dict[str, dict[int, float]] = {}
        for size, by_name in self.places.items():
            for name, place in by_name.items():
                medians.setdefault(name, {})[size] = place.summary.median
        sizes = tuple(self.places)
        header = ["target, by medians", *(f"{size} repositories" for size in sizes), "met"]
        return render(header, [target.row() for target in judge(medians, sizes)])


def _cell(place: Place | None, rounds: int) -> str:
    if place is None:
        return "-"
    fewer = f" ({place.summary.count})" if place.summary.count != rounds else ""
    return f"{place.summary}{fewer}"


def _options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(kind.name for kind in CONTENDERS)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stockade" / "benchmarks"
    parser.add_argument("--rounds", type=int, default=100, help="rounds for each tree (default: %(default)s)")
    parser.add_argument(
        "--budget", type=float, default=30.0, help="seconds for each contender and tree (default: %(default)s)"
    )
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"only these of: {names}")
    parser.add_argument("--no-peers", action="store_true", help="leave out bwrap, sandlock and srt")
    parser.add_argument("--cache", type=Path, default=cache, help="where peers are installed (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    unknown = set(filter(None, options.only.split(","))) - {kind.name for kind in CONTENDERS}
    if unknown:
        parser.error(f"no such contender: {', '.join(sorted(unknown))} (there are {names})")
    return options


def _chosen(kind: type[Contender], options: Options) -> bool:
    if options.only:
        return kind.name in options.only.split(",")
    return not (options.no_peers and kind.is_peer)


def _prepare(options: Options) -> tuple[list[Entry], dict[str, str]]:
    """Install what is missing; return who takes part, and why the others do not."""
    options.cache.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    missing: dict[str, str] = {}
    for kind in CONTENDERS:
        if not _chosen(kind, options):
            missing[kind.name] = "left out on request"
            continue
        contender = kind()
        try:
            entries.append(Entry(contender, contender.prepare(options.cache)))
        except MissingError as error:
            missing[kind.name] = f"missing: {error}"
    return entries, missing


def _measure(entries: list[Entry], options: Options, place: Workplace) -> Report:
    places: dict[int, dict[str, Place]] = {}
    failures: dict[str, str] = {}
    began, load = time.monotonic(), machine.load()
    for size in SIZES:
        print(f"{size} repositories ...", file=sys.stderr)
        course = Course(place.base / str(size), size, place.settings, options.cache)
        race = Race([entry.contender for entry in entries], course)
        places[size] = asyncio.run(race.run(options.rounds, options.budget))
        failures |= {f"{name} with {size} repositories": reason for name, reason in race.failures.items()}
    took = time.monotonic() - began
    conditions = f"{options.rounds} rounds in {took:.0f} s, load {load} before and {machine.load()} after"
    return Report(places, failures, (_versions(entries), conditions))


def _versions(entries: list[Entry]) -> str:
    """Name each version once: a library and its command line are of one package."""
    known = {entry.contender.name.partition("-")[0]: entry.version for entry in entries if entry.version}
    return ", ".join(f"{name} {version}" for name, version in known.items()) or "no sandbox"


def main() -> None:
    """Install, measure, print, write."""
    options = _options()
    options.cache, output = options.cache.absolute(), options.output.absolute()
    entries, missing = _prepare(options)
    with workplace() as place:
        text = _measure(entries, options, place).text(options.rounds, missing)
    print(text)
    write(output, "Launch", text)


if __name__ == "__main__":
    main()
