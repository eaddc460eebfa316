from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.requirements import (
    LINUX,
    Missing,
    Need,
    family,
    find_program,
    install_command,
    missing,
    missing_here,
    requirements,
)

if TYPE_CHECKING:
    from pathlib import Path

BWRAP = LINUX[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ID=debian\n", "debian", id="debian"),
        pytest.param('ID=ubuntu\nID_LIKE="debian"\n', "debian", id="ubuntu"),
        pytest.param('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora", id="rocky"),
        pytest.param('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "suse", id="opensuse"),
        pytest.param("ID=arch", "arch", id="arch"),
        pytest.param("ID=plan9\n", "", id="unknown"),
        pytest.param("", "", id="empty"),
        pytest.param("nonsense", "", id="nonsense"),
    ],
)
def test_family(text: str, expected: str) -> None:
    assert family(text) == expected


@pytest.mark.parametrize(
    ("known", "root", "command"),
    [
        ("debian", True, "apt-get install -y bubblewrap"),
        ("debian", False, "sudo apt-get install -y bubblewrap"),
        ("fedora", False, "sudo dnf install -y bubblewrap"),
        ("", False, "install bwrap with your system's package manager"),
    ],
)
def test_install_command(known: str, root: bool, command: str) -> None:  # noqa: FBT001
    assert install_command(BWRAP, known, root=root) == command


def test_only_what_is_not_found_is_missing() -> None:
    found = missing(LINUX, lambda name: None if name == "bwrap" else "/usr/bin/x", "debian", root=True)
    assert found == (Missing(BWRAP, "apt-get install -y bubblewrap"),)
    assert BWRAP.need is Need.REQUIRED


def test_platforms() -> None:
    assert requirements("linux") == LINUX
    assert requirements("win32") == ()


def test_find_program_takes_only_what_can_be_run(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    (tmp_path / "folder").mkdir()
    assert find_program("tool", str(tmp_path)) is None
    (tmp_path / "tool").chmod(0o755)
    assert find_program("tool", f"/nonexistent{os.pathsep}{tmp_path}") == str(tmp_path / "tool")
    assert find_program("folder", str(tmp_path)) is None


def test_missing_here_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir("/")
    assert [one.requirement for one in missing_here()] == list(requirements())
