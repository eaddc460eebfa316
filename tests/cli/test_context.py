from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.cli.context import tilde

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Here


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [
        ("/h/me", "/h/me", "~"),
        ("/h/me/x", "/h/me", "~/x"),
        ("/h/mean", "/h/me", "/h/mean"),
        ("/x", "/", "/x"),
        ("/x\x1b[2J", "/h", "/x\\x1b[2J"),
    ],
)
def test_tilde(path: str, home: str, shown: str) -> None:
    assert tilde(path, home) == shown


def test_settings_named_on_the_command_line_must_exist(here: Here) -> None:
    result = here("status", "-s", str(here.home / "none.json"))
    assert result.status == 125
    assert "none.json" in result.err


def test_settings_named_on_the_command_line_count_most(here: Here) -> None:
    here.user({"sandbox": {"enabled": False}})
    file = here.write(here.home / "mine.json", {"sandbox": {"enabled": True}})
    assert here("status", "--json", "-s", str(file)).facts["enabled"] is True
    denied = here("list", "--json", "-s", str(file)).facts["may not write"]
    assert str(file) in [rule["rule"] for rule in denied]


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd '{gone}' && rmdir '{gone}' && exec '{sys.executable}' -m stockade status"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 125
    assert done.stderr.startswith("stockade: the working directory does not exist any more\n  hint: ")
