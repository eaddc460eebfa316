"""Every conversation is held three times: with a task from the start, on the shortcut, and where the server is late.

Whoever is at either end must not be able to tell which it was.
"""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from typing import TYPE_CHECKING, TypeAlias

import pytest

from stockade.network import arrival
from stockade.network.credentials import Entrance, Tokens
from stockade.network.limits import ProxyLimits
from stockade.network.proxy import Proxy
from stockade.policy.network_rules import NetworkRules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.network.conftest import Canary, Client, Handler, Play, Reader, World, Writer

    from stockade.network.environment import Credential
    from stockade.network.service import Visit

LANES = ("task", "shortcut", "late")
LIMITS = ProxyLimits(handshake_seconds=0.3, next_seconds=0.3, linger_seconds=0.2)
#: A connection that is closed without anything to linger for is reset.
AT_ONCE = b"\x01\x00\x00\x00\x00\x00\x00\x00"


class Stage:
    """A proxy that knows one command and allows one server, on one of the lanes."""

    def __init__(self, world: World, canary: Canary, limits: ProxyLimits) -> None:
        self.world = world
        self.canary = canary
        self.tokens = Tokens()
        self.credential = self.tokens.issue("c1")
        self.outlet = world.outlet(f"127.0.0.1:{canary.port} allowed.test")
        self.proxy = Proxy(self.outlet, Entrance(self.tokens.authenticate), limits=limits)
        self.service = self.proxy._service
        self.tasks = 0
        self.port = 0

    async def start(self, lane: str) -> None:
        listener = self.world.listener()
        self.world.on_close(self.proxy.close)
        if lane == "task":
            self.service._shortcuts = None
        spawn = self.service._spawn

        def counted(visit: Visit, work: Callable[[Visit], Awaitable[None]]) -> None:
            self.tasks += 1
            spawn(visit, work)

        self.service._spawn = counted  # type: ignore[method-assign] # to see which lane it was
        await self.proxy.serve(listener)
        self.port = listener.getsockname()[1]

    def head(self, host: str = "127.0.0.1", extra: bytes = b"", credential: Credential | None = None) -> bytes:
        known = credential or self.credential
        line = b"CONNECT %b:%d HTTP/1.1\r\nHost: x\r\n" % (host.encode(), self.canary.port)
        word = b64encode(f"{known.user}:{known.token}".encode())
        return line + b"Proxy-Authorization: Basic " + word + b"\r\n" + extra + b"\r\n"

    async def connect(self) -> Client:
        return await self.world.connect(self.port)

    async def tunnel(self) -> Client:
        client = await self.connect()
        await client.say(self.head())
        assert await client.head() == b"HTTP/1.1 200 Connection established\r\n\r\n"
        return client

    async def over(self) -> tuple[int, bytes, list[tuple[str, str, str, int]]]:
        """Wait until nothing is left, and return what the server has seen."""
        await self.world.until(lambda: not len(self.proxy) and not len(self.service._admissions))
        await self.world.until(lambda: not self.canary.open)
        assert self.service._admissions._commands == {}
        return self.canary.connections, bytes(self.canary.received), self.world.told()


Talk: TypeAlias = "Callable[[Stage], Awaitable[object]]"


async def says_hello(canary: Canary, reader: Reader, writer: Writer) -> None:
    writer.write(b"hello")
    writer.write_eof()
    canary.received += await reader.read()


async def closes(_canary: Canary, _reader: Reader, _writer: Writer) -> None:
    return


async def answers_late(canary: Canary, reader: Reader, writer: Writer) -> None:
    canary.received += await reader.read()
    writer.write(b"late answer")


async def echo(canary: Canary, reader: Reader, writer: Writer) -> None:
    while data := await reader.read(65536):
        canary.received += data
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def speak(stage: Stage) -> object:
    client = await stage.tunnel()
    await client.say(b"hello")
    heard = await client.hear(5)
    client.writer.write_eof()
    return heard, await client.rest(), await stage.over()


