from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.terrain import EVERYTHING, Interest, Land
from stockade.placeholder import MARK

if TYPE_CHECKING:
    from pathlib import Path

LAND = Land()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir()
    (tmp_path / "F").touch()
    (tmp_path / "l").symlink_to("d")
    os.mkfifo(tmp_path / "p")
    os.mknod(tmp_path / "held", stat.S_IFSOCK)
    return tmp_path


@pytest.mark.parametrize(
    ("interest", "entries"),
    [
        pytest.param(
            EVERYTHING, (("F", "other"), ("d", "directory"), ("l", "link"), ("p", "other")), id="all-but-placeholders"
        ),
        pytest.param(Interest(frozenset({"f", "held"})), (("F", "other"),), id="names-without-case"),
        pytest.param(Interest(directories=True), (("d", "directory"),), id="directories"),
        pytest.param(Interest(), (), id="nothing"),
    ],
)
def test_entries(top: Path, interest: Interest, entries: object) -> None:
    assert LAND.entries(str(top), interest) == entries


def test_a_placeholder_is_not_there(top: Path) -> None:
    assert (LAND.exists(f"{top}/held"), LAND.exists(f"{top}/F"), LAND.exists(f"{top}/l")) == (False, True, True)
    assert LAND.names(str(top)) == ("F", "d", "l", "p")


@pytest.mark.parametrize("path", ["F", "no", "a\0"])
def test_what_is_no_directory_has_no_entries(top: Path, path: str) -> None:
    assert LAND.entries(f"{top}/{path}", EVERYTHING) == ()
    assert not LAND.exists(f"{top}/no")


def test_an_empty_directory_or_file_that_only_keeps_its_name_is_not_there(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".bashrc").touch()
    land = Land()
    assert land.names(str(tmp_path)) == (".bashrc", ".vscode")
    for name in (".vscode", ".bashrc"):
        os.utime(tmp_path / name, ns=(MARK, MARK))
    assert land.names(str(tmp_path)) == ()
    assert not land.is_directory(f"{tmp_path}/.vscode")
    assert not any(land.exists(f"{tmp_path}/{name}") for name in (".vscode", ".bashrc"))
    assert land.kept == {f"{tmp_path}/.vscode"}
    (tmp_path / ".vscode" / "x").touch()
    os.utime(tmp_path / ".vscode", ns=(MARK, MARK))
    assert land.is_directory(f"{tmp_path}/.vscode")
