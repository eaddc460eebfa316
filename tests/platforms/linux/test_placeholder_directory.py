from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.placeholder import CONTENTS, is_kept
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


def test_a_git_file_that_got_the_number_of_a_directory_of_ours_stays(directory: Directory) -> None:
    """On some disks the next file gets the number of what was removed last."""
    with open(f"{directory.path}/.git", "w") as file:
        file.write("gitdir: elsewhere")
    status = directory.look(".git")
    assert status is not None
    assert directory.remove(".git", status.st_ino)
    assert directory.look(".git") is not None


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


def test_a_hold_makes_every_shape_and_takes_them_away(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "tree"
    folder.mkdir()
    record = Record.shared(str(tmp_path / "record"))
    hold = Hold(Directory(str(folder)), record)
    names = [".bashrc", ".idea", "refs", *CONTENTS]
    assert set(hold.make(names).values()) == {("made", "")}
    assert all(is_kept(f"{folder}/{name}") for name in names)
    kinds = [stat.S_IFMT((folder / name).lstat().st_mode) for name in names[:4]]
    assert kinds == [stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK, stat.S_IFREG]
    for name, content in CONTENTS.items():
        assert (folder / name).read_bytes() == content
    hold.release()
    assert list(folder.iterdir()) == []


def test_refusals_of_a_directory_that_cannot_be_opened() -> None:
    gone = refusals(["a"], OSError(errno.ENOENT, "no such file"))
    assert gone["a"][0] == "changed"
    closed = refusals(["a"], OSError(errno.EACCES, "permission denied"))
    assert closed["a"][0] == "impossible"
