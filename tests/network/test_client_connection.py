from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from stockade.network.credentials import Entrance, Tokens
from stockade.network.gate import Answer, Choice
from stockade.network.limits import ProxyLimits
from stockade.network.proxy import Proxy

if TYPE_CHECKING:
    from tests.network.conftest import Client, Play, World

    from stockade.network.outlet import Outlet

QUICK = ProxyLimits(handshake_seconds=0.2, next_seconds=0.2, idle_seconds=0.3, linger_seconds=0.5)
CALM = ProxyLimits(linger_seconds=0.5)
REFUSED = bytes((5, 2, 0, 1, 0, 0, 0, 0, 0, 0))
CONNECTED = bytes((5, 0, 0, 1, 0, 0, 0, 0, 0, 0))


async def serve(
    world: World, outlet: Outlet, entrance: Entrance | None = None, limits: ProxyLimits = CALM
) -> tuple[Proxy, int]:
    proxy = Proxy(outlet, entrance, limits=limits)
    listener = world.listener()
    world.on_close(proxy.close)
    await proxy.serve(listener)
    return proxy, listener.getsockname()[1]


def domain(host: bytes, port: int) -> bytes:
    return bytes((5, 1, 0, 3, len(host))) + host + port.to_bytes(2, "big")


def ipv4(address: str, port: int) -> bytes:
    return bytes((5, 1, 0, 1)) + socket.inet_aton(address) + port.to_bytes(2, "big")


def ipv6(address: str, port: int) -> bytes:
    return bytes((5, 1, 0, 4)) + socket.inet_pton(socket.AF_INET6, address) + port.to_bytes(2, "big")


async def socks(client: Client, request: bytes) -> bytes:
    """Greet without a password and ask; return the reply."""
    await client.say(b"\x05\x01\x00")
    assert await client.hear(2) == b"\x05\x00"
    await client.say(request)
    return await client.hear(10)


@pytest.mark.parametrize("kind", ["domain", "ipv4", "ipv6"])
def test_socks_joins_what_is_allowed(play: Play, kind: str) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(address="::1" if kind == "ipv6" else "127.0.0.1")
        outlet = world.outlet(f"allowed.test 127.0.0.1:{canary.port} [::1]:{canary.port}")
        _, port = await serve(world, outlet)
        requests = {
            "domain": domain(b"ALLOWED.test.", canary.port),
            "ipv4": ipv4("127.0.0.1", canary.port),
            "ipv6": ipv6("::1", canary.port),
        }
        client = await world.connect(port)
        assert await socks(client, requests[kind]) == CONNECTED
        await client.say(b"hello")
        assert await client.hear(5) == b"hello"
        client.writer.write_eof()
        assert await client.rest() == b""
        assert (bytes(canary.received), world.refusals) == (b"hello", [])

    play(scene)


def test_what_comes_with_the_request_belongs_to_the_tunnel(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        _, port = await serve(world, world.outlet(f"allowed.test 127.0.0.1:{canary.port}"))
        client = await world.connect(port)
        await client.say(b"\x05\x01\x00" + domain(b"allowed.test", canary.port) + b"early")
        assert await client.hear(17) == b"\x05\x00" + CONNECTED + b"early"

    play(scene)


@pytest.mark.parametrize(
    ("request_", "asked", "reason"),
    [
        pytest.param(domain(b"other.test", 443), "other.test:443", "NOBODY_TO_ASK", id="name"),
        pytest.param(domain(b"denied.test", 443), "denied.test:443", "DENIED", id="denied"),
        pytest.param(ipv4("127.0.0.1", 22), "127.0.0.1:22", "NOBODY_TO_ASK", id="loopback"),
        pytest.param(ipv6("::ffff:169.254.169.254", 80), "169.254.169.254:80", "NOBODY_TO_ASK", id="metadata"),
        pytest.param(domain(b"bad name\r\n", 80), '"bad name\\x0d\\x0a"', "MALFORMED_HOST", id="malformed"),
        pytest.param(domain(b"allowed.test", 0), "allowed.test", "MALFORMED_PORT", id="no port"),
        pytest.param(domain(b"allowed.test", 81), "allowed.test:81", "FORBIDDEN_ADDRESS", id="leads to loopback"),
    ],
)
def test_socks_refuses_by_policy_and_it_is_told(play: Play, request_: bytes, asked: str, reason: str) -> None:
    async def scene(world: World) -> None:
        _, port = await serve(world, world.outlet("allowed.test", "denied.test 127.0.0.1:23"))
        client = await world.connect(port)
        assert await socks(client, request_) == REFUSED
        assert await client.rest() == b""
        assert world.told() == [(asked, reason, "", 1)]

    play(scene)


def test_socks_tells_failures_from_refusals(play: Play) -> None:
    async def scene(world: World) -> None:
        world.names["gone.test"] = []
        with world.listener() as closed:
            dead = closed.getsockname()[1]
        _, port = await serve(world, world.outlet(f"allowed.test gone.test 127.0.0.1:{dead}"))
        replies = {}
        for name in ("allowed.test", "gone.test"):
            replies[name] = (await socks(await world.connect(port), domain(name.encode(), dead)))[1]
        assert (replies, world.refusals) == ({"allowed.test": 5, "gone.test": 4}, [])

    play(scene)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        pytest.param(b"\x04\x01\x00\x50\x7f\x00\x00\x01user\x00", b"", id="SOCKS 4"),
        pytest.param(b"\x05\x01\x01", b"\x05\xff", id="no method in common"),
        pytest.param(b"\x05\x01\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", b"\x05\x00\x05\x07", id="BIND"),
        pytest.param(b"\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", b"\x05\x00\x05\x07", id="UDP"),
    ],
)
def test_what_socks_does_not_serve(play: Play, said: bytes, heard: bytes) -> None:
    async def scene(world: World) -> None:
        _, port = await serve(world, world.outlet("allowed.test"))
        client = await world.connect(port)
        answer = await client.ask(said)
        assert answer.startswith(heard)
        assert bool(answer) == bool(heard)

    play(scene)


