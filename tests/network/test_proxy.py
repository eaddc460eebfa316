from __future__ import annotations

import asyncio
import random
import select
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.network.limits import ProxyLimits
from stockade.network.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.network.conftest import Play, World

    from stockade.network.outlet import Outlet

QUICK = ProxyLimits(handshake_seconds=0.3, next_seconds=0.3, linger_seconds=0.1)
SEEDS = (
    b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
    b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n",
    b"POST http://allowed.test/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"\x05\x02\x00\x02\x01\x02ab\x01c\x05\x01\x00\x03\x0callowed.test\x01\xbb",
    b"\x05\x01\x00\x05\x01\x00\x04" + bytes(18),
    b"\x16\x03\x01\x00\x05hello",
)


async def serve(world: World, outlet: Outlet, limits: ProxyLimits | None = None) -> tuple[Proxy, int]:
    proxy = Proxy(outlet, limits=limits)
    listener = world.listener()
    world.on_close(proxy.close)
    await proxy.serve(listener)
    return proxy, listener.getsockname()[1]


def mutated(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            data[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif kind == 1:
            del data[at : at + chance.randrange(1, 20)]
        elif kind == 2 and at < len(data):
            data[at] = chance.randrange(256)
        else:
            data += chance.choice(SEEDS)
    return bytes(data) if chance.random() < 0.9 else chance.randbytes(chance.randrange(1, 300))


def test_no_bytes_break_it(play: Play) -> None:
    async def scene(world: World) -> None:
        world.names["allowed.test"] = []
        proxy, port = await serve(world, world.outlet("allowed.test"), QUICK)
        chance = random.Random(20)  # noqa: S311 - no secret

        async def attack(data: bytes, cut: int, *, abrupt: bool) -> None:
            client = await world.connect(port)
            try:
                await client.say(data[:cut])
                await asyncio.sleep(0)
                await client.say(data[cut:])
                if not abrupt:
                    client.writer.write_eof()
                    await client.rest()
            except OSError:
                pass
            client.writer.transport.abort()

        for _ in range(20):
            tries = [mutated(chance) for _ in range(20)]
            await asyncio.gather(
                *(attack(data, chance.randrange(len(data) + 1), abrupt=chance.random() < 0.3) for data in tries)
            )
        await world.until(lambda: not len(proxy))
        assert len(proxy._service._admissions) == 0
        client = await world.connect(port)
        await client.say(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 403 ")

    play(scene)


def connected(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


def test_two_thousand_idle_connections_leave_it_at_work(play: Play, descriptors: Callable[[int], None]) -> None:
    descriptors(4050)  # both ends are here

    async def scene(world: World) -> None:
        canary = await world.canary()
        proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        idle = await asyncio.to_thread(connected, port, 2000)
        await world.until(lambda: len(proxy) == 2000)
        client = await world.connect(port)
        await client.say(b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: x\r\n\r\nhello" % canary.port)
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        assert await client.hear(5) == b"hello"
        for connection in idle:
            connection.close()
        await world.until(lambda: len(proxy) == 1)

    play(scene)


def test_too_many_connections_are_told_and_others_served_again(play: Play) -> None:
    async def scene(world: World) -> None:
        proxy, port = await serve(world, world.outlet(), ProxyLimits(connections=10, linger_seconds=0.1))
        idle = await asyncio.to_thread(connected, port, 10)
        await world.until(lambda: len(proxy) == 10)
        client = await world.connect(port)
        request = b"CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
        assert (await client.ask(request)).startswith(b"HTTP/1.1 503 Service Unavailable: 10 connections are open")
        more = await asyncio.to_thread(connected, port, 100)
        await world.until(lambda: len(proxy) == 74)
        for connection in (*idle, *more):
            connection.close()
        await world.until(lambda: not len(proxy))
        client = await world.connect(port)
        assert (await client.ask(request)).startswith(b"HTTP/1.1 403 ")

    play(scene)


def test_who_keeps_silent_keeps_nobody_out(play: Play) -> None:
    async def scene(world: World) -> None:
        proxy, port = await serve(world, world.outlet(), ProxyLimits(connections=10, unclaimed=5, linger_seconds=0.1))
        silent = await asyncio.to_thread(connected, port, 40)
        await world.until(lambda: len(select.select(silent, [], [], 0)[0]) == 35)  # these read their end
        assert len(proxy) == 5
        client = await world.connect(port)
        assert (await client.ask(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
        for connection in silent:
            connection.close()
        await world.until(lambda: not len(proxy))

    play(scene)


def test_a_refusal_is_told_once_and_then_counted(play: Play) -> None:
    async def scene(world: World) -> None:
        outlet = world.outlet()
        _, port = await serve(world, outlet, QUICK)
        for host in ("a.test", "a.test", "b.test", "a.test"):
            client = await world.connect(port)
            await client.say(f"CONNECT {host}:443 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await client.head()
        outlet._tally.flush()
        reason = "NOBODY_TO_ASK"
        assert world.told() == [
            ("a.test:443", reason, "", 1),
            ("b.test:443", reason, "", 1),
            ("a.test:443", reason, "", 2),
        ]

    play(scene)


@pytest.mark.parametrize("moment", ["at once", "tunnel", "request", "question", "refused"])
def test_nothing_is_left_once_it_is_closed(play: Play, moment: str) -> None:
    async def forever(_host: str, _port: int, _command: str) -> None:
        await asyncio.Event().wait()

    async def scene(world: World) -> None:
        canary = await world.canary()
        outlet = world.outlet(
            f"allowed.test 127.0.0.1:{canary.port}",
            "evil.test",
            ask=forever,  # type: ignore[arg-type] # no answer is none of the choices
        )
        before = asyncio.all_tasks()
        proxy, port = await serve(world, outlet)
        lines = {
            "tunnel": f"CONNECT allowed.test:{canary.port}",
            "request": f"GET http://allowed.test:{canary.port}/",
            "question": "CONNECT asked.test:443",
            "refused": "CONNECT evil.test:443",
        }
        sockets = await asyncio.to_thread(connected, port, 5)
        if moment != "at once":
            for connection in sockets:
                connection.sendall(f"{lines[moment]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await asyncio.sleep(0.1)
        await proxy.close()
        left = {
            task for task in asyncio.all_tasks() - before if "connected" not in repr(task) and "echo" not in repr(task)
        }
        assert (len(proxy), len(proxy._service._admissions)) == (0, 0)
        await asyncio.sleep(0)
        assert {task for task in left if not task.done()} == set()
        for connection in sockets:
            connection.close()
        with pytest.raises(ConnectionError):
            await world.connect(port)

    play(scene)


def test_it_serves_on_several_sockets(play: Play) -> None:
    async def scene(world: World) -> None:
        proxy, port = await serve(world, world.outlet())
        second = world.listener()
        await proxy.serve(second)
        for at in (port, second.getsockname()[1]):
            client = await world.connect(at)
            await client.say(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 403 ")

    play(scene)
