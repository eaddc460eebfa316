from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.inotify import Event, Inotify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def queue() -> Iterator[Inotify]:
    queue = Inotify()
    yield queue
    queue.close()
    queue.close()


def test_what_happens_is_told(queue: Inotify, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path))
    assert queue.read() == []
    (tmp_path / "a").touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "a").rename(tmp_path / "odd\n")
    (tmp_path / "odd\n").write_text("what is written does not matter")
    assert queue.read() == [
        Event(watch, "a"),
        Event(watch, "d", directory=True),
        Event(watch, "a"),
        Event(watch, "odd\n"),
    ]


def test_a_lost_directory_is_told(queue: Inotify, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    watch = queue.add(f"{tmp_path}/d")
    (tmp_path / "d").rmdir()
    assert queue.read() == [Event(watch, "", lost=True)]
    queue.remove(watch)


@pytest.mark.parametrize("name", ["no", "file", "link"])
def test_only_directories_are_watched(queue: Inotify, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(".")
    with pytest.raises(OSError, match=name):
        queue.add(f"{tmp_path}/{name}")


def test_what_is_no_longer_watched_is_silent(queue: Inotify, tmp_path: Path) -> None:
    queue.remove(queue.add(str(tmp_path)))
    (tmp_path / "a").touch()
    assert queue.read() == []
