from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from stockade.platforms.linux.cleanup import clean_up

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, signal, sys
from stockade.platforms.linux import placeholders
from stockade.platforms.temporary import TemporaryDirectory
made = TemporaryDirectory.make({"TMPDIR": sys.argv[1]})
lease = placeholders.acquire([sys.argv[1] + "/.bashrc"])
print(made.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_session_left_is_removed(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    done = subprocess.run([sys.executable, "-c", KILLED, root], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    temporary = done.stdout.strip()
    assert os.path.isdir(temporary)
    assert (root / ".bashrc").lstat()
    for _ in range(2):
        clean_up(os.path.dirname(temporary))
        assert not os.path.exists(temporary)
        assert not os.path.lexists(root / ".bashrc")


def test_nothing_to_do_anywhere() -> None:
    clean_up("/nonexistent")
