"""How fast a server is reached: directly, through our proxy, and through srt's, side by side.

    python benchmarks/network.py [--rounds N] [--only NAME,...] [--no-peers]

In each round every way carries 1 GiB by CONNECT and by plain HTTP, makes new tunnels with 1, 8 and 64 clients at once,
and answers small requests on one connection, in an order that changes from round to round; at the end it holds 1,000
tunnels. Server and clients are in C. The table is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import load
import machine
from contender import FailedError, Ground, MissingError
from processes import UnreadableError, holding
from results import write
from stockade.errors import StockadeError
from stockade.network.hardening import raise_file_limit
from stockade.value import Value
from table import render
from way import WAYS, Way
from workplace import POLICY, Workplace, workplace

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULTS = Path(__file__).with_name("results.md")
CLIENTS = (1, 8, 64)
HELD = 1000
_SETTLE = 0.5
_PATIENCE = 120
NOTES = """\
Medians over the rounds, lowest and highest behind them. A tunnel is a new connection on which CONNECT was answered
(directly: a connection), then closed. Latency is that of a small request and its answer on a connection
that stands. Memory is the proportional share of all processes between client and server."""

#: Samples of one way by what was measured.
Samples = dict[str, list[float]]


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    size: int
    seconds: float
    requests: int
    only: str
    no_peers: bool
    cache: Path
    output: Path


class Figure(Value):
    """A column of the table: its title, and how a number is shown."""

    key: str
    title: str
    unit: float = 1.0
    places: int = 0

    def show(self, samples: Samples) -> str:
        """Return the cell."""
        numbers = [number / self.unit for number in samples.get(self.key, ())]
        if not numbers:
            return "-"
        middle, low, high = (f"{each:,.{self.places}f}" for each in (statistics.median(numbers), *_ends(numbers)))
        return middle if len(numbers) == 1 else f"{middle} ({low}-{high})"


def _ends(numbers: list[float]) -> tuple[float, float]:
    return min(numbers), max(numbers)


SPEEDS = (
    Figure("connect", "CONNECT, MB/s", 1e6),
    Figure("plain", "plain HTTP, MB/s", 1e6),
    *(Figure(f"tunnels-{clients}", f"tunnels/s, {clients}") for clients in CLIENTS),
)
COSTS = (
    Figure("connect-p50", "in a tunnel p50, us", 1e-6),
    Figure("connect-p99", "p99", 1e-6),
    Figure("plain-p50", "plain HTTP p50, us", 1e-6),
    Figure("plain-p99", "p99", 1e-6),
    Figure("memory-0", "memory, MB", 1e6, 1),
    Figure(f"memory-{HELD}", f"with {HELD:,} tunnels", 1e6, 1),
)


class Target(Value):
    """A number that must be so many times that of another way."""

    text: str
    key: str
    way: str
    times: float

    def row(self, ours: str, samples: Mapping[str, Samples]) -> list[str]:
        """Return the row of the table."""
        mine, theirs = (samples.get(name, {}).get(self.key) for name in (ours, self.way))
        if not mine or not theirs:
            return [self.text, "-", "not measured"]
        times = statistics.median(mine) / statistics.median(theirs)
        return [self.text, f"{times:.2f}", "yes" if times >= self.times else "NO"]


TARGETS = (
    *(Target(f"{key}: at least half of direct", key, "direct", 0.5) for key in ("connect", "plain")),
    *(
        Target(f"{key}: at least 4 times srt", key, "srt", 4.0)
        for key in ("connect", "plain", *(f"tunnels-{clients}" for clients in CLIENTS))
    ),
)


class Trial:
    """All ways to one server, and what was measured."""

    def __init__(self, options: Options, ways: list[Way]) -> None:
        """Take those that could be prepared."""
        self.options = options
        self.ways = {way.name: way for way in ways}
        self.samples: dict[str, Samples] = {way.name: {} for way in ways}
        self.failures: dict[str, str] = {}

    async def run(self, place: Workplace, program: Path, port: int) -> None:
        """Start all, run the rounds, hold tunnels, stop all."""
        started: list[Way] = []
        try:
            for way in self.ways.values():
                await self._attempt(way, self._start(way, place, program, port))
                started += [way] if way.name not in self.failures else []
            await self._rounds()
            for way in self._running():
                if way.has_proxy:
                    print(f"{way.name}: {HELD} tunnels ...", file=sys.stderr)
                    await self._attempt(way, self._hold(way, HELD))
        finally:
            for way in started:
                await way.stop()

    def _running(self) -> list[Way]:
        return [way for name, way in self.ways.items() if name not in self.failures]

    async def _attempt(self, way: Way, work: object) -> None:
        try:
            await work  # type: ignore[misc] # any coroutine of this class
        except (FailedError, MissingError, StockadeError, UnreadableError, OSError) as error:
            self.failures[way.name] = (str(error) or type(error).__name__).splitlines()[0]

    async def _start(self, way: Way, place: Workplace, program: Path, port: int) -> None:
        tree = place.base / way.name
        tree.mkdir()
        shutil.copy(program, tree / load.NAME)
        await way.start(Ground(self.options.cache, tree, (), place.settings), port)
        await way.run(load.tunnels(1, 0.2))
        if way.has_proxy:
            self._keep(way, "memory-0", [float(holding(way.processes()).memory)])

    async def _rounds(self) -> None:
        order = random.Random(0)  # noqa: S311 - a fair order, no secret
        for number in range(self.options.rounds):
            print(f"round {number + 1} ...", file=sys.stderr)
            ways = self._running()
            order.shuffle(ways)
            for way in ways:
                await self._attempt(way, self._round(way))

    async def _round(self, way: Way) -> None:
        options = self.options
        for key, plain in (("connect", False), ("plain", True)):
            self._keep(way, key, load.numbers(await way.run(load.bulk(options.size, plain=plain))))
            waits = sorted(load.numbers(await way.run(load.latency(options.requests, plain=plain))))
            self._keep(way, f"{key}-p50", [waits[len(waits) // 2]])
            self._keep(way, f"{key}-p99", [waits[len(waits) * 99 // 100]])
        for clients in CLIENTS:
            output = await way.run(load.tunnels(clients, options.seconds))
            self._keep(way, f"tunnels-{clients}", load.numbers(output))

    async def _hold(self, way: Way, count: int) -> None:
        until = way.ground.tree / "until"
        held = asyncio.create_task(way.run(load.hold(count, until)))
        try:
            await asyncio.wait((held,), timeout=_SETTLE + count / 500)
            if held.done():
                await held
            self._keep(way, f"memory-{count}", [float(holding(way.processes()).memory)])
        finally:
            until.touch()
            await asyncio.wait_for(held, _PATIENCE)

    def _keep(self, way: Way, key: str, numbers: object) -> None:
        self.samples[way.name].setdefault(key, []).extend(numbers)  # type: ignore[arg-type] # always numbers


def report(trial: Trial, missing: dict[str, str], conditions: list[str]) -> str:
    """Return the section of the results."""
    facts = "\n".join(f"- {fact}" for fact in (*machine.facts(), *conditions))
    ways = [way for way in trial.ways.values() if way.name not in trial.failures]
    tables = [
        render(
            [title, *(figure.title for figure in figures)],
            [[way.title, *(figure.show(trial.samples[way.name]) for figure in figures)] for way in ways],
        )
        for title, figures in (("speed", SPEEDS), ("cost", COSTS))
    ]
    ours = "stockade" if trial.samples.get("stockade", {}).get("connect") else "proxy"
    targets = render([f"target, {ours}", "times", "met"], [target.row(ours, trial.samples) for target in TARGETS])
    absent = "\n".join(f"- {name}: {reason}" for name, reason in (missing | trial.failures).items())
    parts = [facts, *tables, NOTES, targets]
    return "\n\n".join([*parts, f"Not measured:\n\n{absent}"] if absent else parts)


def _options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(way.name for way in WAYS)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stockade" / "benchmarks"
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes in bulk (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for new tunnels (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=2000, help="for latency (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"only these of: {names}")
    parser.add_argument("--no-peers", action="store_true", help="leave out srt")
    parser.add_argument("--cache", type=Path, default=cache, help="where peers are installed (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    unknown = set(filter(None, options.only.split(","))) - {way.name for way in WAYS}
    if unknown:
        parser.error(f"no such way: {', '.join(sorted(unknown))} (there are {names})")
    return options


def _prepare(options: Options) -> tuple[list[Way], dict[str, str], dict[str, str]]:
    """Install what is missing; return who takes part, their versions, and why the others do not."""
    options.cache.mkdir(parents=True, exist_ok=True)
    ways: list[Way] = []
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for kind in WAYS:
        if kind.name not in options.only.split(",") if options.only else options.no_peers and kind.is_peer:
            missing[kind.name] = "left out on request"
            continue
        way = kind()
        try:
            version = way.prepare(options.cache)
        except MissingError as error:
            missing[kind.name] = f"missing: {error}"
            continue
        ways.append(way)
        versions |= {"srt" if way.is_peer else "stockade": version} if version else {}
    return ways, versions, missing


def main() -> None:
    """Install, measure, print, write."""
    options = _options()
    options.cache, output = options.cache.absolute(), options.output.absolute()
    raise_file_limit()  # for all that is started here: a proxy has two descriptors for each of its tunnels
    ways, versions, missing = _prepare(options)
    trial = Trial(options, ways)
    began, before = time.monotonic(), machine.load()
    try:
        with workplace() as place:
            program = load.build(place.base)
            with load.server(program) as port:
                network = {"allowedDomains": [f"127.0.0.1:{port}", "127.0.0.1"], "deniedDomains": []}
                place.settings.write_text(json.dumps(POLICY | {"network": network}))
                asyncio.run(trial.run(place, program, port))
    except (MissingError, UnreadableError) as error:
        sys.exit(f"network: {error}")
    took = f"{options.rounds} rounds in {time.monotonic() - began:.0f} s, load {before} before, {machine.load()} after"
    named = ", ".join(f"{name} {version}" for name, version in versions.items()) or "no proxy"
    text = report(trial, missing, [named, took])
    print(text)
    write(output, "Network", text)


if __name__ == "__main__":
    main()
