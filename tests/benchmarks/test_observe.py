"""The program works from its command line to its file; how fast anything is, no test asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "observe.py"


def _observe(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, "--rounds", "1", "--size", "30", "--output", tmp_path / "results.md", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("make") is None or shutil.which("cc") is None, reason="no C compiler")
def test_work_is_done_in_every_way(tmp_path: Path) -> None:
    ran = _observe(tmp_path, "--only", "tar,make")
    assert ran.returncode == 0, ran.stderr
    written = (tmp_path / "results.md").read_text("utf-8")
    assert ran.stdout.strip() in written
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written.splitlines() if line.startswith("| ")]
    kinds = [(row[0], row[1]) for row in rows if row[0] in {"tar", "make"}]
    assert kinds == [("tar", "disk"), ("tar", "tmpfs"), ("make", "disk"), ("make", "tmpfs")]
    assert not any("-" in row[2:6] for row in rows if row[0] in {"tar", "make"})
    assert "- npm ci: left out on request" in written
    assert str(tmp_path) not in written


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    ran = _observe(tmp_path, "--only", "tarr")
    assert ran.returncode == 2
    assert "no such work: tarr" in ran.stderr
