"""A command that is refused a million writes: each must be counted, the store stay small, and the owner hardly notice.

    python benchmarks/flood.py [--count N]

Once at one place, once at as many places as there are refusals. The numbers are those of the sandbox's owner; the table
is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import machine
from results import write
from stockade import BlockingSandbox, load_policy
from table import render
from workplace import workplace

RESULTS = Path(__file__).with_name("results.md")
PLACES = {"one place": "name = '/refused'", "all different": "name = f'/refused{number}'"}
SCRIPT = "import os\nfor number in range({count}):\n try:\n  {name}; os.mkdir(name)\n except OSError: pass\n"


class Options(argparse.Namespace):
    """The command line, typed."""

    count: int
    output: Path


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _flood(sandbox: BlockingSandbox, title: str, name: str, count: int) -> list[str]:
    before, memory, total = time.process_time(), _memory(), sandbox.violations.total
    script = SCRIPT.format(count=count, name=name)
    done = sandbox.run(["python3", "-c", script])
    own = time.process_time() - before
    counted = sandbox.violations.total - total
    return [
        title,
        f"{counted:,}",
        f"{done.seconds / count * 1e6:.1f}",
        f"{own / count * 1e6:.3f}",
        f"{len(sandbox.violations)}",
        f"{_memory() - memory:,}",
    ]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    output = options.output.absolute()
    with workplace() as place:
        tree = place.base / "tree"
        tree.mkdir()
        os.chdir(tree)
        with BlockingSandbox(load_policy(tree, settings_file=str(place.settings))) as sandbox:
            rows = [_flood(sandbox, title, name, options.count) for title, name in PLACES.items()]
    head = ["refused", "counted", "us for each", "of it the owner's", "entries kept", "KiB more in the owner"]
    facts = "\n".join(f"- {fact}" for fact in machine.facts())
    text = f"{facts}\n\n{render(head, rows)}"
    print(text)
    write(output, "Flood", text)


if __name__ == "__main__":
    main()
