"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "shell_tool.py"


def test_the_tool_against_the_sandbox_alone(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--rounds", "2", "--output", output],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() in output.read_text("utf-8")
    assert [line.split(":")[0] for line in ran.stdout.splitlines()[2:6]] == [
        "| a builtin",
        "| a program",
        "| a compound line",
        "| a move",
    ]
