from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.network.pipe import CAPACITY, Pipe, Pipes

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "splice"), reason="this system has no splice(2)")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        yield one, other


def test_what_goes_in_comes_out(ends: tuple[socket.socket, socket.socket]) -> None:
    one, other = ends
    pipe = Pipe()
    one.send(b"hello")
    assert (pipe.fill(other.fileno(), 3), pipe.held) == (3, 3)
    pipe.empty(other.fileno())
    assert (one.recv(10), other.recv(10), pipe.held) == (b"hel", b"lo", 0)
    with pytest.raises(BlockingIOError):
        pipe.fill(other.fileno(), CAPACITY)
    one.shutdown(socket.SHUT_WR)
    assert pipe.fill(other.fileno(), CAPACITY) == 0
    pipe.close()


def test_a_pipe_with_something_in_it_is_never_lent_again(ends: tuple[socket.socket, socket.socket]) -> None:
    pipes = Pipes()
    clean, dirty = pipes.borrow(), pipes.borrow()
    assert clean is not None
    assert dirty is not None
    ends[0].send(b"secret")
    dirty.fill(ends[1].fileno(), CAPACITY)
    pipes.give_back(dirty)
    pipes.give_back(clean)
    assert len(pipes) == 1
    assert pipes.borrow() is clean
    pipes.give_back(clean)
    pipes.give_up()
    assert (len(pipes), pipes.borrow()) == (0, None)


def test_few_are_kept() -> None:
    pipes = Pipes()
    lent = [pipes.borrow() for _ in range(10)]
    for pipe in lent:
        assert pipe is not None
        pipes.give_back(pipe)
    assert len(pipes) == 4
    pipes.give_up()


def test_only_so_many_are_lent() -> None:
    pipes = Pipes()
    lent = [pipe for _ in range(100) if (pipe := pipes.borrow()) is not None]
    assert len(lent) == 16
    pipes.drop(lent.pop())
    pipes.give_back(lent.pop())
    lent += [pipe for _ in range(100) if (pipe := pipes.borrow()) is not None]
    assert len(lent) == 16
    for pipe in lent:
        pipes.give_back(pipe)
    pipes.give_up()


def test_without_descriptors_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_flags: int) -> tuple[int, int]:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "pipe2", refuse)
    assert Pipes().borrow() is None
