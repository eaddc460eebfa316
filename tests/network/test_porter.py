from __future__ import annotations

import array
import asyncio
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import pytest

from stockade.network.porter import Porter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.network.conftest import Play, World

Given: TypeAlias = "socket.socket | None"
KINDS = (socket.SOCK_STREAM, *((socket.SOCK_SEQPACKET,) if sys.platform == "linux" else ()))
FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}


def plain(letter: bytes) -> Given:
    return socket.socket(FAMILIES[letter], socket.SOCK_STREAM)


def fake_porter(
    world: World, give: Callable[[bytes], Given] = plain, asked: list[bytes] | None = None, kind: int = KINDS[0]
) -> socket.socket:
    """Stand in for the one inside; return the other end."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)

    def work() -> None:
        with mine:
            while letter := mine.recv(1):
                if asked is not None:
                    asked.append(letter)
                given = give(letter)
                numbers = [] if given is None else [given.fileno()]
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", numbers))] if numbers else []
                mine.sendmsg([b"+" if numbers else b"!97"], rights)
                if given is not None:
                    given.close()

    thread = threading.Thread(target=work)
    thread.start()

    async def close() -> None:
        with suppress(OSError):  # the other side has ended it
            mine.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(thread.join)

    world.on_close(close)
    return theirs


@pytest.mark.parametrize(
    ("address", "asked"), [pytest.param("127.0.0.1", [b"4"], id="IPv4"), pytest.param("::1", [b"4", b"6"], id="IPv6")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_inside_is_reached(play: Play, address: str, asked: list[bytes], kind: int) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(address=address)
        seen: list[bytes] = []
        porter = Porter(fake_porter(world, asked=seen, kind=kind))
        stream = await porter.reach(canary.port)
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        stream.abort()
        porter.close()
        assert seen == asked

    play(scene)


@pytest.mark.parametrize(
    "give",
    [
        pytest.param(plain, id="nobody listens"),
        pytest.param(lambda _letter: None, id="no socket"),
        pytest.param(lambda _letter: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), id="another kind of socket"),
        pytest.param(lambda _letter: socket.socket(socket.AF_UNIX), id="another family"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_reached_is_an_error_and_the_next_may_be(
    play: Play, give: Callable[[bytes], Given], kind: int
) -> None:
    async def scene(world: World) -> None:
        closed = world.listener()
        port = closed.getsockname()[1]
        closed.close()
        porter = Porter(fake_porter(world, give, kind=kind))
        before = len(os.listdir("/dev/fd"))
        for _ in range(3):
            with pytest.raises(OSError, match=r".*"):
                await porter.reach(port)
        assert not porter._gone
        await world.until(lambda: len(os.listdir("/dev/fd")) == before)
        porter.close()

    play(scene)


def test_a_porter_that_does_not_answer_is_given_up(play: Play) -> None:
    async def scene(world: World) -> None:
        mine, theirs = socket.socketpair()
        porter = Porter(theirs, seconds=0.05)
        with pytest.raises(OSError, match=r".*"):
            await porter.reach(80)
        assert porter._gone
        assert mine.recv(10) == b"4"
        with pytest.raises(ConnectionError):
            await porter.reach(80)
        porter.close()
        mine.close()
        await world.until(lambda: not porter._tasks)

    play(scene)


def test_a_porter_that_is_gone_is_an_error(play: Play) -> None:
    async def scene(_world: World) -> None:
        mine, theirs = socket.socketpair()
        mine.close()
        porter = Porter(theirs)
        with pytest.raises(OSError, match=r".*"):
            await porter.reach(80)
        porter.close()

    play(scene)


def test_who_stops_waiting_takes_nothing_from_the_next(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        go = threading.Event()

        def slow(letter: bytes) -> Given:
            go.wait(10)
            return plain(letter)

        porter = Porter(fake_porter(world, slow))
        waiting = [asyncio.create_task(porter.reach(canary.port)) for _ in range(5)]
        await asyncio.sleep(0.02)
        for task in waiting[:4]:
            task.cancel()
        await asyncio.gather(*waiting[:4], return_exceptions=True)
        go.set()
        stream = await waiting[4]
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        stream.abort()
        await world.until(lambda: not porter._tasks)
        porter.close()

    play(scene)


def test_two_descriptors_of_one_porter_are_known_as_one(play: Play) -> None:
    async def scene(_world: World) -> None:
        mine, theirs = socket.socketpair()
        first, second, other = Porter(theirs), Porter(theirs.dup()), Porter(mine)
        assert first.place == second.place
        assert first.place != other.place
        for porter in (first, second, other):
            porter.close()

    play(scene)
