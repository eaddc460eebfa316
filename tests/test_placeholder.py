from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.placeholder import (
    CONTENTS,
    FILE_MODE,
    MARK,
    UNMADE,
    is_kept,
    is_placeholder,
    is_unmade,
    may_be_placeholder,
    shape_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def _mark(path: Path, moment: int = MARK) -> None:
    os.utime(path, ns=(moment, moment))


def test_a_socket_that_nobody_may_open(tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFSOCK)
    assert is_placeholder(node.lstat())
    assert is_placeholder(node.lstat(), ".bashrc")
    assert is_kept(str(node))
    node.chmod(0o600)
    assert not is_placeholder(node.lstat())
    assert not is_kept(str(node))


def test_a_file_that_says_what_git_assumes(tmp_path: Path) -> None:
    (name, content), *_ = CONTENTS.items()
    file = tmp_path / name
    file.write_bytes(content)
    assert not is_placeholder(file.lstat(), name)
    file.chmod(FILE_MODE)
    assert is_placeholder(file.lstat(), name)
    assert is_kept(str(file))
    assert not is_placeholder(file.lstat(), "other")
    assert not is_placeholder(file.lstat())


def test_an_empty_file_until_somebody_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert not is_kept(str(file))
    _mark(file)
    assert is_kept(str(file))
    file.write_text("x")
    _mark(file)
    assert not is_kept(str(file))
    file.write_text("")
    assert not is_kept(str(file))


def test_an_empty_directory_until_somebody_puts_something_into_it(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    assert not is_kept(str(directory))
    _mark(directory)
    assert is_kept(str(directory))
    assert not is_placeholder(directory.lstat()), "an lstat alone does not tell that it is empty"
    with_descriptor = os.open(tmp_path, os.O_RDONLY)
    assert is_kept("directory", with_descriptor)
    os.close(with_descriptor)
    (directory / "x").touch()
    _mark(directory)
    assert not is_kept(str(directory)), "whatever its time says"
    (directory / "x").unlink()
    assert not is_kept(str(directory))


def test_a_directory_that_is_being_made(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir(UNMADE)
    assert is_unmade(directory.lstat())
    assert is_kept(str(directory))
    directory.chmod(0o1777)
    assert not is_unmade(directory.lstat())
    assert not is_kept(str(directory))


@pytest.mark.parametrize("step", [1, 100, 10**3, 10**6, 10**7, 10**9])
def test_disks_that_count_in_coarser_steps(tmp_path: Path, step: int) -> None:
    _mark(tmp_path, MARK // step * step)
    assert is_kept(str(tmp_path))
    assert MARK // 10**9 % 2 == 0, "some count every other second"


def test_ordinary_things(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "file", tmp_path / "pipe"):
        assert not is_placeholder(path.lstat())
        assert not is_kept(str(path))
    with pytest.raises(FileNotFoundError):
        is_kept(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("name", "protected", "shape"),
    [
        (".vscode", ".vscode", "directory"),
        (".git", ".git/hooks", "directory"),
        ("hooks", ".git/hooks", "directory"),
        (".mcp.json", ".mcp.json", "directory"),
        (".env", "", "directory"),
        ("config", ".git/config", "file"),
        ("commondir", ".git/commondir", "file"),
        ("config", "", "node"),
        (".bashrc", ".bashrc", "file"),
        (".cargo", ".cargo/config.toml", "directory"),
        ("config.toml", ".cargo/config.toml", "file"),
        ("config.toml", ".codex/config.toml", "node"),
        ("refs", "refs", "node"),
        ("objects", "objects", "node"),
        ("HEAD", "HEAD", "node"),
        ("secret", "", "node"),
    ],
)
def test_the_shape_of_a_name(name: str, protected: str, shape: str) -> None:
    assert shape_of(name, protected) == shape
    if shape == "directory":
        assert may_be_placeholder(name, directory=True)
    if shape == "file":
        assert may_be_placeholder(name, directory=False)


def test_a_start_up_file_that_is_not_in_a_home_would_be_a_new_file_for_git() -> None:
    assert shape_of(".bashrc", ".bashrc", at_home=False) == "node"
    assert shape_of("config", ".git/config", at_home=False) == "file"
    assert shape_of(".vscode", ".vscode", at_home=False) == "directory"
