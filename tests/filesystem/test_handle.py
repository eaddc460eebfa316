"""``stockade.filesystem.handle``: whatever strangers do to the disk, nothing elsewhere is reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[Handle]:
    (tmp_path / "here").mkdir()
    found = Handle.reach(str(tmp_path / "here"))
    assert found is not None
    with found:
        yield found


def test_a_link_on_the_way_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    assert Handle.reach(str(tmp_path / "link/below")) is None
    assert Handle.reach(str(tmp_path / "link")) is None
    assert Handle.reach(str(tmp_path / "missing")) is None


def test_what_is_no_ordinary_file_is_not_read(tmp_path: Path, handle: Handle) -> None:
    here = tmp_path / "here"
    os.mkfifo(here / "fifo")
    (here / "link").symlink_to("/etc/hostname")
    (here / "large").write_bytes(b"x" * 100)
    (here / "plain").write_bytes(b"text")

    assert [handle.content(name, 50) for name in ("fifo", "link", "large", "missing", "a\0b")] == [None] * 5
    assert handle.content("plain") == b"text"


def test_a_directory_with_too_many_names_is_not_listed(tmp_path: Path, handle: Handle) -> None:
    for number in range(5):
        (tmp_path / "here" / str(number)).touch()

    assert handle.names(4) is None
    assert sorted(handle.names(5) or ()) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("kind", ["file", "directory", "link", "fifo"])
def test_anything_is_set_aside_and_nothing_is_overwritten(tmp_path: Path, handle: Handle, kind: str) -> None:
    here = tmp_path / "here"
    (here / "it.stockade-1").write_text("kept")
    (here / "it.stockade-2").mkdir()
    if kind == "file":
        (here / "it").write_text("text")
    elif kind == "directory":
        (here / "it/below").mkdir(parents=True)
    elif kind == "link":
        (here / "it").symlink_to("nowhere")
    else:
        os.mkfifo(here / "it")
    before = (here / "it").lstat()

    assert handle.set_aside("it") == "it.stockade-3"
    assert (here / "it.stockade-3").lstat().st_ino == before.st_ino
    assert sorted(path.name for path in here.iterdir()) == [f"it.stockade-{number}" for number in (1, 2, 3)]
    assert (here / "it.stockade-1").read_text() == "kept"


def test_what_is_gone_cannot_be_set_aside(tmp_path: Path, handle: Handle) -> None:
    with pytest.raises(FileNotFoundError):
        handle.set_aside("it")
    assert list((tmp_path / "here").iterdir()) == []
