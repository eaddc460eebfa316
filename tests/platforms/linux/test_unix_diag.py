from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.unix_diag import Listeners, answer, kernel_device

if TYPE_CHECKING:
    from pathlib import Path


def test_a_listener_is_known_by_its_file(tmp_path: Path) -> None:
    listeners = Listeners()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as idle:
        server.bind(str(tmp_path / "server"))
        server.listen()
        idle.bind(str(tmp_path / "idle"))
        os.rename(tmp_path / "server", tmp_path / "renamed")
        found = listeners.files()
        files = [_file(tmp_path / name) for name in ("renamed", "idle")]
        assert [file in found for file in files] == [True, False]
    assert files[0] not in listeners.files()
    listeners.close()


def _file(path: Path) -> tuple[int, int]:
    about = path.stat()
    return kernel_device(os.major(about.st_dev), os.minor(about.st_dev)), about.st_ino


@given(st.binary(max_size=300))
def test_no_answer_breaks_the_reader(data: bytes) -> None:
    answer(data)
