"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "network.py"


def _network(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    output, cache = tmp_path / "results.md", tmp_path / "cache"
    small = ("--rounds", "2", "--size", "1000000", "--seconds", "0.1", "--requests", "20")
    return subprocess.run(
        [sys.executable, PROGRAM, *small, "--output", output, "--cache", cache, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_direct_and_through_the_proxy(tmp_path: Path) -> None:
    ran = _network(tmp_path, "--only", "direct,proxy")
    assert ran.returncode == 0, ran.stderr
    written = (tmp_path / "results.md").read_text("utf-8")
    assert ran.stdout.strip() in written
    rows = [line.split("|")[1:-1] for line in written.splitlines() if line.startswith(("| direct", "| **stockade"))]
    assert [(row[0].strip(), len(row)) for row in rows] == [
        ("direct", 6),
        ("**stockade's proxy alone**", 6),
        ("direct", 7),
        ("**stockade's proxy alone**", 7),
    ]
    assert not any(cell.strip() == "-" for row in (rows[1], rows[3]) for cell in row)
    assert "- srt: left out on request" in written
    assert str(tmp_path) not in written


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    ran = _network(tmp_path, "--only", "dirct")
    assert ran.returncode == 2
    assert "no such way: dirct" in ran.stderr
