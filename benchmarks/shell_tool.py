"""What the shell tool costs above the sandbox alone: ``ShellTool.run`` against ``Sandbox.run``, the same line in turns.

    python benchmarks/shell_tool.py [--rounds N]

Both use one session, and take turns within each round, so that whatever else the machine does meets both alike. The
tool has rules, exclusions and live settings to look at. The difference is that of the medians; the table is printed and
written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from results import write
from stockade import LivePolicy, Locations, ShellCall, ShellTool
from table import Summary, milliseconds, render
from workplace import workplace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LINES = {
    "a builtin": "true",
    "a program": "/bin/true",
    "a compound line": "echo x | cat; /bin/true",
    "a move": "cd . && true",
}
RESULTS = Path(__file__).with_name("results.md")
TARGET = 0.001
SETTINGS = {
    "sandbox": {"enabled": True, "excludedCommands": ["docker *", "npm run deploy"]},
    "permissions": {"allow": ["Bash(git:*)", "Bash(npm run:*)"], "deny": ["Bash(rm -rf:*)"], "ask": ["Bash(sudo:*)"]},
}


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    output: Path


async def timed(run: Callable[[], Awaitable[object]]) -> float:
    """Return how long a call takes, in seconds."""
    began = time.perf_counter()
    await run()
    return time.perf_counter() - began


async def measure(line: str, rounds: int) -> tuple[Summary, Summary]:
    """Return the times of the sandbox alone, and of the tool."""
    alone, tooled = [], []
    async with ShellTool(LivePolicy(Locations.here(os.environ))) as tool:
        call = ShellCall(line)
        await tool.run(call)
        sandbox = tool._session.sandbox  # noqa: SLF001 - the very session that the tool uses
        for number in range(rounds):
            for turn in (0, 1):
                if turn == number % 2:
                    alone.append(await timed(lambda: sandbox.run(line)))
                else:
                    tooled.append(await timed(lambda: tool.run(call)))
    return Summary.of(alone), Summary.of(tooled)


def report(rounds: int) -> str:
    """Measure every line and return the table."""
    rows = []
    with workplace() as place:
        project = place.base / "project"
        (project / ".git").mkdir(parents=True)
        os.chdir(project)
        file = place.base / "home" / ".stockade" / "settings.json"
        file.parent.mkdir()
        file.write_text(json.dumps(SETTINGS))
        for name, line in LINES.items():
            alone, tooled = asyncio.run(measure(line, rounds))
            more = tooled.median - alone.median
            met = "yes" if more < TARGET else "NO"
            rows.append(
                [f"{name}: `{line.replace('|', chr(92) + '|')}`", str(alone), str(tooled), milliseconds(more), met]
            )
    header = ["line", "Sandbox.run", "ShellTool.run", "more", f"under {milliseconds(TARGET)} ms"]
    note = f"Median / 95th percentile in milliseconds of {rounds} rounds in turns, in one session.\n"
    return f"{render(header, rows)}\n\n{note}"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(namespace=Options())
    text = report(options.rounds)
    print(text)
    write(options.output, "Shell tool: above the sandbox alone", text)


if __name__ == "__main__":
    main()
