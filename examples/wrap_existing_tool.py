"""A tool that runs commands by ``subprocess``, put behind walls by one line.

    python examples/wrap_existing_tool.py 'echo hello > greeting; cat greeting'

``existing_tool`` is what a framework has already, and stays as it is. ``wrap`` gives it other words to run: those run
the command inside the sandbox, from any program of this user, for as long as the sandbox is open.
"""

from __future__ import annotations

import subprocess
import sys

import stockade


def existing_tool(words: list[str]) -> str:
    """Run a command and return what it printed: anybody's tool, knowing nothing of walls."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - the point
    return f"{done.stdout}{done.stderr}[{done.returncode}]"


def main() -> None:
    """Run each argument as a line, outside the sandbox only in name."""
    with stockade.BlockingSandbox(stockade.load_policy()) as sandbox:
        for line in sys.argv[1:]:
            print(existing_tool([*sandbox.wrap(line).argv]))


if __name__ == "__main__":
    main()
