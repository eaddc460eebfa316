"""What it costs to be told of refused writes: ordinary work with the observer off, by itself, and on, in turns.

    python benchmarks/observe.py [--rounds N] [--only NAME,...] [--size N]

Each chore is done on a disk and on a tmpfs, in each round once without any sandbox, once in a sandbox of each kind, and
once under ``strace -f``, which sees the same calls without a sandbox. The order changes from round to round. The table
is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import machine
from chores import CHORES, Chore
from contender import FailedError, MissingError
from results import write
from stockade import BlockingSandbox, load_policy
from table import render
from workplace import workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.platforms.backend import Observe

RESULTS = Path(__file__).with_name("results.md")
MODES: tuple[Observe, ...] = ("off", "auto", "on")
BARE, STRACE = "no sandbox", "strace -f"
MEMORY = Path("/dev/shm")  # noqa: S108 - every sandbox has one of its own
TARGET = 1.05
PLACES = ("disk", "tmpfs")
#: The calls of ``stockade.platforms.linux.calls``, as strace groups them.
TRACED = ("strace", "-f", "-qq", "-e", "trace=%file,%desc", "-e", "status=failed", "-o", "/dev/null")
NOTES = """\
Seconds, medians over the rounds; behind them how many times that of the sandbox whose observer is off, by the medians
and by the lowest of each; for strace how many times that of no sandbox. Where these two differ much, or more work takes
less time, the machine was too busy to tell 5 %. Both are told of every refused change of a file; strace of failed
reads, too. `on` tells of all changes, `auto` leaves out those by descriptor (fchmod, fchown, futimens, fsetxattr)."""


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    size: int
    only: str
    output: Path


class Runner:
    """One way to do a chore, in a directory on a disk and in one in memory."""

    def __init__(self, name: str, disk: Path, *, traced: bool = False) -> None:
        """Take a directory of its own on the disk."""
        self.name = name
        self.disk = disk
        self.traced = traced
        self.memory = Path(tempfile.mkdtemp(prefix="observe-", dir=MEMORY))
        disk.mkdir()

    def run(self, line: str) -> None:
        """Run a line. Raises if it fails."""
        words = [*(TRACED if self.traced else ()), "sh", "-c", line]
        done = subprocess.run(words, cwd=self.disk, capture_output=True, text=True, timeout=600, check=False)
        _require(done.returncode == 0, done.stdout + done.stderr)

    def clean(self, place: Path) -> None:
        """Remove what a chore left."""
        shutil.rmtree(place)

    def timed(self, chore: Chore, place: Path, inputs: Path) -> float:
        """Do a chore in an empty directory; return the seconds."""
        work = place / "work"
        steps = f"export INPUT={shlex.quote(str(inputs))}; mkdir {work} && cd {work} && {chore.line}"
        os.sync()  # what others have written before is not written now
        began = time.perf_counter()
        self.run(steps)
        took = time.perf_counter() - began
        self.clean(work)
        return took

    def close(self) -> None:
        """Leave nothing."""
        shutil.rmtree(self.memory)


class Walled(Runner):
    """In a sandbox, whose memory is its own."""

    def __init__(self, observe: Observe, disk: Path, settings: Path) -> None:
        """Open it."""
        super().__init__(observe, disk)
        shutil.rmtree(self.memory)
        self.sandbox = BlockingSandbox(load_policy(disk, settings_file=str(settings)), observe=observe)
        self.sandbox.open()
        self.run(f"mkdir {self.memory}")

    def run(self, line: str) -> None:
        """Run a line behind walls. Raises if it fails, or if a change of a file was refused."""
        done = self.sandbox.run(line, cwd=str(self.disk))
        _require(done.ok, done.stderr.decode(errors="replace"))
        told = [violation.text() for violation in done.violations if violation.target.startswith("/")]
        _require(not told, "".join(told[:1]))

    def clean(self, place: Path) -> None:
        """Remove it where it is; what the walls protect once it is there, only the host can remove."""
        if place.is_relative_to(self.memory):
            self.run(f"rm -rf {place}")
        else:
            shutil.rmtree(place)

    def close(self) -> None:
        """Close it."""
        self.sandbox.close()


def _require(fine: bool, words: str) -> None:  # noqa: FBT001 - what is required
    if not fine:
        raise FailedError(words.strip().splitlines()[-1] if words.strip() else "it failed")


Samples = dict[tuple[str, str], dict[str, list[float]]]


class Trial:
    """All chores, all runners, and what was measured."""

    def __init__(self, options: Options, base: Path, settings: Path) -> None:
        """Prepare nothing yet."""
        self.options = options
        self.base = base
        self.settings = settings
        self.samples: Samples = {}
        self.missing: dict[str, str] = {}

    def run(self) -> None:
        """Prepare what can be had, and do all of it in turns."""
        chores = list(self._prepared())
        runners = self._runners()
        order = random.Random(0)  # noqa: S311 - a fair order, no secret
        try:
            for number in range(self.options.rounds):
                print(f"round {number + 1} ...", file=sys.stderr)
                for chore in chores:
                    for where in PLACES:
                        order.shuffle(runners)
                        self._round(chore, where, runners)
        finally:
            for runner in runners:
                runner.close()

    def _prepared(self) -> Iterator[Chore]:
        for chore in CHORES:
            if self.options.only and chore.name not in self.options.only.split(","):
                self.missing[chore.name] = "left out on request"
                continue
            folder = self._inputs(chore)
            folder.mkdir(parents=True)
            try:
                chore.require()
                chore.prepare(folder, self.options.size)
            except MissingError as error:
                self.missing[chore.name] = str(error)
                continue
            yield chore

    def _inputs(self, chore: Chore) -> Path:
        return self.base / "inputs" / chore.name.replace(" ", "-")

    def _runners(self) -> list[Runner]:
        runners: list[Runner] = [Walled(mode, self.base / mode, self.settings) for mode in MODES]
        runners.append(Runner(BARE, self.base / "bare"))
        if shutil.which("strace") is None:
            self.missing["strace"] = "there is no strace"
        else:
            runners.append(Runner(STRACE, self.base / "strace", traced=True))
        return runners

    def _round(self, chore: Chore, where: str, runners: list[Runner]) -> None:
        for runner in runners:
            if chore.name in self.missing:
                return
            try:
                took = runner.timed(chore, runner.disk if where == "disk" else runner.memory, self._inputs(chore))
            except FailedError as error:
                self.missing[chore.name] = f"{runner.name}: {error}"
                return
            self.samples.setdefault((chore.name, where), {}).setdefault(runner.name, []).append(took)

    def text(self, conditions: str) -> str:
        """Return the section of the results."""
        kept = {key: found for key, found in self.samples.items() if key[0] not in self.missing}
        columns = [BARE, *MODES, STRACE]
        rows = [[name, where, *(_cell(found, column) for column in columns)] for (name, where), found in kept.items()]
        facts = "\n".join(f"- {fact}" for fact in (*machine.facts(), conditions))
        parts = [facts, render(["work", "on", *columns], rows), NOTES, _targets(kept)]
        absent = "\n".join(f"- {name}: {why}" for name, why in self.missing.items())
        return "\n\n".join([*parts, f"Not measured:\n\n{absent}"] if absent else parts)


def _cell(found: dict[str, list[float]], column: str) -> str:
    if column not in found:
        return "-"
    middle = statistics.median(found[column])
    if column in {BARE, "off"}:
        return f"{middle:.3f}"
    return f"{middle:.3f} ({_times(found, column):.2f}, {_times(found, column, min):.2f})"


def _times(found: dict[str, list[float]], column: str, of: Callable[[list[float]], float] = statistics.median) -> float:
    against = BARE if column == STRACE else "off"
    return of(found[column]) / of(found[against])


def _targets(kept: Samples) -> str:
    rows = []
    for mode in MODES[1:]:
        for where in PLACES:
            works = [found for (_, place), found in kept.items() if place == where]
            cells = [mode, where]
            for of in (statistics.median, min):
                met = sum(_times(found, mode, of) <= TARGET for found in works)
                together = sum(of(found[mode]) for found in works) / sum(of(found["off"]) for found in works)
                cells += [f"{met} of {len(works)}", f"{together:.3f}"]
            rows.append(cells)
    return render(["observer", "on", "within 5 %, by medians", "all together", "by the lowest", "all together"], rows)


def _options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(chore.name for chore in CHORES)
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--size", type=int, default=1500, help="files, about (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"only these of: {names}")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    unknown = set(filter(None, options.only.split(","))) - {chore.name for chore in CHORES}
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))} (there are {names})")
    return options


def main() -> None:
    """Prepare, measure, print, write."""
    options = _options()
    output = options.output.absolute()
    began, before = time.monotonic(), machine.load()
    with workplace() as place:
        os.chdir(place.base)
        trial = Trial(options, place.base, place.settings)
        trial.run()
    took = f"{options.rounds} rounds in {time.monotonic() - began:.0f} s, load {before} before, {machine.load()} after"
    text = trial.text(f"{took}, about {options.size} files")
    print(text)
    write(output, "Observe", text)


if __name__ == "__main__":
    main()
