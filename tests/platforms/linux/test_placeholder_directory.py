from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.placeholder import CONTENTS, is_placeholder
from stockade.platforms.linux.journal import Record
from stockade.platforms.linux.placeholder_directory import Directory, Hold, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    folder = tmp_path.resolve() / "tree"
    folder.mkdir()
    opened = Directory(str(folder))
    yield opened
    opened.close()


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match=r"link|directory"):
        Directory(str(tmp_path.resolve() / "link"))


def test_only_that_very_node_is_removed(directory: Directory) -> None:
    os.mknod("node", stat.S_IFSOCK, dir_fd=directory.descriptor)
    status = directory.look("node")
    assert status is not None
    assert directory.remove("node", status.st_ino + 1)
    assert directory.look("node") is not None
    assert directory.remove("node", status.st_ino)
    assert directory.look("node") is None
    (name, content), *_ = CONTENTS.items()
    with open(f"{directory.path}/{name}", "wb") as file:
        file.write(content + b"mine")
    assert directory.remove(name, None)
    assert directory.look(name) is not None


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (errno.EROFS, "unneeded"),
        (errno.ENOSPC, "impossible"),
        (errno.EPERM, "impossible"),
        (errno.ENOENT, "changed"),
    ],
)
def test_what_a_refusal_means(directory: Directory, number: int, state: str) -> None:
    assert directory.refusal(OSError(number, os.strerror(number)))[0] == state


def test_a_hold_makes_nodes_of_both_kinds_and_takes_them_away(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "tree"
    folder.mkdir()
    record = Record.shared(str(tmp_path / "record"))
    hold = Hold(Directory(str(folder)), record)
    names = [".bashrc", ".idea", *CONTENTS]
    assert set(hold.make(names).values()) == {("made", "")}
    assert all(is_placeholder((folder / name).lstat(), name) for name in names)
    for name, content in CONTENTS.items():
        assert (folder / name).read_bytes() == content
    hold.release()
    assert list(folder.iterdir()) == []


def test_refusals_of_a_directory_that_cannot_be_opened() -> None:
    gone = refusals(["a"], OSError(errno.ENOENT, "no such file"))
    assert gone["a"][0] == "changed"
    closed = refusals(["a"], OSError(errno.EACCES, "permission denied"))
    assert closed["a"][0] == "impossible"
