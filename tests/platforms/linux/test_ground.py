from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import ground

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY, FILE, NOTHING = stat.S_IFDIR, stat.S_IFREG, 0


def _make(top: Path, target: Path, kind: int) -> None:
    ground.make(os.fsencode(top), os.fsencode(target), kind)


@pytest.mark.parametrize("kind", [DIRECTORY, FILE, NOTHING])
def test_what_is_missing_is_made_with_all_above_it(tmp_path: Path, kind: int) -> None:
    target = tmp_path / "a" / "b" / "c"
    _make(tmp_path, target, kind)
    assert target.is_dir() if kind == DIRECTORY else (target.is_file() and not target.stat().st_mode & 0o777)


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "f").write_text("kept")
    _make(tmp_path, tmp_path / "d", DIRECTORY)
    _make(tmp_path, tmp_path / "d" / "f", FILE)
    assert (tmp_path / "d" / "f").read_text() == "kept"
    assert (tmp_path / "d" / "e").is_dir()


@pytest.mark.parametrize("kind", [DIRECTORY, FILE])
def test_a_link_goes_and_is_never_followed(tmp_path: Path, kind: int) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (top / "last").symlink_to(outside)
    (top / "way").symlink_to(outside)
    _make(top, top / "last", kind)
    _make(top, top / "way" / "deep", kind)
    assert not (top / "last").is_symlink()
    assert not (top / "way").is_symlink()
    assert list(outside.iterdir()) == []


def test_a_file_makes_room_for_a_directory_and_an_empty_directory_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    _make(tmp_path, tmp_path / "file" / "deep", DIRECTORY)
    _make(tmp_path, tmp_path / "folder", FILE)
    assert (tmp_path / "file" / "deep").is_dir()
    assert (tmp_path / "folder").is_file()


def test_a_full_directory_where_a_file_must_be_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "folder" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="not empty") as caught:
        _make(tmp_path, tmp_path / "folder", FILE)
    assert caught.value.filename == os.fsencode(tmp_path / "folder")