def test_tls_is_told_in_plain_words(play: Play) -> None:
    async def scene(world: World) -> None:
        _, port = await serve(world, world.outlet("allowed.test"))
        client = await world.connect(port)
        answer = await client.ask(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(400))
        assert answer.startswith(b"HTTP/1.1 400 Bad Request: it begins with TLS")
        assert b"Write http:// before the proxy's address" in answer

    play(scene)


@pytest.mark.parametrize(
    "said", [b"\x00\x01\x02", b"\xff\xfe", b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x80"]
)
def test_what_is_no_request_to_a_proxy_is_told_so(play: Play, said: bytes) -> None:
    async def scene(world: World) -> None:
        _, port = await serve(world, world.outlet("allowed.test"))
        assert (await (await world.connect(port)).ask(said)).startswith(b"HTTP/1.1 400 ")

    play(scene)


def login(user: str, token: str) -> bytes:
    return bytes((1, len(user))) + user.encode() + bytes((len(token),)) + token.encode()


def basic(user: str, token: str) -> bytes:
    return b"Proxy-Authorization: Basic " + b64encode(f"{user}:{token}".encode()) + b"\r\n"


def test_a_credential_binds_the_connection_to_its_command(play: Play) -> None:
    async def scene(world: World) -> None:
        tokens = Tokens()
        first, second = tokens.issue("c1"), tokens.issue("c2")
        asked: list[tuple[str, int, str]] = []

        async def ask(host: str, port: int, command: str) -> Answer:
            asked.append((host, port, command))
            return Answer(Choice.DENY, "no")

        _, port = await serve(world, world.outlet("", "denied.test", ask=ask), Entrance(tokens.authenticate))
        client = await world.connect(port)
        await client.say(b"\x05\x02\x00\x02")
        assert await client.hear(2) == b"\x05\x02"
        await client.say(login(first.user, first.token) + domain(b"a.test", 22))
        assert await client.hear(12) == b"\x01\x00" + REFUSED
        client = await world.connect(port)
        head = b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test\r\n"
        assert (await client.ask(head + basic(second.user, second.token) + b"\r\n")).startswith(b"HTTP/1.1 403 ")
        assert asked == [("a.test", 22, "c1")]
        assert world.told() == [("a.test:22", "ANSWERED_NO", "c1", 1), ("denied.test:443", "DENIED", "c2", 1)]

    play(scene)


def test_without_the_right_credential_nothing_is_judged(play: Play) -> None:
    async def scene(world: World) -> None:
        tokens = Tokens()
        tokens.issue("c1")
        canary = await world.canary()
        outlet = world.outlet(f"allowed.test 127.0.0.1:{canary.port}")
        _, port = await serve(world, outlet, Entrance(tokens.authenticate))
        target = b"allowed.test:%d" % canary.port
        for extra in (b"", basic("c1", "wrong"), basic("c2", ""), b"Proxy-Authorization: Bearer x\r\n"):
            client = await world.connect(port)
            answer = await client.ask(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n" + extra + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 407 Proxy Authentication Required\r\n")
            assert b'Proxy-Authenticate: Basic realm="stockade"\r\n' in answer
        client = await world.connect(port)
        assert await client.ask(b"\x05\x01\x00" + domain(b"allowed.test", canary.port)) == b"\x05\xff"
        client = await world.connect(port)
        assert await client.ask(b"\x05\x01\x02" + login("c1", "wrong")) == b"\x05\x02\x01\x01"
        assert (canary.connections, world.refusals, world.looked_up) == (0, [], [])

    play(scene)


def test_each_request_on_a_connection_says_whose_it_is(play: Play) -> None:
    async def scene(world: World) -> None:
        tokens = Tokens()
        credential = tokens.issue("c1")

        async def answering(canary: object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            del canary
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        canary = await world.canary(answering)
        outlet = world.outlet(f"allowed.test 127.0.0.1:{canary.port}")
        _, port = await serve(world, outlet, Entrance(tokens.authenticate))
        client = await world.connect(port)
        line = b"GET http://allowed.test:%d/ HTTP/1.1\r\nHost: allowed.test\r\n" % canary.port
        await client.say(line + basic(credential.user, credential.token) + b"\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await client.hear(2) == b"ok"
        assert (await client.ask(line + b"\r\n")).startswith(b"HTTP/1.1 407 ")
        assert canary.connections == 1

    play(scene)


def test_a_command_with_too_many_connections_is_told(play: Play) -> None:
    async def scene(world: World) -> None:
        tokens = Tokens()
        one, two = tokens.issue("c1"), tokens.issue("c2")
        canary = await world.canary()
        outlet = world.outlet(f"allowed.test 127.0.0.1:{canary.port}")
        limits = ProxyLimits(per_command=2, linger_seconds=0.5)
        proxy, port = await serve(world, outlet, Entrance(tokens.authenticate), limits)
        target = b"allowed.test:%d" % canary.port

        async def tunnel(credential_line: bytes) -> tuple[Client, bytes]:
            client = await world.connect(port)
            await client.say(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n" + credential_line + b"\r\n")
            return client, (await client.head())[:12]

        line = basic(one.user, one.token)
        opened = [await tunnel(line) for _ in range(3)]
        assert [status for _, status in opened] == [b"HTTP/1.1 200", b"HTTP/1.1 200", b"HTTP/1.1 503"]
        assert (await tunnel(basic(two.user, two.token)))[1] == b"HTTP/1.1 200"
        client = await world.connect(port)
        answer = await client.ask(b"\x05\x01\x02" + login(one.user, one.token) + domain(b"allowed.test", canary.port))
        assert answer[:6] == b"\x05\x02\x01\x00\x05\x01"
        opened[0][0].writer.transport.abort()
        await world.until(lambda: len(proxy) <= 3)
        assert (await tunnel(line))[1] == b"HTTP/1.1 200"

    play(scene)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"\x05", b"", id="a byte of SOCKS"),
        pytest.param(b"\x05\x01\x00", b"\x05\x00", id="SOCKS without a request"),
        pytest.param(b"CONNECT allowed", b"HTTP/1.1 408 ", id="half a head"),
    ],
)
def test_a_first_request_must_come_in_time(play: Play, said: bytes, heard: bytes) -> None:
    async def scene(world: World) -> None:
        proxy, port = await serve(world, world.outlet("allowed.test"), limits=QUICK)
        client = await world.connect(port)
        assert (await client.ask(said))[: max(len(heard), 1)] == heard
        await world.until(lambda: not len(proxy))

    play(scene)


def test_slow_drops_of_a_head_do_not_count_as_a_request(play: Play) -> None:
    async def scene(world: World) -> None:
        proxy, port = await serve(world, world.outlet("allowed.test"), limits=QUICK)
        client = await world.connect(port)
        head = b"GET http://allowed.test/ HTTP/1.1\r\n" + b"X: y\r\n" * 2000
        hearing = asyncio.create_task(client.rest())
        sent = 0
        while not hearing.done() and sent < 500:
            await client.say(head[sent : sent + 1])
            sent += 1
            await asyncio.sleep(0.01)
        assert sent < 500
        assert (await hearing).startswith(b"HTTP/1.1 408 ")
        await world.until(lambda: not len(proxy))

    play(scene)
