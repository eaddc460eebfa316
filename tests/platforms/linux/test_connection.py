"""What an address means; what becomes of connections is proved in ``tests/enforcement/test_unix_sockets.py``."""

from __future__ import annotations

import os
import socket
from errno import EACCES, ECONNREFUSED, EINPROGRESS, EISCONN
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import connection
from stockade.platforms.linux.connection import (
    MOST_LOOKED_AT,
    MOST_OF_ALL,
    MOST_WAITING,
    Attempt,
    Connections,
    path_of,
    room_for,
)
from stockade.platforms.linux.unix_diag import kernel_device

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("domain", "address", "path"),
    [
        pytest.param(socket.AF_UNIX, b"\1\0/a\0", b"/a", id="path"),
        pytest.param(socket.AF_UNIX, b"\1\0a/b", b"a/b", id="no zero at its end"),
        pytest.param(socket.AF_UNIX, b"\1\0/a\0/b\0", b"/a", id="more behind the zero"),
        pytest.param(socket.AF_UNIX, b"\1\0\0name", None, id="abstract"),
        pytest.param(socket.AF_UNIX, b"\1\0", None, id="none"),
        pytest.param(socket.AF_UNIX, b"\2\0/a", None, id="another family"),
        pytest.param(socket.AF_INET, b"\1\0/a", None, id="another socket"),
        pytest.param(socket.AF_UNIX, b"", None, id="nothing"),
    ],
)
def test_an_address_holds_a_path_or_none(domain: int, address: bytes, path: bytes | None) -> None:
    assert path_of(domain, address) == path


@given(st.binary(max_size=128))
def test_any_address_is_read(address: bytes) -> None:
    path = path_of(socket.AF_UNIX, address)
    assert path is None or (path and b"\0" not in path)


def test_who_was_interrupted_before_it_heard_is_told_when_it_asks_again() -> None:
    connections = Connections(lambda _: False, lambda _: {}, lambda _: {})
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as end:
        address = b"\2\0" + server.getsockname()[1].to_bytes(2, "big") + socket.inet_aton("127.0.0.1") + bytes(8)
        attempt = Attempt(-1, 0, 7)
        attempt.sock, attempt.address, attempt.blocking = end, address, True
        while connections.dial(attempt, address) == EINPROGRESS:
            pass
        assert (connections.dial(attempt, address), end.getblocking()) == (EISCONN, True)
        connections.remember(attempt)
        assert [connections.dial(attempt, address) for _ in range(2)] == [0, EISCONN]


@pytest.mark.parametrize(
    ("own", "host", "listed", "end"),
    [
        pytest.param(True, False, False, 0, id="the session's own"),
        pytest.param(True, True, False, EACCES, id="the host has one that cannot be told apart"),
        pytest.param(True, True, True, 0, id="the same, and it is listed"),
        pytest.param(False, True, False, EACCES, id="the host's"),
        pytest.param(False, False, False, ECONNREFUSED, id="nobody's"),
    ],
)
def test_whose_a_socket_is(tmp_path: Path, *, own: bool, host: bool, listed: bool, end: int) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/s")
        about = (tmp_path / "s").stat()
        here = {kernel_device(os.major(about.st_dev), os.minor(about.st_dev)): {b""}}
        connections = Connections(lambda _: listed, lambda _: here if own else {}, lambda _: here if host else {})
        target = os.open(f"{tmp_path}/s", os.O_PATH)
        try:
            assert connections.judge(Attempt(-1, 0, os.getpid()), target, b"/proc/self/fd/%d" % target) == end
        finally:
            os.close(target)


def test_few_of_those_who_wait_are_looked_at_in_one_turn_and_each_in_its_turn() -> None:
    connections = Connections(lambda _: False, lambda _: {}, lambda _: {})
    connections.waiting = {number: Attempt(-1, 0, 7) for number in range(MOST_LOOKED_AT + 1)}
    first, at_once = (connections.due(now) for now in (1.0, 1.001))
    assert (first, at_once) == ([*range(MOST_LOOKED_AT)], [])
    for descriptor in first:
        connections.turn(descriptor)
    assert connections.due(2.0) == [MOST_LOOKED_AT, *range(MOST_LOOKED_AT - 1)]


def test_room_is_shared_out_and_the_next_command_always_gets_some() -> None:
    """Each command may hold as many as are left: half, a quarter, an eighth."""
    connections = Connections(lambda _: False, lambda _: {}, lambda _: {}, room=96)
    descriptor = 0
    for command, most in ((1, 48), (2, 24), (3, 12), (4, 6)):
        while connections.has_room(command):
            connections.wait(Attempt(command, 0, 7), descriptor)
            descriptor += 1
        assert connections.held[command] == most
    for freed in range(48):
        connections.leave(freed)
    assert (1 in connections.held, connections.has_room(1), connections.has_room(2)) == (False, True, True)


def test_one_command_never_has_more_than_its_most() -> None:
    connections = Connections(lambda _: False, lambda _: {}, lambda _: {})
    while connections.has_room(1):
        connections.wait(Attempt(1, 0, 7), len(connections.waiting))
    assert len(connections.waiting) == MOST_WAITING


@pytest.mark.parametrize(("files", "room"), [(256, 192), (1024, 768), (65536, MOST_OF_ALL)])
def test_some_descriptors_are_left_for_calls_that_take_no_time(files: int, room: int) -> None:
    assert room_for(files) == room


def test_a_caller_that_is_killed_while_it_is_looked_at_is_no_failure() -> None:
    connections = Connections(lambda _: False, lambda _: {}, lambda _: {})
    attempt = Attempt(-1, 0, 1 << 30)
    attempt.domain, attempt.address = socket.AF_UNIX, b"\1\0/a"
    with socket.socket(socket.AF_UNIX) as attempt.sock:
        assert connections.look(attempt) == EACCES


def test_what_is_no_socket_is_closed_again() -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(OSError, match="non-socket"):
        connection._socket_of(descriptor)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)
