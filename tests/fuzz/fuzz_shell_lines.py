"""Search for lines that break the promise, for as long as you like: see scripts/fuzz."""

from __future__ import annotations

import argparse
import random
import sys
import time

from corpus import entries
from search import Search, kind
from shells import Line
from world import World


def main() -> int:
    """Run the corpus, then new lines; print each kind of finding once, shortened; fail if there is one."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=60, help="how long to search (60)")
    parser.add_argument("--seed", type=int, help="begin the same search again")
    parser.add_argument("--line", action="append", help="run only this line, covered or not; may be repeated")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    world = World()
    try:
        search = Search(world)
        if options.line:
            return _run_lines(search, options.line)
        return _search(search, seed, options.seconds)
    finally:
        world.close()


def _run_lines(search: Search, lines: list[str]) -> int:
    for text in lines:
        say(f"{text!a}: {'covered' if search.judge(text) else 'not covered'}")
    found = search.run([Line(text) for text in lines])
    for finding in found:
        say(str(finding))
    return bool(found)


def _search(search: Search, seed: int, seconds: float) -> int:
    known = [entry.line for entry in entries()]
    end = time.monotonic() + seconds
    say(f"seed {seed}, {', '.join(shell.name for shell in search.shells)}")
    said: set[tuple[str, ...]] = set()
    for finding in search.replay(known):
        say(str(finding))
        said.add(kind(finding.shell, finding.line))
    for batch in search.lines(seed, known, lambda _: time.monotonic() < end):
        for finding in search.run(batch):
            short = search.minimise(finding)
            of = kind(short.shell, short.line)
            if of not in said:
                say(str(short))
            said.add(of)
            search.kinds.add(of)
    say(f"{search.made} lines made, {search.covered} covered, {search.ran} run; {len(said)} kinds of findings")
    return bool(said)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
