from __future__ import annotations

import os
from errno import EACCES, ENOENT
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import glance

if TYPE_CHECKING:
    from pathlib import Path


def test_mounts_are_told_from_directories(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path)
    assert [glance.is_mount(each) for each in (b"/proc", path, path + b"/missing")] == [True, False, False]
    assert glance.mount_of(path) not in {0, glance.mount_of(b"/proc")}
    assert glance.mount_of(path + b"/missing") == 0


def test_nothing_is_told_from_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    path = os.fsencode(tmp_path)
    found = [glance.is_missing(path + name) for name in (b"", b"/link", b"/nowhere", b"/link/nowhere")]
    assert found == [False, False, True, True]


def test_a_file_is_told_from_others_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    path = os.fsencode(tmp_path)
    descriptor = os.open(path, os.O_PATH)
    found = glance.identity(path)
    assert [glance.identity(each) for each in (path + b"/link", b"/proc/self/fd/%d" % descriptor)] == [found, found]
    os.close(descriptor)
    assert len({found, glance.identity(b"/"), glance.identity(b"/proc"), b""}) == 4
    assert glance.identity(path + b"/missing") == b""


def test_writing_is_possible_or_not(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path)
    assert glance.error_of_writing(path, enter=True) == 0
    assert glance.error_of_writing(path + b"/missing") == ENOENT
    tmp_path.chmod(0o500)
    assert glance.error_of_writing(path) == (0 if os.geteuid() == 0 else EACCES)
    tmp_path.chmod(0o700)
    assert not glance.is_read_only(path)
    assert glance.is_read_only(path + b"/missing")


@pytest.mark.parametrize("removed", [False, True])
def test_what_is_open_has_a_path_until_it_is_removed(tmp_path: Path, *, removed: bool) -> None:
    file = tmp_path / "file"
    file.touch()
    descriptor = os.open(file, os.O_PATH)
    if removed:
        file.unlink()
    assert glance.real_path(b"/proc/self/fd/%d" % descriptor) == (b"" if removed else os.fsencode(file))
    assert not glance.is_of_processes(descriptor)
    os.close(descriptor)
    descriptor = os.open("/proc/self/status", os.O_PATH)
    assert glance.is_of_processes(descriptor)
    os.close(descriptor)
