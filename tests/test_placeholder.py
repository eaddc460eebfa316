from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from stockade.placeholder import CONTENTS, FILE_MODE, is_placeholder

if TYPE_CHECKING:
    from pathlib import Path


def test_a_socket_that_nobody_may_open(tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFSOCK)
    assert is_placeholder(node.lstat())
    assert is_placeholder(node.lstat(), ".bashrc")
    node.chmod(0o600)
    assert not is_placeholder(node.lstat())


def test_a_file_that_says_what_git_assumes(tmp_path: Path) -> None:
    (name, content), *_ = CONTENTS.items()
    file = tmp_path / name
    file.write_bytes(content)
    assert not is_placeholder(file.lstat(), name)
    file.chmod(FILE_MODE)
    assert is_placeholder(file.lstat(), name)
    assert not is_placeholder(file.lstat(), "other")
    assert not is_placeholder(file.lstat())


def test_ordinary_things(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "file", tmp_path / "pipe"):
        assert not is_placeholder(path.lstat())
