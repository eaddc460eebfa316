"""A quick "yes" is right; whatever is not certain is left to the onlooker."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import pytest

from stockade.platforms.linux.calls import CHANGES
from stockade.platforms.linux.quick import quick

CWD = 0xFFFF_FF9C
CREATING = os.O_WRONLY | os.O_CREAT
EXCLUSIVELY = CREATING | os.O_EXCL
NUMBERS = {name: number for number, name in enumerate(CHANGES)}
QUICK = quick({NUMBERS[name]: uses for name, uses in CHANGES.items()}, frozenset((b"absent",)))


def _possible(name: str, *arguments: int | bytes) -> bool:
    texts = [ctypes.create_string_buffer(each) if isinstance(each, bytes) else each for each in arguments]
    words = [each if isinstance(each, int) else ctypes.addressof(each) for each in texts]
    words += [0] * (6 - len(words))
    try:
        return QUICK[NUMBERS[name]](os.getpid(), (0, os.getpid(), 0, NUMBERS[name], 0, 0, *words))
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/nowhere/at/all")
    monkeypatch.chdir("/proc")
    return os.fsencode(tmp_path)


@pytest.mark.parametrize(
    ("name", "path", "flags", "expected"),
    [
        pytest.param("openat", b"file", os.O_WRONLY, True, id="what is there"),
        pytest.param("openat", b"new", CREATING, True, id="what is made"),
        pytest.param("openat", b"new", EXCLUSIVELY, True, id="what is made exclusively"),
        pytest.param("openat", b"new", os.O_WRONLY, False, id="what is missing"),
        pytest.param("openat", b"link", CREATING, False, id="a link to nowhere"),
        pytest.param("openat", b"link", EXCLUSIVELY, True, id="a link to nowhere, exclusively"),
        pytest.param("openat", b"absent", CREATING, False, id="what is kept missing"),
        pytest.param("openat", b"missing/new", CREATING, False, id="in a missing directory"),
        pytest.param("mkdirat", b"new", 0, True, id="a directory"),
        pytest.param("mkdirat", b"new/", 0, True, id="a directory with a slash"),
        pytest.param("mkdirat", b"file", 0, True, id="a directory that is there"),
        pytest.param("mkdirat", b"absent", 0, False, id="a directory that is kept missing"),
        pytest.param("mkdirat", b"missing/new", 0, True, id="a directory in a missing one"),
        pytest.param("mkdirat", b"link/new", 0, False, id="a directory behind a link to nowhere"),
        pytest.param("unlinkat", b"file", 0, True, id="removal"),
        pytest.param("unlinkat", b"absent/file", 0, False, id="removal from a directory that is kept missing"),
        pytest.param("unlinkat", b"missing/file", 0, False, id="removal from a missing directory"),
        pytest.param("fchmodat", b"file", 0, True, id="mode"),
        pytest.param("fchmodat", b"missing", 0, False, id="mode of what is missing"),
        pytest.param("utimensat", b"", 0, False, id="no name"),
    ],
)
def test_what_is_certain(place: bytes, name: str, path: bytes, flags: int, *, expected: bool) -> None:
    directory = os.open(place, os.O_RDONLY)
    try:
        assert _possible(name, directory, path, flags) is (expected or (name, path) == ("utimensat", b""))
    finally:
        os.close(directory)
    assert _possible(name, CWD, path and place + b"/" + path, flags) is expected


@pytest.mark.parametrize(
    "path", [b"/proc/self/comm", b"/dev/new", b"/dev/fd/new", b"//proc/missing/new", b"/./proc/missing/new"]
)
@pytest.mark.parametrize("name", ["mkdirat", "unlinkat", "fchmodat"])
def test_what_is_the_callers_own_is_looked_at(name: str, path: bytes) -> None:
    assert not _possible(name, CWD, path)


@pytest.mark.parametrize("path", [b"/new", b"//new", b"/proc/new"])
def test_what_cannot_be_made_at_the_root_is_looked_at(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert not _possible("mkdir", path)


def test_an_open_file_by_its_name_among_the_callers_own(place: bytes) -> None:
    here, closed = os.open(place, os.O_RDONLY), os.open(place, os.O_RDONLY)
    os.close(closed)
    try:
        assert _possible("chmod", b"/proc/self/fd/%d" % here)
        assert not _possible("chmod", b"/proc/self/fd/%d" % closed)
        assert not _possible("mkdir", b"/proc/self/fd/%d/new" % here)
        assert not _possible("chmod", b"/proc/self/fd/")
        assert not _possible("chmod", b"/proc/self/fd/../comm")
    finally:
        os.close(here)


def test_the_callers_own_memory_is_looked_at_where_the_caller_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        assert _possible("mkdir", b"%b/new" % os.fsencode(folder))
        assert _possible("open", b"%b/new" % os.fsencode(folder), CREATING)
        assert not _possible("open", b"%b/new" % os.fsencode(folder), os.O_WRONLY)
    finally:
        folder.rmdir()


def test_a_mount_is_not_moved_quickly(place: bytes) -> None:
    assert _possible("renameat", CWD, place + b"/file", CWD, place + b"/new")
    assert not _possible("renameat", CWD, place + b"/file", CWD, b"/sys")
    assert not _possible("rename", b"/sys", place + b"/new")


def test_a_descriptor(place: bytes) -> None:
    descriptor = os.open(place + b"/file", os.O_RDONLY)
    try:
        assert _possible("fchmod", descriptor)
    finally:
        os.close(descriptor)
    assert not _possible("fchmod", descriptor)
