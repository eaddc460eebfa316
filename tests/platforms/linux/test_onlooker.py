"""Judged without walls: then nothing is refused, but what a descriptor of the host shows otherwise.

What walls refuse is proved in ``tests/enforcement/test_observed_writes.py``.
"""

from __future__ import annotations

import ctypes
import os
from errno import EACCES
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import glance
from stockade.platforms.linux.calls import CHANGES, CREATE, DELETE, RENAME
from stockade.platforms.linux.onlooker import Onlooker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AT_FDCWD = 0xFFFF_FF9C


@pytest.fixture
def onlooker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Onlooker]:
    (tmp_path / "kept").touch()
    monkeypatch.chdir("/proc")
    root = os.open("/", os.O_PATH)
    yield Onlooker(root, [os.fsencode(tmp_path.resolve() / "kept")])
    os.close(root)


@pytest.mark.parametrize("name", ["openat", "mkdirat", "unlinkat", "fchmodat", "utimensat", "renameat2", "linkat"])
@pytest.mark.parametrize("target", ["new", "file", "missing/deeper", "link", "/proc/self/comm", ""])
def test_without_walls_nothing_is_refused(onlooker: Onlooker, tmp_path: Path, name: str, target: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    text = ctypes.create_string_buffer(os.fsencode(tmp_path / target) if target else b"")
    address = ctypes.addressof(text)
    arguments = [AT_FDCWD, address, os.O_WRONLY | os.O_CREAT, 0, 0, 0]
    if len(CHANGES[name]) > 1 or name == "linkat":
        arguments[2:4] = [AT_FDCWD, address]
    assert onlooker.refusal(CHANGES[name], os.getpid(), tuple(arguments)) is None


def test_a_name_that_is_kept_missing_cannot_be_made(onlooker: Onlooker, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path.resolve() / "kept")
    assert onlooker.walked(CREATE, os.getpid(), b"cwd", path) == (CREATE, path)
    assert onlooker.of_opening(os.getpid(), b"cwd", path, os.O_CREAT | os.O_WRONLY) == (CREATE, path)
    assert onlooker.of_opening(os.getpid(), b"cwd", path, os.O_WRONLY) is None


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, EACCES),
        (os.O_RDWR, EACCES),
        (os.O_RDONLY | os.O_CREAT, EACCES),
        (os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0),
        (os.O_RDONLY | os.O_DIRECTORY, 0),
    ],
)
def test_a_file_where_a_directory_keeps_the_name(onlooker: Onlooker, tmp_path: Path, flags: int, error: int) -> None:
    (tmp_path / "kept").unlink()
    (tmp_path / "kept").mkdir()
    onlooker.of_opening(os.getpid(), b"cwd", os.fsencode(tmp_path.resolve() / "kept"), flags)
    assert onlooker.error == error


def test_any_other_directory_is_left_to_the_kernel(onlooker: Onlooker, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    onlooker.of_opening(os.getpid(), b"cwd", os.fsencode(tmp_path.resolve() / "other"), os.O_WRONLY | os.O_CREAT)
    assert onlooker.error == 0


def test_in_a_directory_that_keeps_a_name_nothing_is_made_or_removed(
    onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glance, "is_mount", lambda path: path.endswith(b"/."))
    (tmp_path / "kept").unlink()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "there").touch()
    kept, own = os.fsencode(tmp_path.resolve() / "kept"), os.getpid()
    tries = [
        (onlooker.walked(CREATE, own, b"cwd", kept + b"/new"), (CREATE, kept + b"/new")),
        (onlooker.of_opening(own, b"cwd", kept + b"/new", os.O_CREAT | os.O_WRONLY), (CREATE, kept + b"/new")),
        (onlooker.walked(DELETE, own, b"cwd", kept + b"/there"), (DELETE, kept)),
        (onlooker.of_rename(own, (b"cwd", kept + b"/there"), (b"cwd", kept + b"2")), (RENAME, kept + b"/there")),
    ]
    assert [told for told, _ in tries] == [expected for _, expected in tries]


@pytest.mark.parametrize("covered", [pytest.param(True, id="covered"), pytest.param(False, id="the host's by now")])
@pytest.mark.parametrize(("does", "name"), [(CREATE, "new"), (DELETE, "there")])
def test_who_changes_such_a_directory_is_not_sent_to_look_for_space(
    onlooker: Onlooker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: bytes, name: str, *, covered: bool
) -> None:
    monkeypatch.setattr(glance, "is_mount", lambda path: covered and path.endswith(b"/."))
    (tmp_path / "kept").unlink()
    for folder, error in (("other", 0), ("kept", EACCES if covered else 0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "there").touch()
        onlooker.walked(does, os.getpid(), b"cwd", os.fsencode(tmp_path.resolve() / folder / name))
        assert onlooker.error == error
