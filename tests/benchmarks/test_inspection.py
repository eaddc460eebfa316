"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "inspection.py"


def test_what_an_inspection_costs(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--rounds", "1", "--repositories", "2", "--entries", "10", "--output", output],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() in output.read_text("utf-8")
    titles = [line.split("|")[1].strip() for line in ran.stdout.splitlines() if line.startswith("| forest")]
    assert len(titles) == len(("nothing", "a file", "a repository")) * len(("session", "once"))
