"""The demo is what a newcomer sees first: each of its scenes ends as it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "scripts" / "demo"


@pytest.mark.skipif(sys.platform != "linux", reason="its walls are those of Linux")
def test_every_scene_ends_as_it_says() -> None:
    done = subprocess.run([DEMO], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert "that should have ended" not in done.stdout
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
