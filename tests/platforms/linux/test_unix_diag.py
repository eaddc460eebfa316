from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.unix_diag import Listeners, answer, in_turn, kernel_device

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def test_a_listener_is_known_by_its_file(tmp_path: Path) -> None:
    listeners = Listeners()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as idle:
        server.bind(str(tmp_path / "server"))
        server.listen()
        idle.bind(str(tmp_path / "idle"))
        os.rename(tmp_path / "server", tmp_path / "renamed")
        files = [_file(tmp_path / name) for name in ("renamed", "idle")]
        assert [device in listeners.devices(number) for device, number in files] == [True, False]
    device, number = files[0]
    assert device not in listeners.devices(number)
    listeners.close()


def test_a_listener_keeps_the_names_that_it_was_bound_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listeners = Listeners()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        for each, name in ((server, f"{tmp_path}/server"), (other, "other")):
            each.bind(name)
            each.listen()
        os.rename("server", "renamed")
        for path, bound in (("renamed", os.fsencode(tmp_path / "server")), ("other", b"other")):
            device, number = _file(Path(path))
            assert listeners.names(number)[device] == {bound}
            assert listeners.devices(number)[device] == {b""}
    listeners.close()


def test_the_one_among_many_is_found_and_the_answer_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descriptors: Callable[[int], None]
) -> None:
    descriptors(710)
    monkeypatch.chdir(tmp_path)
    listeners = Listeners()
    servers = [socket.socket(socket.AF_UNIX) for _ in range(700)]  # more than one datagram holds
    for place, server in enumerate(servers):
        server.bind(str(place))
        server.listen()
    for name in ("0", "350", "699"):
        device, number = _file(Path(name))
        assert device in listeners.devices(number)
    assert listeners.devices(0) == {}
    for server in servers:
        server.close()
    listeners.close()


def test_two_processes_that_share_the_way_hear_their_own_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listeners = Listeners()
    ask = in_turn(listeners.devices)
    servers = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for place, server in enumerate(servers):
        server.bind(str(place))
        server.listen()
    mine, theirs = _file(Path("0")), _file(Path("1"))
    child = os.fork()
    if child == 0:
        right = False
        try:
            right = all(theirs[0] in ask(theirs[1]) for _ in range(300))
        finally:
            os._exit(0 if right else 1)
    assert all(mine[0] in ask(mine[1]) for _ in range(300))
    assert os.waitpid(child, 0)[1] == 0
    for server in servers:
        server.close()
    listeners.close()


def _file(path: Path) -> tuple[int, int]:
    about = path.stat()
    return kernel_device(os.major(about.st_dev), os.minor(about.st_dev)), about.st_ino & 0xFFFF_FFFF


@given(st.binary(max_size=300), st.integers(0, 3))
def test_no_answer_breaks_the_reader(data: bytes, number: int) -> None:
    answer(data, number)
