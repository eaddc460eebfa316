from __future__ import annotations

import os
import socket
from errno import EACCES, EBADF, EIO, EISDIR, EMFILE, EPERM, EPROTOTYPE
from typing import TYPE_CHECKING

from stockade.platforms.linux import stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def _error(act: Callable[[], object]) -> int | None:
    try:
        act()
    except OSError as error:
        return error.errno
    return None


def test_a_number_above_is_kept_and_another_is_moved() -> None:
    reader, writer = os.pipe()
    pipe = os.fstat(reader)
    assert stream.above(reader, reader - 1) == reader
    moved = stream.above(reader, reader + 200)
    assert moved > reader + 200
    assert not os.get_inheritable(moved)
    os.write(writer, b"x")
    assert os.read(moved, 1) == b"x"
    # The number is free, and another thread may have got it already.
    assert _error(lambda: os.fstat(reader)) == EBADF or not os.path.samestat(os.fstat(reader), pipe)
    os.close(moved)
    os.close(writer)


def test_only_pipes_are_passed_and_all_of_them(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    folder = os.open(tmp_path, os.O_RDONLY)
    stream.require_pipes((reader, writer), 2)
    assert _error(lambda: stream.require_pipes((reader,), 2)) == EMFILE
    assert _error(lambda: stream.require_pipes((reader, folder), 2)) == EPERM
    for descriptor in (reader, writer, folder):
        os.close(descriptor)


def test_a_stream_is_no_directory_and_no_socket_with_other_peers(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    assert _error(lambda: stream.require_harmless(folder)) == EISDIR
    os.close(folder)
    with socket.socket(socket.AF_INET) as far, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as loose:
        assert _error(lambda: stream.require_harmless(far.fileno())) == EPROTOTYPE
        assert _error(lambda: stream.require_harmless(loose.fileno())) == EPROTOTYPE
    one, other = socket.socketpair()
    stream.require_harmless(one.fileno())
    one.close()
    other.close()


def test_a_stream_leads_to_no_denied_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        stream.require_harmless(client.fileno(), lambda _: False)
        assert _error(lambda: stream.require_harmless(client.fileno(), lambda peer: peer == path.encode())) == EACCES


def test_a_device_is_replaced_by_the_one_that_is_here() -> None:
    null = os.open("/dev/null", os.O_WRONLY)
    stream.use_own_device(null)
    assert (os.fstat(null).st_rdev, os.write(null, b"x")) == (os.makedev(1, 3), 1)
    os.close(null)


def test_a_terminal_that_goes_while_it_is_left_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open("/dev/null", os.O_RDONLY)

    def gone(descriptor: int) -> None:
        assert descriptor == opened
        raise OSError(EIO, os.strerror(EIO))

    with monkeypatch.context() as patch:
        patch.setattr("stockade.platforms.linux.stream.kernel.leave_terminal", gone)
        patch.setattr(os, "open", lambda *_: opened)
        stream.leave_terminal()
    assert _error(lambda: os.fstat(opened)) == EBADF