async def speak_early(stage: Stage) -> object:
    client = await stage.connect()
    await client.say(stage.head() + b"early" * 1000)
    head = await client.head()
    heard = await client.hear(5000)
    client.writer.write_eof()
    return head, heard, await client.rest(), await stage.over()


async def speak_early_and_end(stage: Stage) -> object:
    client = await stage.connect()
    client.writer.write(stage.head() + b"early")
    client.writer.write_eof()
    return await client.rest(), await stage.over()


async def speak_in_drops(stage: Stage) -> object:
    client = await stage.connect()
    for byte in stage.head() + b"early":
        await client.say(bytes((byte,)))
        await asyncio.sleep(0)
    head = await client.head()
    heard = await client.hear(5)
    client.writer.write_eof()
    return head, heard, await client.rest(), await stage.over()


async def speak_slowly(stage: Stage) -> object:
    client = await stage.connect()
    await asyncio.sleep(0.05)
    await client.say(stage.head())
    head = await client.head()
    client.writer.write_eof()
    return head, await client.rest(), await stage.over()


async def hear(stage: Stage) -> object:
    client = await stage.tunnel()
    heard = await client.rest()
    client.writer.write_eof()
    return heard, await stage.over()


async def end_and_hear(stage: Stage) -> object:
    client = await stage.tunnel()
    await client.say(b"request")
    client.writer.write_eof()
    return await client.rest(), await stage.over()


async def ask_a_stranger(stage: Stage) -> object:
    client = await stage.connect()
    return await client.ask(stage.head("evil.test")), await stage.over()


async def ask_a_name(stage: Stage) -> object:
    client = await stage.connect()
    await client.say(stage.head("allowed.test"))
    head = await client.head()
    client.writer.write_eof()
    return head, await client.rest(), await stage.over()


async def ask_an_absent_server(stage: Stage) -> object:
    absent = stage.world.listener()
    port = absent.getsockname()[1]
    absent.close()
    rules = stage.world.outlet(f"127.0.0.1:{port}").gate.rules
    stage.proxy.update(rules)
    client = await stage.connect()
    answer = await client.ask(stage.head().replace(b":%d " % stage.canary.port, b":%d " % port))
    return answer.replace(b"%d" % port, b"PORT"), await stage.over()


async def authenticate_badly(stage: Stage) -> object:
    heard = []
    for old, new in ((b"Basic ", b"Bearer "), (b"Basic ", b"Basic AAAA"), (b"Proxy-Auth", b"X-Auth")):
        client = await stage.connect()
        heard.append(await client.ask(stage.head().replace(old, new)))
    return heard, await stage.over()


async def be_malformed(stage: Stage) -> object:
    heard = []
    head, server = stage.head(), b":%d" % stage.canary.port
    for bad in (
        head.replace(b"\r\n", b"\n"),
        head.replace(b"1.1", b"2.0"),
        head.replace(b"Host", b"Host "),
        head.replace(server, b""),
        head.replace(server, b":0" + server[1:]),
        head.replace(b"127", b"user@127"),
        stage.head(extra=b"Content-Length: 5\r\n") + b"hello",
        stage.head(extra=b"X: " + b"x" * 70_000 + b"\r\n"),
        b"\x16\x03\x01" + head,
        b"\x04" + head,
        b"\x05" + head,
    ):
        client = await stage.connect()
        heard.append(await client.ask(bad))
    return heard, await stage.over()


async def be_unusual(stage: Stage) -> object:
    heard = []
    for extra in (b"Content-Length: 0\r\n", b"Connection: close\r\n", b"User-Agent: curl/8\r\n", b"X: " + b"x" * 3000):
        client = await stage.connect()
        await client.say(stage.head(extra=extra.removesuffix(b"\r\n") + b"\r\n").replace(b"1.1\r", b"1.0\r"))
        heard.append(await client.head())
        client.writer.write_eof()
        heard.append(await client.rest())
    return heard, await stage.over()


async def say_nothing(stage: Stage) -> object:
    clients = [await stage.connect() for _ in range(3)]
    await clients[0].say(b"CONNECT ")
    clients[1].writer.write_eof()
    return [await client.rest() for client in clients], await stage.over()


