"""Programs of ``benchmarks/``, run from their command line to their file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def first_column(tmp_path: Path) -> Callable[..., list[str]]:
    """Run a program, and return the first cell of each line of the tables that it has written."""

    def run(program: str, *arguments: str) -> list[str]:
        output = tmp_path / "results.md"
        ran = subprocess.run(
            [sys.executable, BENCHMARKS / program, *arguments, "--output", output],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return [line.split("|")[1].strip() for line in output.read_text("utf-8").splitlines() if line.startswith("|")]

    return run
