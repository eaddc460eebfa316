"""Walks in the view of this very process, from its own ``/proc``."""

from __future__ import annotations

import os
import threading
from errno import EACCES, ELOOP, ENOENT, ENOTDIR
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import glance
from stockade.platforms.linux.glance import real_path
from stockade.platforms.linux.walk import MOST_LINKS, MOST_NAMES, DearPathError, Found, walk


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


NAMES = ("a", "b", "c", "..", ".", "", "link", "loop", "missing", "file")
texts = st.lists(st.sampled_from(NAMES), min_size=1, max_size=12).map("/".join)


@given(path=texts, links=st.lists(st.tuples(texts, st.booleans()), min_size=3, max_size=3), follow=st.booleans())
def test_a_walk_ends_where_the_kernel_does(path: str, links: list[tuple[str, bool]], follow: bool) -> None:  # noqa: FBT001 - drawn
    with TemporaryDirectory() as made:
        place = Path(made).resolve()
        (place / "a/b/c/a/b/c").mkdir(parents=True)
        (place / "a/file").touch()
        for where, (text, absolute) in zip(("link", "a/link", "a/b/loop"), links, strict=True):
            (place / where).symlink_to(f"{place}/{text}" if absolute else text or ".")
        flags = os.O_PATH | (0 if follow else os.O_NOFOLLOW)
        whole = f"{place}/{path}".rstrip("/")  # a slash at the end asks for a directory, which is no part of a walk
        expected, error = -1, 0
        try:
            expected = os.open(whole, flags)
        except OSError as failure:
            error = failure.errno or 0
        with _walked(whole, follow=follow) as found:
            assert found.error == error
            if not error:
                assert found.rest == []
                assert os.path.sameopenfile(found.target, expected)
                if found.name:
                    again = os.open(found.name, os.O_PATH | os.O_NOFOLLOW, dir_fd=found.directory)
                    assert os.path.sameopenfile(again, expected)
                    os.close(again)
                os.close(expected)


def _walked(path: str, *, follow: bool) -> Found:
    """Walk in this process's view from its own ``/proc``; the working directory is that of the tests again then."""
    before = os.open(".", os.O_PATH)
    os.chdir("/proc")
    try:
        return walk(os.getpid(), b"cwd", path.encode(), follow=follow)
    finally:
        os.fchdir(before)
        os.close(before)


class Effort:
    """What a walk asks of the kernel: calls, and names in them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.names = 0
        real_open, real_enter = os.open, glance.enter

        def counted_open(path: bytes, *arguments: int, **options: int) -> int:
            self.calls += 1
            return real_open(path, *arguments, **options)

        def counted_enter(directory: int, path: bytes) -> int:
            self.calls += 1
            self.names += path.count(b"/") + 1
            return real_enter(directory, path)

        monkeypatch.setattr(os, "open", counted_open)
        monkeypatch.setattr(glance, "enter", counted_enter)


UP = "../" * 1300


@pytest.mark.parametrize(
    ("text", "links"),
    [
        pytest.param("../" * 12, MOST_LINKS, id="ways to the root"),
        pytest.param("./" + "..//" * 12, MOST_LINKS, id="ways with what means nothing"),
        pytest.param(UP, 1, id="a long way"),
    ],
)
def test_a_chain_of_links_is_walked(place: Path, text: str, links: int) -> None:
    chain(place, text, links)
    with walk(os.getpid(), b"cwd", f"{place}/0".encode()) as found:
        assert found.error == 0
        assert real_path(b"/proc/self/fd/%d" % found.target) == os.fsencode(place / "file")


@pytest.mark.parametrize(
    ("text", "links"),
    [
        pytest.param(UP, 38, id="long ways to the root"),
        pytest.param("/" + UP, 38, id="long ways from the root to the root"),
        pytest.param("./" + "..//" * 900, 38, id="long ways with what means nothing"),
        pytest.param(UP + "tmp/../" * 3, 38, id="up, down and up"),
        pytest.param("/" + "proc/../" * 480, 38, id="down and up again, all the time"),
    ],
)
def test_a_chain_of_long_links_has_its_price(
    place: Path, monkeypatch: pytest.MonkeyPatch, text: str, links: int
) -> None:
    chain(place, text, links)
    effort = Effort(monkeypatch)
    with pytest.raises(DearPathError):
        walk(os.getpid(), b"cwd", f"{place}/0".encode())
    assert effort.calls < 15 * MOST_LINKS
    assert effort.names <= MOST_NAMES


def test_the_kernel_follows_no_more_links_either(place: Path) -> None:
    chain(place, "", MOST_LINKS + 1)
    with walk(os.getpid(), b"cwd", f"{place}/0".encode()) as found:
        assert found.error == ELOOP


def chain(place: Path, text: str, links: int) -> None:
    for number in range(links):
        end = f"{place}/{number + 1}" if number + 1 < links else f"{place}/file"
        (place / str(number)).symlink_to(text + end.lstrip("/" if text else ""))


def test_a_deep_way_is_one_call_and_a_link_in_it_a_few(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = place
    for _ in range(200):
        deep /= "d"
    deep.mkdir(parents=True)
    (place / "in").symlink_to("d")
    effort = Effort(monkeypatch)
    walk(os.getpid(), b"cwd", os.fsencode(deep / "new")).close()
    assert effort.calls == 3  # where it starts, the way, and the last name
    walk(os.getpid(), b"cwd", os.fsencode(place / "in" / deep.relative_to(place / "d") / "new")).close()
    assert effort.calls < 25


def test_a_link_to_where_it_lies_has_no_name(place: Path) -> None:
    for text in (".", "./", "/"):
        (place / "self").unlink(missing_ok=True)
        (place / "self").symlink_to(text)
        with walk(os.getpid(), b"cwd", f"{place}/self".encode()) as found:
            end = b"/" if text == "/" else os.fsencode(place)
            assert (found.name, real_path(b"/proc/self/fd/%d" % found.target)) == (b"", end)