async def come_too_often(stage: Stage) -> object:
    first = await stage.tunnel()
    second = await stage.connect()
    answer = await second.ask(stage.head())
    other = stage.tokens.issue("c2")
    third = await stage.connect()
    await third.say(stage.head(credential=other))
    heard = (await third.head())[:12]
    for client in (first, third):
        client.writer.transport.abort()
    await stage.world.until(lambda: not len(stage.proxy))
    again = await stage.tunnel()
    again.writer.write_eof()
    return answer, heard, await again.rest(), await stage.over()


async def change_rules(stage: Stage) -> object:
    rules = stage.outlet.gate.rules
    first = await stage.tunnel()
    stage.proxy.update(NetworkRules())
    second = await stage.connect()
    answer = await second.ask(stage.head())
    await first.say(b"still here")
    heard = await first.hear(10)
    stage.proxy.update(rules)
    third = await stage.tunnel()
    for client in (first, third):
        client.writer.write_eof()
    return answer, heard, await first.rest(), await third.rest(), await stage.over()


async def lose_the_credential(stage: Stage) -> object:
    first = await stage.tunnel()
    stage.tokens.revoke(stage.credential)
    second = await stage.connect()
    answer = await second.ask(stage.head())
    await first.say(b"still here")
    heard = await first.hear(10)
    stage.tokens.add(stage.credential, "c1")
    third = await stage.tunnel()
    for client in (first, third):
        client.writer.write_eof()
    return answer, heard, await first.rest(), await third.rest(), await stage.over()


def vanish(client: Client) -> None:
    client.writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    client.writer.transport.abort()


async def vanish_at_once(stage: Stage) -> object:
    for _ in range(5):
        vanish(await stage.connect())
    return await stage.over()


async def vanish_in_the_head(stage: Stage) -> object:
    for size in (1, 10, len(stage.head()) - 1):
        client = await stage.connect()
        await client.say(stage.head()[:size])
        await asyncio.sleep(0.01)
        vanish(client)
    return await stage.over()


async def vanish_after_the_head(stage: Stage) -> object:
    for turns in range(8):
        client = await stage.connect()
        await client.say(stage.head())
        for _ in range(turns):
            await asyncio.sleep(0)
        vanish(client)
    await stage.over()
    return None  # how many of them reached the server is a matter of luck


async def vanish_in_the_tunnel(stage: Stage) -> object:
    client = await stage.tunnel()
    await client.say(b"hello")
    await client.hear(5)
    vanish(client)
    return await stage.over()


async def vanish_after_the_end(stage: Stage) -> object:
    client = await stage.tunnel()
    client.writer.write_eof()
    await asyncio.sleep(0.02)
    vanish(client)
    return await stage.over()


async def many(stage: Stage) -> object:
    async def one(number: int) -> bytes:
        client = await stage.tunnel()
        await client.say(b"%06d" % number)
        heard = await client.hear(6)
        if number % 2:
            client.writer.write_eof()
            heard += await client.rest()
        client.writer.transport.abort()
        return heard

    heard = await asyncio.gather(*(one(number) for number in range(100)))
    connections, received, told = await stage.over()
    return heard, connections, len(received), told


def held(
    play: Play, lane: str, talk: Talk, server: Handler, limits: ProxyLimits = LIMITS, tasks: int | None = None
) -> str:
    """Hold a conversation; return what was heard of it, in which the server's port says nothing."""
    heard: list[str] = []

    async def scene(world: World) -> None:
        canary = await world.canary(server)
        stage = Stage(world, canary, limits)
        await stage.start(lane)
        heard.append(repr(await talk(stage)).replace(str(canary.port), "PORT"))
        if lane == "shortcut" and tasks is not None:
            assert stage.tasks == tasks

    play(scene)
    return heard[0]


