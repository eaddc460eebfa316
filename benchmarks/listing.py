"""What it costs that an empty project looks empty: `find` over many directories, in the jail that leaves names out.

    python benchmarks/listing.py [--directories N] [--rounds N]

A command that begins in an empty project makes the tree and walks it; in its jail somebody is asked about every
listing. The next command walks the same tree in a new jail, in which nobody is. Both are printed with the time of no
sandbox.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from stockade import BlockingSandbox, load_policy
from workplace import workplace

MAKE = """
import os, sys
for number in range(int(sys.argv[1]) // 100):
    for name in range(99):
        os.makedirs(f"{number}/{name}")
"""
WALK = """
import subprocess, sys, time
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    subprocess.run(["find", "."], stdout=subprocess.DEVNULL, check=True)
    print(time.perf_counter() - began)
"""


class Options(argparse.Namespace):
    """The command line, typed."""

    directories: int
    rounds: int


def measure(options: Options, project: Path, settings: Path) -> dict[str, float]:
    """Return the median seconds of each way."""
    words = [str(options.directories), str(options.rounds)]
    with BlockingSandbox(load_policy(project, settings_file=str(settings))) as sandbox:
        ways = {
            "the command that began in an empty project": ["python3", "-c", MAKE + WALK, *words],
            "the next command": ["python3", "-c", WALK, *words],
        }
        found = {way: sandbox.run(line, cwd=str(project)).stdout for way, line in ways.items()}
    found["no sandbox"] = subprocess.check_output(["python3", "-c", WALK, *words], cwd=project)
    return {way: statistics.median(map(float, said.split())) for way, said in found.items()}


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--directories", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(namespace=Options())
    project = Path(tempfile.mkdtemp(prefix="listing-")).resolve()
    try:
        with workplace() as place:
            for way, seconds in measure(options, project, place.settings).items():
                print(f"{way}: {seconds:.3f} s")
    finally:
        shutil.rmtree(project)
    return 0


if __name__ == "__main__":
    sys.exit(main())
