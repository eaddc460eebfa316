"""The program works from its command line to its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "tls_screen.py"


def test_every_kind_has_its_row(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--rounds", "1", "--output", output],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split("|")[1].strip() for line in output.read_text("utf-8").splitlines() if line.startswith("|")]
    assert rows[2:] == ["joined, not looked at", "joined, looked at", "a handshake in memory", "both together"]
