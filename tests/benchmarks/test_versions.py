"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "versions.py"


def _compare(tmp_path: Path, other: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(PROGRAM), str(other), "--rounds", "1", "--sizes", "3,7"]
    words += ["--output", str(tmp_path / "results.md")]
    return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_checkout_against_itself(tmp_path: Path) -> None:
    ran = _compare(tmp_path, ROOT)
    assert ran.returncode == 0, ran.stderr
    written = (tmp_path / "results.md").read_text("utf-8")
    assert ran.stdout.strip() in written
    rows = [line for line in written.splitlines() if line.startswith("|") and "this checkout" in line]
    assert len(rows) == 2
    assert all(len(re.findall(r"[\d.]+ / [\d.]+ \([\d.]+x\)", row)) == 2 for row in rows), rows


def test_another_directory_is_refused(tmp_path: Path) -> None:
    ran = _compare(tmp_path, tmp_path)
    assert ran.returncode == 2
    assert "is no checkout of Stockade" in ran.stderr
