from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.errors import SettingsError
from stockade.settings.content import LIMIT, Content, is_there, read_content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _message(file: Path | str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_content(str(file))
    (problem,) = caught.value.problems
    assert (problem.file, problem.path, bool(problem.hint)) == (str(file), "$", True)
    return problem.message


def test_a_file_is_read_with_its_owner_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\xff\x00")
    file.chmod(0o640)
    assert read_content(str(file)) == Content(b"\xff\x00", os.geteuid(), 0o640)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to("f")
    content = read_content(str(tmp_path / "link"))
    assert content is not None
    assert content.data == b"x"


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    places = ["no", "no/such/directory", "plain/below/a-file"]
    assert [read_content(str(tmp_path / place)) for place in places] == [None, None, None]


def test_the_largest_file_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b" " * LIMIT)
    content = read_content(str(file))
    assert content is not None
    assert len(content.data) == LIMIT
    file.write_bytes(b" " * (LIMIT + 1))
    assert _message(file) == "is larger than 1 MiB"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda path: path.mkdir(), "is a directory, not a file", id="directory"),
        pytest.param(os.mkfifo, "is a pipe, not a file", id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "is a device, not a file", id="link to a device"),
        pytest.param(lambda path: path.symlink_to("gone"), "is a link that leads nowhere", id="dangling link"),
        pytest.param(
            lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links", id="loop"
        ),
    ],
)
def test_what_is_there_but_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    make(tmp_path / "f")
    assert _message(tmp_path / "f") == message


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert _message("s").startswith("cannot be read: ")


def test_a_directory_that_is_a_broken_link_or_a_file_is_refused(tmp_path: Path) -> None:
    link, plain = tmp_path / "link", tmp_path / "plain"
    link.symlink_to("gone")
    plain.touch()
    assert _message(link / "f") == f"cannot be read: {link} is a link that leads nowhere"
    assert _message(plain / "f") == f"cannot be read: {plain} is not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch(mode=0)
    assert _message(file) == "cannot be read: Permission denied"


@pytest.mark.parametrize("name", [pytest.param("a\0b", id="nul"), pytest.param("a" * 300, id="long")])
def test_an_impossible_name_is_refused(name: str) -> None:
    assert _message(name).startswith("cannot be read: ")


def test_a_broken_link_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    assert [is_there(str(tmp_path / name)) for name in ("link", "no", "a\0b")] == [True, False, True]
