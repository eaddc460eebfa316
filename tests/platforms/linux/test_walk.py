"""Walks in the view of this very process, from its own ``/proc``."""

from __future__ import annotations

import os
import threading
from errno import EACCES, ELOOP, ENOENT, ENOTDIR
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.glance import real_path
from stockade.platforms.linux.walk import walk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path.resolve() / "place"
    (place / "folder" / "deep").mkdir(parents=True)
    (place / "file").write_text("x")
    (place / "link").symlink_to("folder/deep")
    (place / "absolute").symlink_to(place / "file")
    (place / "dangling").symlink_to("folder/missing")
    (place / "circle").symlink_to("circle")
    monkeypatch.chdir("/proc")
    return place


@pytest.mark.parametrize(
    ("path", "follow", "end", "rest", "error"),
    [
        pytest.param("file", True, "file", [], 0, id="file"),
        pytest.param("folder/./deep/../deep//", True, "folder/deep", [], 0, id="dots"),
        pytest.param("link", True, "folder/deep", [], 0, id="link"),
        pytest.param("link", False, "link", [], 0, id="link itself"),
        pytest.param("link/..", True, "folder", [], 0, id="above where a link leads"),
        pytest.param("absolute", True, "file", [], 0, id="absolute link"),
        pytest.param("new", True, "new", [], ENOENT, id="missing"),
        pytest.param("new/deeper", True, "new", [b"deeper"], ENOENT, id="missing on the way"),
        pytest.param("dangling", True, "folder/missing", [], ENOENT, id="link to nothing"),
        pytest.param("dangling", False, "dangling", [], 0, id="link to nothing itself"),
        pytest.param("file/x", True, "file", [b"x"], ENOTDIR, id="through a file"),
        pytest.param("circle", True, "circle", [], ELOOP, id="circle"),
    ],
)
def test_a_path_is_walked(place: Path, path: str, *, follow: bool, end: str, rest: list[bytes], error: int) -> None:
    folder = os.open(place, os.O_PATH)
    for start, text in ((b"cwd", f"{place}/{path}"), (b"fd/%d" % folder, path)):
        with walk(os.getpid(), start, text.encode(), follow=follow) as found:
            assert (found.error, found.rest) == (error, rest)
            assert _where(found.directory, found.name, found.target) == os.fsencode(place / end)
    os.close(folder)


def _where(directory: int, name: bytes, target: int) -> bytes:
    if name or target < 0:
        above = real_path(b"/proc/self/fd/%d" % directory)
        return above + b"/" + name
    return real_path(b"/proc/self/fd/%d" % target)


def test_doors_of_proc_are_those_of_the_walker(place: Path) -> None:
    file = os.open(place / "file", os.O_RDONLY)
    paths = [f"/proc/self/fd/{file}", f"/proc/thread-self/fd/{file}", f"/dev/fd/{file}"]
    found: list[bytes] = []

    def look() -> None:
        for path in paths:
            with walk(threading.get_native_id(), b"cwd", path.encode()) as end:
                found.append(real_path(b"/proc/self/fd/%d" % end.target))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    os.close(file)
    assert found == [os.fsencode(place / "file")] * 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_what_may_not_be_entered_stops_a_walk(place: Path) -> None:
    (place / "folder").chmod(0)
    with walk(os.getpid(), b"cwd", f"{place}/folder/deep".encode()) as found:
        assert (found.error, found.name, found.rest) == (EACCES, b"deep", [])
    (place / "folder").chmod(0o700)


def test_no_descriptor_is_left(place: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in ("file", "link/..", "new/deeper", "file/x", "circle", "absolute", "."):
        walk(os.getpid(), b"cwd", f"{place}/{path}".encode()).close()
    assert len(os.listdir("/proc/self/fd")) == before
