"""What the inspection of what commands leave costs a command: its processor time in the owner, before and after it.

    python benchmarks/inspection.py [--rounds N] [--repositories N,...] [--entries N]

Each row is a line that commands run, in a tree with so many repositories or with one whose index has so many entries.
``session`` is a command of a session, whose disk is watched; ``once`` is the only command of a program, as with
``stockade run``. In a session the time includes renewing the plan, which the next command then finds done. The table
is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import machine
from results import write
from stockade import BlockingSandbox, load_policy
from stockade.platforms.linux.walls import LinuxWalls
from table import render
from workplace import workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.policy.model import SandboxPolicy

RESULTS = Path(__file__).with_name("results.md")
NOTES = """\
Milliseconds of processor time in the owner, medians: what it notes when a command starts, and what it does between the
end of the command and its result. The time in which the command itself runs is not part of it. `git add` changes one
entry, and the index is read and walked once."""
LINES = {"nothing": "true", "a file in a directory": "touch g0/r0/new", "a new repository": "git init -q g0/new"}


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    repositories: str
    entries: int
    output: Path


class Meter:
    """Adds up the processor time of two methods of the walls."""

    def __init__(self) -> None:
        """Take the methods' places."""
        self.begin: list[float] = []
        self.inspect: list[float] = []
        LinuxWalls._begin = self._timed(LinuxWalls._begin, self.begin)  # type: ignore[method-assign] # noqa: SLF001
        LinuxWalls._inspect = self._timed(LinuxWalls._inspect, self.inspect)  # type: ignore[method-assign] # noqa: SLF001

    def clear(self) -> None:
        """Forget what was measured."""
        self.begin.clear()
        self.inspect.clear()

    @staticmethod
    def _timed(method: Callable[..., None], times: list[float]) -> Callable[..., None]:
        def timed(*arguments: object, **options: object) -> None:
            before = time.thread_time()
            method(*arguments, **options)
            times.append(time.thread_time() - before)

        return timed


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)


def _forest(base: Path, count: int) -> Path:
    """Make so many small repositories, ten to a directory."""
    top = base / f"forest-{count}"
    for number in range(count):
        repository = top / f"g{number // 10}" / f"r{number}"
        for name in ("one", "two", "three"):
            (repository / name).mkdir(parents=True)
            (repository / name / "file").write_text("text")
        _git("init", "-q", str(repository))
        _git("-C", str(repository), "add", ".")
    return top


def _large(base: Path, entries: int) -> Path:
    """Make one repository whose index has so many entries, and no files."""
    top = base / "large"
    _git("init", "-q", str(top))
    (top / "file").write_text("text")
    _git("-C", str(top), "add", "file")
    blob = subprocess.run(["git", "-C", top, "rev-parse", ":file"], check=True, capture_output=True, text=True).stdout
    lines = (f"100644 {blob.strip()}\tpackages/some/dir{n // 50:05}/file{n:06}.ts\n" for n in range(entries))
    subprocess.run(["git", "-C", top, "update-index", "--index-info"], input="".join(lines), check=True, text=True)
    return top


def _samples(
    meter: Meter, policy: SandboxPolicy, line: str, rounds: int, *, once: bool
) -> Iterator[tuple[float, float]]:
    """Yield what each command cost at its start and at its end; the first of each kind warms things up."""
    if once:
        for _ in range(rounds + 1):
            with BlockingSandbox(policy, walls=lambda temporary: LinuxWalls(temporary, once=True)) as sandbox:
                yield _sample(meter, sandbox, line)
        return
    with BlockingSandbox(policy) as sandbox:
        for _ in range(rounds + 1):
            sandbox.run("true")
            yield _sample(meter, sandbox, line)


def _sample(meter: Meter, sandbox: BlockingSandbox, line: str) -> tuple[float, float]:
    meter.clear()
    done = sandbox.run(line)
    if done.exit_code:
        raise RuntimeError(done.stderr.decode())
    return meter.begin[0], meter.inspect[-1]


def _rows(meter: Meter, top: Path, settings: Path, lines: dict[str, str], options: Options) -> Iterator[list[str]]:
    os.chdir(top)
    policy = load_policy(top, settings_file=str(settings))
    for title, line in lines.items():
        for kind in ("session", "once"):
            found = []
            for sample in _samples(meter, policy, line, options.rounds, once=kind == "once"):
                found.append(sample)
                shutil.rmtree(top / "g0/new", ignore_errors=True)
                (top / "g0/r0/new").unlink(missing_ok=True)
            begins, ends = zip(*found[1:], strict=True)
            figures = [f"{statistics.median(times) * 1000:.2f}" for times in (begins, ends)]
            yield [f"{top.name.replace('-', ' of ')}: {title}", kind, *figures]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="commands of each kind (default: %(default)s)")
    parser.add_argument("--repositories", default="3,30,300", help="(default: %(default)s)")
    parser.add_argument("--entries", type=int, default=100_000, help="of the large index (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    output = options.output.absolute()
    meter = Meter()
    with workplace() as place:
        rows: list[list[str]] = []
        for count in map(int, options.repositories.split(",")):
            rows += _rows(meter, _forest(place.base, count), place.settings, LINES, options)
        changed = {"nothing": "true", "git add": "date +%s%N >file; git add file"}
        rows += _rows(meter, _large(place.base, options.entries), place.settings, changed, options)
    facts = "\n".join(f"- {fact}" for fact in machine.facts())
    text = f"{facts}\n\n{NOTES}\n\n{render(['left behind', 'command of', 'start, ms', 'end, ms'], rows)}"
    print(text)
    write(output, "Inspection", text)


if __name__ == "__main__":
    main()
