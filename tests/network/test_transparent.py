from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from stockade.network.fake_address import FakeAddresses
from stockade.network.limits import ProxyLimits
from stockade.network.transparent import TransparentProxy
from stockade.policy.host import Host

if TYPE_CHECKING:
    import socket

    from tests.network.conftest import Canary, Play, Reader, World, Writer

LIMITS = ProxyLimits(handshake_seconds=0.3, linger_seconds=0.1)


class Place:
    """A transparent proxy whose connections are all meant to go to one address and port."""

    def __init__(self, world: World, allowed: str, *, limits: ProxyLimits = LIMITS) -> None:
        self.names = FakeAddresses()
        self.meant: tuple[str, int] | None = None
        self.outlet = world.outlet(allowed)
        self.proxy = TransparentProxy(
            self.outlet, self.names, self._original, whose=lambda _connection: "c1", limits=limits
        )
        self.listener = world.listener()
        self.port: int = self.listener.getsockname()[1]
        world.on_close(self.proxy.close)

    def fake(self, name: str, *, ipv6: bool = False) -> str:
        address = self.names.assign(Host.parse(name))
        assert address is not None
        return str(address.ipv6 if ipv6 else address.ipv4)

    def _original(self, _connection: socket.socket) -> tuple[str, int]:
        if self.meant is None:
            message = "nobody knows"
            raise OSError(message)
        return self.meant


async def place(world: World, canary: Canary, more: str = "", *, limits: ProxyLimits = LIMITS) -> Place:
    made = Place(world, f"allowed.test 127.0.0.1:{canary.port} {more}", limits=limits)
    await made.proxy.serve(made.listener)
    return made


def hello(name: str | None) -> bytes:
    """Return what a real client says first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("ipv6", [False, True])
def test_what_is_meant_for_a_name_is_carried_to_it(play: Play, *, ipv6: bool) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary)
        address = there.fake("allowed.test", ipv6=ipv6)
        there.meant = (address, canary.port)
        client = await world.connect(there.port)
        await client.say(b"any protocol")
        assert await client.hear(12) == b"any protocol"
        assert len(there.names._holds) == 1
        client.writer.write_eof()
        assert await client.rest() == b""
        await world.until(lambda: not len(there.proxy))
        assert (there.names._holds, world.looked_up, world.refusals) == ({}, ["allowed.test"], [])

    play(scene)


def test_a_server_that_speaks_first_is_heard(play: Play) -> None:
    async def greeting(_canary: Canary, reader: Reader, writer: Writer) -> None:
        writer.write(b"SSH-2.0-server\r\n")
        writer.write(await reader.readline())
        await reader.read()

    async def scene(world: World) -> None:
        canary = await world.canary(greeting)
        there = await place(world, canary)
        there.meant = (there.fake("allowed.test"), canary.port)
        client = await world.connect(there.port)
        assert await client.hear(16) == b"SSH-2.0-server\r\n"
        await client.say(b"SSH-2.0-client\r\n")
        assert await client.hear(16) == b"SSH-2.0-client\r\n"

    play(scene)


@pytest.mark.parametrize(
    ("name", "port", "reason"),
    [
        pytest.param("evil.test", 443, "NOBODY_TO_ASK", id="another name"),
        pytest.param("evil.test", 80, "NOBODY_TO_ASK", id="another name, for HTTP"),
        pytest.param("10.1.2.3", 443, "NOBODY_TO_ASK", id="an address"),
        pytest.param("198.18.9.9", 443, "NOBODY_TO_ASK", id="an address that stands for nothing"),
        pytest.param("allowed.test", 81, "FORBIDDEN_ADDRESS", id="a name that leads to loopback"),
    ],
)
def test_a_refusal_is_a_reset_at_once(play: Play, name: str, port: int, reason: str) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary)
        there.meant = (name if name[0].isdigit() else there.fake(name), port)
        client = await world.connect(there.port)
        assert await client.was_reset()
        assert world.told() == [(f"{name}:{port}", reason, "c1", 1)]
        await world.until(lambda: not len(there.proxy))
        assert (canary.connections, there.names._holds) == (0, {})

    play(scene)


def test_what_was_meant_for_nobody_knows_where_is_cut_off(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary)
        client = await world.connect(there.port)
        assert await client.rest() == b""

    play(scene)


def test_an_allowed_address_is_carried_whatever_name_tls_gives(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary)
        there.meant = ("127.0.0.1", canary.port)
        client = await world.connect(there.port)
        said = hello("any.test")
        await client.say(said)
        assert await client.hear(len(said)) == said

    play(scene)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        pytest.param(hello("allowed.test"), True, id="the same name"),
        pytest.param(hello("ALLOWED.test"), True, id="in another spelling"),
        pytest.param(hello(None), True, id="no name"),
        pytest.param(hello("evil.test"), False, id="another name"),
        pytest.param(hello("second.test"), False, id="another name, though allowed"),
        pytest.param(b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", False, id="malformed"),
        pytest.param(b"\x15\x03\x01\x00\x02\x01\x00" + hello("allowed.test"), False, id="an alert before it"),
    ],
)
def test_the_server_name_of_tls_must_be_the_one_connected_to(play: Play, said: bytes, *, passes: bool) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary, "second.test")
        there.meant = (there.fake("allowed.test"), canary.port)
        client = await world.connect(there.port)
        for at in range(0, len(said), 100):
            await client.say(said[at : at + 100])
        if passes:
            assert await client.hear(len(said)) == said
            assert world.refusals == []
        else:
            assert await client.was_reset()
            assert bytes(canary.received) == b""
            assert [(told[0], told[2]) for told in world.told()] == [(f"allowed.test:{canary.port}", "c1")]
            assert "TLS" in world.refusals[0][0].detail

    play(scene)


def test_a_hello_must_end_in_time(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary)
        there.meant = (there.fake("allowed.test"), canary.port)
        client = await world.connect(there.port)
        await client.say(hello("allowed.test")[:50])
        assert await client.rest() == b""
        assert bytes(canary.received) == b""

    play(scene)


async def http(canary: Canary, reader: Reader, writer: Writer) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        canary.received += head
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_requests_on_port_80_must_be_for_the_host_connected_to(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary(http)
        monkeypatch.setattr("stockade.network.transparent._HTTP_PORT", canary.port)
        there = await place(world, canary, "second.test")
        there.meant = (there.fake("allowed.test"), canary.port)
        client = await world.connect(there.port)
        for host in (f"allowed.test:{canary.port}", "Allowed.Test"):
            await client.say(f"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")
            assert await client.hear(2) == b"ok"
        refused = await client.ask(b"GET /stolen HTTP/1.1\r\nHost: second.test\r\n\r\n")
        assert refused.startswith(b'HTTP/1.1 403 Blocked by Stockade: its Host is "second.test", but the connection')
        assert (canary.connections, canary.received.count(b"GET /x"), canary.received.count(b"stolen")) == (1, 2, 0)
        assert [told[0] for told in world.told()] == [f"allowed.test:{canary.port}"]

    play(scene)


def test_too_many_connections_are_reset(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        there = await place(world, canary, limits=ProxyLimits(per_command=1))
        there.meant = (there.fake("allowed.test"), canary.port)
        first = await world.connect(there.port)
        await first.say(b"x")
        assert await first.hear(1) == b"x"
        assert await (await world.connect(there.port)).was_reset()

    play(scene)
