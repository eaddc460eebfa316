"""The program works from its command line to its file, and the proxy has closed everything at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "siege.py"


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel shows what the proxy holds to root only")
def test_a_short_siege_leaves_nothing_open(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--seconds", "6", "--output", output],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 more descriptors were open than before the first" in output.read_text("utf-8")
