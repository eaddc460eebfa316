"""Modes set for this very process, from its own ``/proc``; ``tests/enforcement/test_privilege.py`` has the walls."""

from __future__ import annotations

import ctypes
import os
from errno import EINVAL, ENOENT, EPERM
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.calls import CHANGES
from stockade.platforms.linux.directory_mode import change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODE = 0o2750
HERE = 0xFFFF_FF9C  # AT_FDCWD
EMPTY_PATH, NO_FOLLOW = 0x1000, 0x100


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "to-file").symlink_to("file")
    monkeypatch.chdir("/proc")
    return tmp_path


def _set(name: str, *arguments: object, still_waits: Callable[[], bool] = lambda: True) -> int:
    texts = [ctypes.create_string_buffer(os.fsencode(str(word))) for word in arguments if not isinstance(word, int)]
    addresses = iter([ctypes.addressof(text) for text in texts])
    words = [word if isinstance(word, int) else next(addresses) for word in arguments]
    padded = tuple([*words, 0, 0, 0, 0, 0, 0][:6])
    return change(os.getpid(), CHANGES[name][0], MODE, padded, still_waits)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize(
    ("name", "end", "error"),
    [
        pytest.param("folder", "folder", 0, id="a directory"),
        pytest.param("to-folder", "folder", 0, id="a link to one"),
        pytest.param("folder/../folder/.", "folder", 0, id="dots"),
        pytest.param("file", "file", EPERM, id="a file"),
        pytest.param("to-file", "file", EPERM, id="a link to one file"),
        pytest.param("missing", "folder", ENOENT, id="nothing"),
    ],
)
def test_only_directories_get_the_bit(place: Path, name: str, end: str, error: int) -> None:
    for call, arguments in (("chmod", ()), ("fchmodat", (HERE,)), ("fchmodat2", (HERE,))):
        (place / "folder").chmod(0o700)
        assert _set(call, *arguments, place / name, MODE) == error
        assert _mode(place / end) == (MODE if not error else 0o600 if end == "file" else 0o700)


@pytest.mark.parametrize(("name", "error"), [("folder", 0), ("file", EPERM)])
def test_an_open_file_is_looked_at_too(place: Path, name: str, error: int) -> None:
    descriptor = os.open(place / name, os.O_RDONLY)
    assert _set("fchmod", descriptor, MODE) == error
    assert _set("fchmodat2", descriptor, "", MODE, EMPTY_PATH) == error
    assert _set("fchmodat2", descriptor, "", MODE, 0) == ENOENT
    os.close(descriptor)
    assert bool(_mode(place / name) & 0o2000) is not bool(error)


@pytest.mark.parametrize(
    ("flags", "error"), [pytest.param(NO_FOLLOW, EPERM, id="the link itself"), pytest.param(1, EINVAL, id="unknown")]
)
def test_flags_mean_what_they_mean_to_the_kernel(place: Path, flags: int, error: int) -> None:
    assert _set("fchmodat2", HERE, place / "to-folder", MODE, flags) == error
    assert _mode(place / "folder") == 0o700


def test_nothing_is_done_for_a_caller_that_is_gone(place: Path) -> None:
    assert _set("chmod", place / "folder", MODE, still_waits=lambda: False) == EPERM
    assert _mode(place / "folder") == 0o700


def test_nothing_is_done_for_a_caller_that_is_another_user(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert _set("chmod", place / "folder", MODE) == EPERM
