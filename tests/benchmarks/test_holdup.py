"""The program works from its command line to its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "holdup.py"


def test_every_attack_has_its_row(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--count", "5", "--output", output],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split("|")[1].strip() for line in output.read_text("utf-8").splitlines() if line.startswith("|")]
    assert [row for row in rows if row.startswith(("nothing", "links", "memory"))] == [
        "nothing",
        "links that lead up, made",
        "links that lead up, only looked at",
        "links that lead up and down, made",
        "links that lead up and down, only looked at",
        "links through deep directories, made",
        "links through deep directories, only looked at",
        "memory that changes",
    ]
