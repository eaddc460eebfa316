from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.settings.content import Content
from stockade.settings.ownership import is_strangers, managed_warnings

if TYPE_CHECKING:
    from pathlib import Path

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files that are root's")


def _is_warned(place: Path, owner: int, mode: int) -> bool:
    warnings = managed_warnings(str(place / "m.json"), Content(b"", owner, mode))
    assert all(warning.startswith(f"{place}/m.json is managed, but users besides root") for warning in warnings)
    return bool(warnings)


@ROOT_ONLY
@pytest.mark.parametrize(
    ("owner", "mode", "place_mode", "expected"),
    [
        pytest.param(0, 0o644, 0o755, False, id="root's alone"),
        pytest.param(65534, 0o644, 0o755, False, id="root seen from a user namespace"),
        pytest.param(1000, 0o644, 0o755, True, id="a user's file"),
        pytest.param(0, 0o664, 0o755, True, id="group-writable"),
        pytest.param(0, 0o646, 0o755, True, id="world-writable"),
        pytest.param(0, 0o644, 0o777, True, id="in a directory that all can write"),
    ],
)
def test_who_else_could_change_it(tmp_path: Path, owner: int, mode: int, place_mode: int, *, expected: bool) -> None:
    tmp_path.chmod(place_mode)
    assert _is_warned(tmp_path, owner, mode) is expected


def test_a_user_who_can_write_it_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "m.json").touch()
    assert _is_warned(tmp_path, 0, 0o644)


def test_a_directory_that_is_gone_is_no_concern(tmp_path: Path) -> None:
    assert not _is_warned(tmp_path / "gone", 0, 0o644)


@pytest.mark.parametrize(
    ("place", "folder", "file", "strange"),
    [
        pytest.param(0o755, 0o755, 0o644, False, id="in a directory of its own"),
        pytest.param(0o1777, 0o755, 0o644, False, id="in a directory of one's own that a command opened"),
        pytest.param(0o755, 0o777, 0o644, False, id="in a folder of that user that a command opened"),
        pytest.param(0o755, 0o755, 0o666, True, id="a file that everybody may write"),
        pytest.param(0o775, 0o775, 0o664, False, id="a group is no stranger"),
    ],
)
def test_a_strangers_file_is_one_that_anybody_could_have_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, folder: int, file: int, *, strange: bool
) -> None:
    mine = tmp_path / ".stockade" / "settings.json"
    mine.parent.mkdir()
    mine.write_text("{}")
    for path, mode in ((mine, file), (mine.parent, folder), (tmp_path, place)):
        path.chmod(mode)
    assert not is_strangers(str(mine)), "one's own file counts whatever the modes are"
    if os.geteuid() == 0:
        os.chown(mine, 4242, 4242)
        os.chown(mine.parent, 4242, 4242)
    else:
        look, stat_of = os.lstat, os.stat
        theirs = {str(mine), str(mine.parent)}

        def given(found: os.stat_result, name: str) -> os.stat_result:
            return os.stat_result((*found[:4], 4242, *found[5:])) if name in theirs else found

        monkeypatch.setattr(os, "lstat", lambda name: given(look(name), name))
        monkeypatch.setattr(os, "stat", lambda name: given(stat_of(name), name))
    assert is_strangers(str(mine)) is strange


@pytest.mark.parametrize("me", [0, 1000, 1234, 4242])
@pytest.mark.parametrize(("place", "owner"), [("/tmp", 0), ("/srv/shared", 0), ("/srv/shared", 1234)])
def test_where_everybody_may_put_things_a_stranger_is_one(
    monkeypatch: pytest.MonkeyPatch, me: int, place: str, owner: int
) -> None:
    def look(name: str) -> os.stat_result:
        mode, uid = (stat.S_IFDIR | 0o1777, owner) if name == place else (stat.S_IFDIR | 0o755, 4242)
        return os.stat_result((mode, 1, 1, 1, uid, 0, 0, 0, 0, 0))

    monkeypatch.setattr(os, "lstat", look)
    monkeypatch.setattr(os, "stat", look)
    monkeypatch.setattr(os, "geteuid", lambda: me)
    own = me == owner and place != "/tmp"
    assert is_strangers(f"{place}/.stockade/settings.json") is (me != 4242 and not own)


def test_what_is_not_there_is_no_strangers(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert not is_strangers(str(tmp_path / ".stockade" / "settings.json"))
