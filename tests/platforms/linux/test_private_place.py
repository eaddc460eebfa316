"""The layers, in namespaces of their own; what commands see of them is in ``tests/enforcement/test_private_tmp.py``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import identity, kernel, private_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _inside(act: Callable[[], bytes]) -> bytes:
    """Do something in new user and mount namespaces; return what it gives, or the error."""
    ours, theirs = os.pipe()
    uid, gid = os.geteuid(), os.getegid()
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
            identity.write_maps(b"self", b"0 %d 1" % uid, b"0 %d 1" % gid)
            os.write(theirs, act())
        except BaseException as error:  # noqa: BLE001 - told, whatever it is
            os.write(theirs, repr(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    folder = tmp_path / "with: a \\ in it"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "file").write_text("host")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "layers"
    folder.mkdir()
    return folder


def _write(mount: int) -> bytes:
    file = os.open("file", os.O_RDWR | os.O_TRUNC, dir_fd=mount)
    os.write(file, b"mine")
    os.close(file)
    return oct(os.fstat(mount).st_mode).encode()


def test_what_is_written_lies_in_the_layer_and_the_directory_stays_as_it_was(lower: Path, source: Path) -> None:
    def act() -> bytes:
        mount, why = private_place.make(os.fsencode(lower), os.fsencode(source))
        return _write(mount) + why

    assert _inside(act) == b"0o41777"
    assert (lower / "file").read_text() == "host"
    assert (source / "upper0" / "file").read_text() == "mine"


def test_layers_are_never_used_twice(lower: Path, source: Path) -> None:
    (source / "work0").mkdir()

    def act() -> bytes:
        mount, why = private_place.make(os.fsencode(lower), os.fsencode(source))
        return _write(mount) + why

    assert _inside(act) == b"0o41777"
    assert [path.name for path in (source / "upper1").iterdir()] == ["file"]


def test_where_the_disk_cannot_hold_the_layer_memory_does(lower: Path, tmp_path: Path) -> None:
    def act() -> bytes:
        mount, why = private_place.make(os.fsencode(lower), os.fsencode(tmp_path / "missing"))
        return _write(mount) + why

    assert _inside(act) == b"0o41777"
    assert (lower / "file").read_text() == "host"


def test_what_lies_under_a_mount_is_not_shown(lower: Path, source: Path) -> None:
    (lower / "covered").mkdir()

    def act() -> bytes:
        kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, 0, kernel.MS_PRIVATE)
        cover = kernel.new_filesystem(b"tmpfs")
        kernel.move_mount(cover, kernel.AT_FDCWD, os.fsencode(lower / "covered"))
        # Only what a namespace above has mounted is locked.
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
        identity.write_maps(b"self", b"0 0 1", b"0 0 1")
        mount, why = private_place.make(os.fsencode(lower), os.fsencode(source))
        return b"%d %b" % (mount, why)

    point = os.fsencode(lower / "covered").replace(b"\\", rb"\134").replace(b" ", rb"\040")
    assert _inside(act) == b"-1 something is mounted at " + point


def test_a_copy_shows_the_same_without_what_was_laid_on_it(lower: Path, source: Path) -> None:
    (lower / "covered").mkdir()
    (lower / "covered" / "inner").touch()

    def act() -> bytes:
        kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, 0, kernel.MS_PRIVATE)
        target = os.fsencode(lower)
        mount, _ = private_place.make(target, os.fsencode(source))
        kernel.move_mount(mount, kernel.AT_FDCWD, target)
        kernel.move_mount(kernel.new_filesystem(b"tmpfs"), kernel.AT_FDCWD, target + b"/covered")
        _write(os.open(target, os.O_RDONLY))
        copy = private_place.copy(target)
        file = os.open("file", os.O_RDONLY, dir_fd=copy)
        inner = os.listdir(os.open("covered", os.O_RDONLY, dir_fd=copy))
        return b"%b %b %d" % (os.read(file, 9), inner[0].encode(), len(os.listdir(target + b"/covered")))

    assert _inside(act) == b"mine inner 0"
