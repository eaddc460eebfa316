from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.network.exchange import has_body
from stockade.network.http_message import CHUNKED, NO_BODY, Body, BodyKind, Request
from stockade.network.limits import ProxyLimits
from stockade.network.proxy import Proxy

if TYPE_CHECKING:
    from tests.network.conftest import Canary, Play, Reader, World, Writer


@pytest.mark.parametrize(
    ("body", "expected"),
    [(NO_BODY, False), (CHUNKED, True), (Body(BodyKind.LENGTH, 0), False), (Body(BodyKind.LENGTH, 1), True)],
)
def test_whether_a_request_has_a_body(body: Body, *, expected: bool) -> None:
    assert has_body(Request(b"POST", "a.test", "80", b"/", (), body)) is expected


async def once(canary: Canary, reader: Reader, writer: Writer) -> None:
    """Answer the first request of a connection, and close it when the second one has come."""
    head = await reader.readuntil(b"\r\n\r\n")
    canary.received += head.split(b" ")[0] + b" "
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "more", "status"),
    [
        pytest.param("GET", "", b"200", id="is asked anew, where that does no harm"),
        pytest.param("POST", "", b"502", id="not where it may"),
        pytest.param("GET", "Content-Length: 1\r\n", b"502", id="nor with a body, of which nothing is kept"),
    ],
)
def test_a_server_that_closed_before_it_answered(play: Play, method: str, more: str, status: bytes) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(once)
        proxy = Proxy(world.outlet(f"allowed.test 127.0.0.1:{canary.port}"), limits=ProxyLimits(linger_seconds=0.1))
        world.on_close(proxy.close)
        listener = world.listener()
        await proxy.serve(listener)
        client = await world.connect(listener.getsockname()[1])
        line = f"http://allowed.test:{canary.port}/ HTTP/1.1\r\nHost: x\r\n"
        await client.say(f"GET {line}\r\n".encode())
        await client.head()
        assert await client.hear(2) == b"ok"
        await client.say(f"{method} {line}{more}\r\n{'x' if more else ''}".encode())
        assert (await client.head())[9:12] == status
        again = status == b"200"
        assert (canary.connections, bytes(canary.received)) == ((2, b"GET GET ") if again else (1, b"GET "))

    play(scene)


def test_an_idle_client_that_reads_nothing_is_reset(play: Play) -> None:
    async def flood(_canary: Canary, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + bytes(100_000_000))
        await writer.drain()

    async def scene(world: World) -> None:
        canary = await world.canary(flood)
        limits = ProxyLimits(idle_seconds=0.2, linger_seconds=0.1)
        proxy = Proxy(world.outlet(f"allowed.test 127.0.0.1:{canary.port}"), limits=limits)
        world.on_close(proxy.close)
        listener = world.listener()
        await proxy.serve(listener)
        client = await world.connect(listener.getsockname()[1])
        await client.say(b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % canary.port)
        await asyncio.sleep(0.1)
        assert len(proxy) == 1
        await world.until(lambda: not len(proxy))

    play(scene)
