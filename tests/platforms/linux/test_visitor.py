"""The program itself; ``tests/sandbox/test_wrapped.py`` has it in the hands of its users."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.door import Door
from stockade.platforms.linux.jail import Jail, Request
from stockade.platforms.linux.keeper_process import package_root

if TYPE_CHECKING:
    from pathlib import Path

OVER = b"stockade: the session of this command is over\n  hint: start a new session and wrap the command again\n"


def test_it_loads_little_for_it_is_started_once_per_command() -> None:
    program = "import sys; from stockade.platforms.linux import visitor; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({package_root()!r}); {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"typing", "signal", "socket", "ctypes", "re", "enum", "subprocess", "stockade.value", "stockade.errors"}
    assert set(ran.stdout.split()) & heavy == set()


@pytest.mark.parametrize("directory", ["/nonexistent", "/etc"])
def test_a_door_that_is_not_there(directory: str, tmp_path: Path, jail: Jail) -> None:
    (tmp_path / "door").mkdir()
    door = Door(f"{tmp_path}/door/stockade")
    *words, _, order = door.order(Request(("true",), {}, "/"), jail)
    door.close()
    ran = subprocess.run([*words, directory, order], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (125, b"", OVER)


def test_an_answer_that_nobody_can_be_told(tmp_path: Path, jail: Jail) -> None:
    """With standard error closed there is still a status."""
    (tmp_path / "door").mkdir()
    door = Door(f"{tmp_path}/door/stockade")
    words = door.order(Request(("no-such-program",), {}, "/"), jail)
    door.lead_to(jail)
    ran = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *words], env=dict(os.environ), check=False)
    assert ran.returncode == 127
    door.close()
