from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.network.limits import ProxyLimits
from stockade.network.proxy import Proxy

if TYPE_CHECKING:
    from tests.network.conftest import Canary, Client, Play, Reader, World, Writer

    from stockade.network.outlet import Outlet

CALM = ProxyLimits(linger_seconds=0.5)
BIG = 1_000_000


async def http(canary: Canary, reader: Reader, writer: Writer) -> None:
    """Answer requests by their path, and remember them."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        canary.received += head
        body = await _body(head, reader)
        path = head.split(b" ")[1].rpartition(b"/")[2]
        writer.write(_ANSWERS.get(path, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
        if path == b"size":
            size = b"%d" % len(body)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(size), size))
        await writer.drain()
        if path in {b"until-close", b"cut", b"garbage", b"close"}:
            return
        if path == b"upgrade":
            while data := await reader.read(65536):
                writer.write(data.upper())


async def _body(head: bytes, reader: Reader) -> bytes:
    lower = head.lower()
    if b"content-length: " in lower:
        return await reader.readexactly(int(lower.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    if b"transfer-encoding: chunked" not in lower:
        return b""
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


_CHUNK = b"8000\r\n" + bytes(0x8000) + b"\r\n"
_ANSWERS = {
    b"size": b"",
    b"length": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG + bytes(BIG),
    b"chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNK * 32 + b"0\r\n\r\n",
    b"until-close": b"HTTP/1.1 200 OK\r\n\r\n" + bytes(BIG),
    b"cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
    b"garbage": b"SSH-2.0-OpenSSH_9\r\n\r\n",
    b"close": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"interim": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"upgrade": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst",
}


async def serve(world: World, outlet: Outlet, limits: ProxyLimits = CALM) -> tuple[Proxy, int]:
    proxy = Proxy(outlet, limits=limits)
    listener = world.listener()
    world.on_close(proxy.close)
    await proxy.serve(listener)
    return proxy, listener.getsockname()[1]


async def met(world: World, more: str = "", limits: ProxyLimits = CALM) -> tuple[Canary, Client, Proxy]:
    """Return a server, and a client of the proxy through which it may be reached as allowed.test."""
    canary = await world.canary(http)
    proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port} {more}"), limits)
    return canary, await world.connect(port), proxy


def get(canary: Canary, path: str, host: str = "allowed.test", method: str = "GET", more: str = "") -> bytes:
    return f"{method} http://{host}:{canary.port}/{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


async def answer(client: Client) -> tuple[int, bytes]:
    """Read one answer that has a length or comes in chunks."""
    head = await client.head()
    return int(head.split(b" ")[1]), await _body(head, client.reader)


def test_connect_makes_a_tunnel_both_ends_of_which_close_by_themselves(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: x\r\n\r\nearly" % canary.port)
        assert await client.head() == b"HTTP/1.1 200 Connection established\r\n\r\n"
        assert await client.hear(5) == b"early"
        big = bytes(range(256)) * 8192
        client.writer.write(big)
        client.writer.write_eof()
        assert await client.rest() == big
        await world.until(lambda: not len(proxy))
        assert (bytes(canary.received), canary.open) == (b"early" + big, 0)

    play(scene)


def test_a_plain_request_reaches_its_server_under_the_name_that_was_judged(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        lines = "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nX-Own: 1\r\n"
        request = get(canary, "a?b=c", more=lines).replace(b"Host: allowed.test", b"Host: evil.test")
        await client.say(request)
        assert await answer(client) == (200, b"ok")
        head = bytes(canary.received)
        assert head == b"GET /a?b=c HTTP/1.1\r\nHost: allowed.test:%d\r\nx-own: 1\r\n\r\n" % canary.port

    play(scene)


@pytest.mark.parametrize("path", ["length", "chunked"])
def test_a_large_answer_comes_whole(play: Play, path: str) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        await client.say(get(canary, path) + get(canary, "after"))
        status, body = await answer(client)
        assert (status, body) == (200, bytes(BIG if path == "length" else 32 * 0x8000))
        assert await answer(client) == (200, b"ok")
        assert canary.connections == 1

    play(scene)


def test_an_answer_that_ends_with_the_connection_comes_whole(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        await client.say(get(canary, "until-close"))
        assert await answer(client) == (200, bytes(BIG))
        await client.say(get(canary, "after"))
        assert await answer(client) == (200, b"ok")
        assert canary.connections == 2

    play(scene)


@pytest.mark.parametrize("chunked", [True, False])
def test_a_large_request_arrives_whole(play: Play, *, chunked: bool) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        if chunked:
            request = get(canary, "size", method="POST", more="Transfer-Encoding: chunked\r\n") + _CHUNK * 32
            request, size = request + b"0\r\n\r\n", 32 * 0x8000
        else:
            request = get(canary, "size", method="PUT", more=f"Content-Length: {BIG}\r\n") + bytes(BIG)
            size = BIG
        await client.say(request + get(canary, "after"))
        assert await answer(client) == (200, b"%d" % size)
        assert await answer(client) == (200, b"ok")
        assert canary.connections == 1

    play(scene)


def test_each_request_of_a_connection_is_judged(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        await client.say(get(canary, "1") + get(canary, "2") + get(canary, "stolen", "evil.test") + get(canary, "3"))
        assert [await answer(client), await answer(client)] == [(200, b"ok")] * 2
        refused = (await client.rest()).decode()
        assert refused.startswith(f"HTTP/1.1 403 Blocked by Stockade: evil.test:{canary.port}: no rule allows it")
        assert "\r\nX-Proxy-Error: blocked-by-allowlist\r\n" in refused
        assert refused.partition("\r\n\r\n")[2] == (
            f"Stockade refused the connection to evil.test:{canary.port}.\n"
            "Why: no rule allows it, and there is nobody to ask\n"
            f'To allow it: add "evil.test:{canary.port}" to sandbox.network.allowedDomains'
            f" (stockade allow-domain evil.test:{canary.port})\n"
            "This is the sandbox's policy, not a fault of the network: trying again will not help.\n"
        )
        assert (canary.connections, canary.received.count(b"GET"), world.looked_up) == (1, 2, ["allowed.test"])
        assert b"stolen" not in canary.received
        assert world.told() == [(f"evil.test:{canary.port}", "NOBODY_TO_ASK", "", 1)]

    play(scene)


def test_another_allowed_host_gets_a_connection_of_its_own(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world, "second.test")
        for host in ("allowed.test", "second.test", "allowed.test"):
            await client.say(get(canary, "x", host))
            assert await answer(client) == (200, b"ok")
        assert canary.connections == 3
        await world.until(lambda: canary.open == 1)

    play(scene)


def test_rules_that_change_hold_for_the_next_request(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, proxy = await met(world)
        await client.say(get(canary, "1"))
        assert await answer(client) == (200, b"ok")
        gate = proxy._outlet.gate
        proxy.update(gate.rules.but(allowed=gate.rules.allowed[:1]))  # the name stays, its address does not
        refused = await client.ask(get(canary, "2"))
        assert refused.startswith(b"HTTP/1.1 403 ")
        assert b"X-Proxy-Error: blocked-address\r\n" in refused
        assert b"127.0.0.1 is a loopback address" in refused
        assert b'add "127.0.0.1:%d" to sandbox' % canary.port in refused
        assert canary.received.count(b"GET") == 1
        assert [told[1] for told in world.told()] == ["FORBIDDEN_ADDRESS"]

    play(scene)


def test_the_address_that_was_checked_is_the_one_that_is_dialled(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        answers = [["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"]]
        world.resolver._lookup = lambda _name: answers.pop(0)
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        statuses = []
        for _ in range(3):
            client = await world.connect(port)
            await client.say(b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: x\r\n\r\n" % canary.port)
            statuses.append((await client.head())[9:12])
        # Each connection resolves once: had the first one resolved again to dial, one answer would be missing.
        assert (statuses, answers, canary.connections) == ([b"200", b"403", b"403"], [], 1)

    play(scene)


def test_interim_answers_are_passed_on(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        await client.say(get(canary, "interim"))
        assert await client.head() == b"HTTP/1.1 103 Early Hints\r\n\r\n"
        assert await answer(client) == (200, b"ok")

    play(scene)


def test_an_upgrade_becomes_a_tunnel(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, proxy = await met(world)
        await client.say(get(canary, "upgrade", more="Connection: Upgrade\r\nUpgrade: websocket\r\n"))
        assert (await client.head()).startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert await client.hear(5) == b"first"
        await client.say(b"any bytes")
        assert await client.hear(9) == b"ANY BYTES"
        client.writer.close()
        await world.until(lambda: not len(proxy))

    play(scene)


def test_tls_behind_an_upgrade_names_the_server_too(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        early = b"\x15\3\1\0\2\1\0"
        await client.say(get(canary, "upgrade", more="Connection: Upgrade\r\nUpgrade: websocket\r\n"))
        assert (await client.head()).startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert await client.hear(5) == b"first"
        before = len(canary.received)
        await client.say(early)
        assert await client.was_reset()
        assert (len(canary.received), world.told()) == (before, [(f"allowed.test:{canary.port}", "OTHER_NAME", "", 1)])

    play(scene)


@pytest.mark.parametrize(
    ("path", "status"),
    [("garbage", b"HTTP/1.1 502 Bad answer of allowed.test:"), ("cut", b"HTTP/1.1 200 OK")],
)
def test_a_bad_answer_is_not_passed_on_as_a_good_one(play: Play, path: str, status: bytes) -> None:
    async def scene(world: World) -> None:
        canary, client, proxy = await met(world)
        await client.say(get(canary, path))
        assert (await client.head()).startswith(status)
        assert len(await client.rest()) < 300
        await world.until(lambda: not len(proxy))

    play(scene)


def test_a_server_that_is_not_there_is_told_of_as_no_fault_of_the_rules(play: Play) -> None:
    async def scene(world: World) -> None:
        with world.listener() as closed:
            dead = closed.getsockname()[1]
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{dead}"))
        for line in (f"CONNECT allowed.test:{dead}", f"GET http://allowed.test:{dead}/"):
            client = await world.connect(port)
            said = (await client.ask(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())).decode()
            assert said.startswith(f"HTTP/1.1 502 allowed.test:{dead} could not be reached: ")
            assert "the connection was refused" in said
        assert world.refusals == []

    play(scene)


def test_a_connection_that_its_server_closed_is_replaced(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        for _ in range(5):
            await client.say(get(canary, "close"))
            assert await answer(client) == (200, b"ok")
        assert canary.connections == 5

    play(scene)


def test_a_refused_upload_can_be_read(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, _ = await met(world)
        client.writer.write(get(canary, "x", "evil.test", "POST", f"Content-Length: {BIG}\r\n") + bytes(BIG))
        assert (await client.rest()).startswith(b"HTTP/1.1 403 ")

    play(scene)


def test_an_answer_before_the_end_of_the_request_is_passed_on(play: Play) -> None:
    async def hasty(canary: Canary, reader: Reader, writer: Writer) -> None:
        canary.received += await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
        await writer.drain()
        await reader.read()

    async def scene(world: World) -> None:
        canary = await world.canary(hasty)
        proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(get(canary, "x", method="POST", more=f"Content-Length: {BIG}\r\n") + b"some")
        assert await answer(client) == (413, b"big")
        assert await client.rest() == b""
        client.writer.close()
        await world.until(lambda: not len(proxy))

    play(scene)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(
            b"POST http://allowed.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            id="two lengths",
        ),
        pytest.param(b"GET http://allowed.test/ HTTP/1.1\nHost: a\n\n", id="bare line feed"),
        pytest.param(b"GET http://allowed.test/ HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200_000, id="endless head"),
        pytest.param(b"CONNECT allowed.test:80@evil:1 HTTP/1.1\r\nHost: a\r\n\r\n", id="user name"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(play: Play, request_: bytes) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        assert (await client.ask(request_))[:10] == b"HTTP/1.1 4"
        assert canary.connections == 0

    play(scene)


def test_a_body_that_breaks_off_breaks_the_request_off(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, proxy = await met(world)
        await client.say(get(canary, "size", method="POST", more="Content-Length: 100\r\n") + b"half")
        client.writer.write_eof()
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
        await world.until(lambda: not len(proxy) and not canary.open)

    play(scene)


def test_a_client_that_goes_away_takes_its_request_with_it(play: Play) -> None:
    async def silent(canary: Canary, reader: Reader, _writer: Writer) -> None:
        while data := await reader.read(1000):
            canary.received += data

    async def scene(world: World) -> None:
        canary = await world.canary(silent)
        proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(get(canary, "x", method="POST", more=f"Content-Length: {BIG}\r\n") + b"some")
        await world.until(lambda: canary.received.endswith(b"some"))
        client.writer.transport.abort()
        await world.until(lambda: not len(proxy) and not canary.open)

    play(scene)


def test_a_slow_reader_slows_the_server(play: Play) -> None:
    async def flood(canary: Canary, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 400000000\r\n\r\n")
        for _ in range(400):
            writer.write(bytes(1_000_000))
            await writer.drain()
            canary.received += b"."

    async def scene(world: World) -> None:
        canary = await world.canary(flood)
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(get(canary, "x"))
        await client.head()
        await asyncio.sleep(0.5)
        assert len(canary.received) < 40

    play(scene)


def test_a_slow_server_slows_the_sender(play: Play) -> None:
    async def stuck(canary: Canary, reader: Reader, _writer: Writer) -> None:
        canary.received += await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(30)

    async def scene(world: World) -> None:
        canary = await world.canary(stuck)
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(get(canary, "x", method="PUT", more="Content-Length: 400000000\r\n"))
        sent = 0
        try:
            while sent < 400:
                await asyncio.wait_for(client.say(bytes(1_000_000)), 0.5)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 40

    play(scene)


SHORT = ProxyLimits(handshake_seconds=5, next_seconds=0.2, idle_seconds=0.2, linger_seconds=0.2)


def test_a_connection_is_not_kept_forever_for_the_next_request(play: Play) -> None:
    async def scene(world: World) -> None:
        canary, client, proxy = await met(world, limits=SHORT)
        await client.say(get(canary, "x"))
        assert await answer(client) == (200, b"ok")
        assert await client.rest() == b""
        await world.until(lambda: not len(proxy) and not canary.open)

    play(scene)


@pytest.mark.parametrize("line", ["CONNECT", "GET"])
def test_what_lies_idle_is_ended(play: Play, line: str) -> None:
    async def silent(_canary: Canary, reader: Reader, _writer: Writer) -> None:
        await reader.read()
        await asyncio.sleep(30)

    async def scene(world: World) -> None:
        canary = await world.canary(silent)
        proxy, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"), SHORT)
        client = await world.connect(port)
        if line == "GET":
            assert (await client.ask(get(canary, "x"))).startswith(b"HTTP/1.1 504 ")
        else:
            await client.say(b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: x\r\n\r\n" % canary.port)
            assert (await client.head()).startswith(b"HTTP/1.1 200 ")
            assert await client.rest() == b""
        await world.until(lambda: not len(proxy))

    play(scene)
