from __future__ import annotations

import subprocess
import sys

from stockade.platforms.macos.strays import MARK, end_strays, find_strays

LISTING = f"""
    1 /sbin/launchd
  200 sleep 60 PATH=/bin {MARK}=s-1 HOME=/Users/ann
  201 sleep 60 {MARK}=s-12
  202 grep {MARK}=s-1x
bad {MARK}=s-1
  203 {MARK}=s-1
"""


def test_strays_are_found_by_their_mark() -> None:
    assert find_strays(LISTING, "s-1") == (200, 203)
    assert find_strays("", "s-1") == ()


def test_strays_are_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    listings = iter([f"{process.pid} python {MARK}=m", f"{process.pid} python {MARK}=m", ""])
    assert end_strays("m", lambda: next(listings)) == 1
    assert process.wait(10) == -9


def test_it_ends_at_some_time() -> None:
    assert end_strays("m", lambda: f"999999999 python {MARK}=m") == 1
