from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.inotify import Inotify
from stockade.filesystem.readings import Readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["watched", "unwatched"])
def queue(request: pytest.FixtureRequest) -> Iterator[Inotify | None]:
    queue = Inotify() if request.param == "watched" else None
    yield queue
    if queue is not None:
        queue.close()


class Reader:
    """Reads a file and counts how often."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.times = 0

    def __call__(self) -> bytes | None:
        self.times += 1
        return self.file.read_bytes()[:3] if self.file.exists() else None


def _check(readings: Readings, queue: Inotify | None, *named: str) -> bool:
    events = [] if queue is None else queue.read()
    return readings.check({path for event in events for path in readings.written(event.watch)} | {*named})


def test_what_is_known_is_not_read_again(tmp_path: Path, queue: Inotify | None) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    read, readings = Reader(file), Readings(queue)
    assert [readings.ask(str(file), "what", read) for _ in range(3)] == [b"one"] * 3
    assert not _check(readings, queue)
    assert read.times == 1


def _rename(file: Path, text: bytes) -> None:
    other = file.with_name("other")
    other.write_bytes(text)
    other.rename(file)


@pytest.mark.parametrize("write", [pytest.param(lambda file, text: file.write_bytes(text), id="in-place"), _rename])
def test_a_file_that_is_written_is_read_again(
    tmp_path: Path, queue: Inotify | None, write: Callable[[Path, bytes], object]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    read, readings = Reader(file), Readings(queue)
    readings.ask(str(file), "what", read)
    for text in (b"two!", b"three"):
        write(file, text)
        assert _check(readings, queue, str(file))
        assert readings.ask(str(file), "what", read) == text[:3]
    write(file, b"thr and more")  # another content, the same answer
    assert not _check(readings, queue, str(file))
    assert read.times == 4


def test_a_missing_file_is_asked_about_again_when_it_is_named(tmp_path: Path, queue: Inotify | None) -> None:
    file = tmp_path / "file"
    read, readings = Reader(file), Readings(queue)
    assert readings.ask(str(file), "what", read) is None
    file.write_bytes(b"one")
    assert _check(readings, queue, str(file))
    assert readings.ask(str(file), "what", read) == b"one"


def test_what_is_forgotten_is_read_anew(tmp_path: Path, queue: Inotify | None) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    read, readings = Reader(file), Readings(queue)
    readings.ask(str(file), "what", read)
    readings.forget(lambda path: path == str(file))
    assert not _check(readings, queue, str(file))
    readings.ask(str(file), "what", read)
    assert read.times == 2
