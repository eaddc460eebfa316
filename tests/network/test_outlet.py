from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.network.dial import Pace
from stockade.network.failure import Failure
from stockade.network.limits import ProxyLimits
from stockade.network.outlet import Closed, Opened, other_name, refusal_of
from stockade.network.proxy import Proxy
from stockade.network.refusal import Cause
from stockade.policy.destination import Destination

if TYPE_CHECKING:
    from tests.network.conftest import Canary, Handler, Play, Reader, World, Writer

    from stockade.network.outlet import Outcome, Outlet


async def opened(outlet: Outlet, host: str, port: int, *, plain: bool = False) -> Outcome:
    caller = outlet.gate.caller("c1")
    return await outlet.open(caller, await outlet.decide(caller, host, port), plain=plain)


async def connect_proxy(canary: Canary, reader: Reader, writer: Writer) -> None:
    canary.received += await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
    await reader.read()


async def socks_proxy(canary: Canary, reader: Reader, writer: Writer) -> None:
    canary.received += await reader.readexactly(3)
    writer.write(b"\x05\x00")
    canary.received += await reader.readexactly(5 + 12 + 2)
    writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00first")
    await reader.read()


async def hangs_up(canary: Canary, reader: Reader, _writer: Writer) -> None:
    canary.received += await reader.read(10)


async def says_no(_canary: Canary, reader: Reader, writer: Writer) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Not\x1b[1m you\r\n\r\n")
    await writer.drain()


async def is_silent(_canary: Canary, reader: Reader, _writer: Writer) -> None:
    await reader.read()


@pytest.mark.parametrize(("scheme", "handler"), [("http", connect_proxy), ("socks5h", socks_proxy)])
def test_a_tunnel_leads_through_an_upstream_proxy(play: Play, scheme: str, handler: Handler) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(handler)
        environment = {"https_proxy": f"{scheme}://127.0.0.1:{canary.port}"}
        outcome = await opened(world.outlet("allowed.test", environment=environment), "allowed.test", 443)
        assert isinstance(outcome, Opened)
        assert await outcome.stream.read() == b"first"
        assert b"allowed.test" in canary.received
        assert (outcome.asks_proxy, world.looked_up) == (scheme == "http", [])
        outcome.stream.abort()

    play(scene)


def test_a_plain_request_is_asked_of_the_upstream_proxy_itself(play: Play) -> None:
    async def answering(canary: Canary, reader: Reader, writer: Writer) -> None:
        canary.received += await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.read()

    async def scene(world: World) -> None:
        canary = await world.canary(answering)
        environment = {"http_proxy": f"http://u:p@127.0.0.1:{canary.port}"}
        proxy = Proxy(world.outlet("allowed.test", environment=environment), limits=ProxyLimits(linger_seconds=0.1))
        world.on_close(proxy.close)
        listener = world.listener()
        await proxy.serve(listener)
        client = await world.connect(listener.getsockname()[1])
        await client.say(b"GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")
        head = b"GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
        assert bytes(canary.received) == head

    play(scene)


@pytest.mark.parametrize(
    ("scheme", "handler", "failure", "word"),
    [
        ("http", hangs_up, Failure.UPSTREAM_BROKEN, "it closed the connection"),
        ("http", says_no, Failure.UPSTREAM_REFUSED, "it answered 403 Not\\x1b[1m you"),
        ("http", is_silent, Failure.TIMED_OUT, "the upstream proxy said nothing"),
        ("https", connect_proxy, Failure.TIMED_OUT, "the upstream proxy said nothing"),
        ("https", hangs_up, Failure.UPSTREAM_BROKEN, "it closed the connection"),
    ],
)
def test_an_upstream_proxy_that_fails_is_a_failure(
    play: Play, scheme: str, handler: Handler, failure: Failure, word: str
) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(handler)
        environment = {"https_proxy": f"{scheme}://127.0.0.1:{canary.port}"}
        outlet = world.outlet("allowed.test", environment=environment, pace=Pace(seconds=0.3))
        outcome = await opened(outlet, "allowed.test", 443)
        assert isinstance(outcome, Closed)
        assert (outcome.failure, word in outcome.refusal.phrase) == (failure, True)
        assert world.refusals == []

    play(scene)


def test_where_a_name_leads_may_close_it(play: Play) -> None:
    async def scene(world: World) -> None:
        outcome = await opened(world.outlet("allowed.test"), "allowed.test", 80)
        assert isinstance(outcome, Closed)
        assert (outcome.failure, outcome.refusal.cause) == (None, Cause.ADDRESS)
        assert world.told() == [("allowed.test:80", "FORBIDDEN_ADDRESS", "c1", 1)]

    play(scene)


def test_a_connection_that_stands_is_judged_again_by_its_address(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        outlet = world.outlet(f"allowed.test 127.0.0.1:{canary.port}")
        caller = outlet.gate.caller()
        decision = await outlet.decide(caller, "allowed.test", canary.port)
        outcome = await outlet.open(caller, decision)
        assert isinstance(outcome, Opened)
        assert outlet.still_allows(decision, outcome)
        outlet.update(outlet.gate.rules.but(allowed=outlet.gate.rules.allowed[:1]))
        assert not outlet.still_allows(decision, outcome)
        outcome.stream.abort()
        await asyncio.sleep(0)

    play(scene)


def test_another_name_than_the_one_connected_to_is_a_denial_in_words() -> None:
    decision = other_name(Destination.parse("a.test:443"), 'its TLS server name is "b.test"')
    assert str(decision) == (
        'denied: a.test:443: the connection was made for one name and used for another: its TLS server name is "b.test"'
    )
    assert refusal_of(decision).cause is Cause.OTHER_HOST
