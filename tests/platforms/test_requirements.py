from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.distribution import INSTALLERS
from stockade.platforms.requirements import (
    BWRAP,
    LINUX,
    Missing,
    Need,
    Requirement,
    find_program,
    install_command,
    missing,
    missing_here,
    requirements,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("requirement", "known", "root", "command"),
    [
        (BWRAP, "debian", True, "apt-get install -y bubblewrap"),
        (BWRAP, "debian", False, "sudo apt-get install -y bubblewrap"),
        (BWRAP, "fedora", False, "sudo dnf install -y bubblewrap"),
        (BWRAP, "gentoo", True, "emerge sys-apps/bubblewrap"),
        (BWRAP, "alpine", True, "apk add bubblewrap"),
        (BWRAP, "", False, "install bwrap with your system's package manager"),
    ],
)
def test_install_command(requirement: Requirement, known: str, root: bool, command: str) -> None:  # noqa: FBT001
    assert install_command(requirement, known, root=root) == command


def test_every_family_has_every_package() -> None:
    assert {requirement.program: set(requirement.packages) for requirement in LINUX} == {
        key: set(INSTALLERS) for key in ("bwrap",)
    }


def test_only_what_is_not_found_is_missing() -> None:
    found = missing(LINUX, lambda name: None if name == "bwrap" else "/usr/bin/x", "debian", root=True)
    assert found == (Missing(BWRAP, "apt-get install -y bubblewrap"),)


def test_nothing_has_to_be_installed_on_linux() -> None:
    assert {requirement.need for requirement in LINUX} == {Need.OPTIONAL}


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
    monkeypatch.setattr("stockade.platforms.requirements._ADMINISTRATION", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir("/")
    assert [one.requirement for one in missing_here()] == list(requirements())


def test_programs_of_administrators_are_found_off_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setattr("stockade.platforms.requirements._ADMINISTRATION", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "bwrap" not in [one.requirement.program for one in missing_here()]