@pytest.mark.parametrize(
    ("talk", "server", "tasks"),
    [
        pytest.param(speak, echo, 0, id="both speak"),
        pytest.param(speak_early, echo, 0, id="data with the head"),
        pytest.param(speak_early_and_end, echo, 0, id="data and the end with the head"),
        pytest.param(speak_early_and_end, says_hello, 0, id="both end before they are joined"),
        pytest.param(speak_in_drops, echo, 1, id="a head in drops"),
        pytest.param(speak_slowly, echo, 0, id="a head that takes its time"),
        pytest.param(hear, says_hello, 0, id="the server speaks first"),
        pytest.param(hear, closes, 0, id="the server hangs up"),
        pytest.param(end_and_hear, answers_late, 0, id="a half-closed connection"),
        pytest.param(ask_a_stranger, echo, 1, id="refused"),
        pytest.param(ask_a_name, echo, 1, id="a name"),
        pytest.param(ask_an_absent_server, echo, 1, id="no server"),
        pytest.param(authenticate_badly, echo, 3, id="no credential"),
        pytest.param(be_malformed, echo, 11, id="malformed"),
        pytest.param(be_unusual, echo, 0, id="unusual"),
        pytest.param(say_nothing, echo, 3, id="nothing"),
        pytest.param(change_rules, echo, 1, id="other rules"),
        pytest.param(lose_the_credential, echo, 1, id="a credential taken back"),
        pytest.param(vanish_at_once, echo, None, id="gone at once"),
        pytest.param(vanish_in_the_head, echo, 3, id="gone in the head"),
        pytest.param(vanish_after_the_head, echo, None, id="gone after the head"),
        pytest.param(vanish_in_the_tunnel, echo, 0, id="gone in the tunnel"),
        pytest.param(vanish_after_the_end, echo, 0, id="gone after the end"),
        pytest.param(many, echo, 0, id="many"),
    ],
)
def test_nobody_can_tell_the_lanes_apart(
    play: Play, monkeypatch: pytest.MonkeyPatch, talk: Talk, server: Handler, tasks: int | None
) -> None:
    heard: dict[str, str] = {}
    for lane in LANES:
        if lane == "late":
            monkeypatch.setattr(arrival, "stands", lambda _connection: False)
        heard[lane] = held(play, lane, talk, server, tasks=tasks)
    assert heard["shortcut"] == heard["task"]
    assert heard["late"] == heard["task"]


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(LIMITS.but(per_command=1), id="of a command"),
        pytest.param(LIMITS.but(connections=1), id="in all"),
    ],
)
def test_connections_are_counted_alike(play: Play, limits: ProxyLimits) -> None:
    first, second = (held(play, lane, come_too_often, echo, limits) for lane in ("task", "shortcut"))
    assert "Service Unavailable" in first
    assert second == first


def test_a_server_that_is_not_there_is_dialled_once(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(echo)
        stage = Stage(world, canary, LIMITS)
        await stage.start("shortcut")
        (await stage.tunnel()).writer.write_eof()
        await stage.over()
        assert (canary.connections, stage.tasks) == (1, 1)

    monkeypatch.setattr(arrival, "stands", lambda _connection: False)
    play(scene)


def test_a_fault_ends_one_connection(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        stage = Stage(world, await world.canary(echo), LIMITS)
        await stage.start("shortcut")

        def broken(_data: bytes, _ticket: object) -> None:
            message = "a fault of ours"
            raise ValueError(message)

        with monkeypatch.context() as patch:
            patch.setattr(stage.service._shortcuts, "find", broken)
            assert await (await stage.connect()).ask(stage.head()) == b""
        assert [fault["message"] for fault in world.faults] == ["a connection was dropped"]
        world.faults.clear()
        (await stage.tunnel()).writer.write_eof()
        await stage.over()

    play(scene)


def test_nothing_is_left_of_who_waits_once_it_is_closed(play: Play) -> None:
    async def scene(world: World) -> None:
        stage = Stage(world, await world.canary(echo), LIMITS)
        await stage.start("shortcut")
        clients = [await stage.connect() for _ in range(3)]
        await world.until(lambda: len(stage.service.arrivals) == 3)
        await stage.proxy.close()
        assert (len(stage.proxy), len(stage.service._admissions)) == (0, 0)
        assert [await client.rest() for client in clients] == [b"", b"", b""]

    play(scene)
