"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "launch.py"


def _launch(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    output, cache = tmp_path / "results.md", tmp_path / "cache"
    return subprocess.run(
        [sys.executable, PROGRAM, "--rounds", "2", "--output", output, "--cache", cache, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_bare_rows(tmp_path: Path) -> None:
    ran = _launch(tmp_path, "--only", "bare,bare-asyncio")
    assert ran.returncode == 0, ran.stderr
    written = (tmp_path / "results.md").read_text("utf-8")
    assert ran.stdout.strip() in written
    rows = [line for line in written.splitlines() if line.startswith("| bare")]
    assert [row.split("|")[1].strip() for row in rows] == [
        "bare `bash -c true`, posix_spawn",
        "bare `bash -c true`, asyncio, output captured",
    ]
    assert all(len(re.findall(r"[\d.]+ / [\d.]+", row)) == 3 for row in rows)
    assert all(row.endswith(" no |") for row in rows), "nothing protects a bare command"
    assert "- srt: left out on request" in written
    assert str(tmp_path) not in written


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    ran = _launch(tmp_path, "--only", "bear")
    assert ran.returncode == 2
    assert "no such contender: bear" in ran.stderr
