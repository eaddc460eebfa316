from __future__ import annotations

import asyncio
import random
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import pytest

from stockade.network.dns import frame
from stockade.network.fake_address import IPV4_NETWORK, IPV6_NETWORK, FakeAddresses
from stockade.network.gate import Answer, Choice
from stockade.network.limits import ProxyLimits
from stockade.network.name_server import Answerer, NameServer
from stockade.policy.host import Host

if TYPE_CHECKING:
    from tests.network.conftest import Client, Play, World

A, AAAA, PTR, TXT, HTTPS = 1, 28, 12, 16, 65
FINE, NO_SUCH_NAME, FAILED = 0, 3, 2


def question(name: str, kind: int = A, number: int = 7) -> bytes:
    labels = b"".join(bytes((len(label),)) + label for label in name.encode("latin-1").split(b".") if label)
    head = number.to_bytes(2, "big") + b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    return head + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\x01"


def read(answer: bytes) -> tuple[int, list[str]]:
    """Return the outcome and the addresses of an answer."""
    code, count = answer[3] & 0xF, int.from_bytes(answer[6:8], "big")
    at = 12 + answer[12:].index(b"\0") + 5
    found = []
    for _ in range(count):
        size = int.from_bytes(answer[at + 10 : at + 12], "big")
        found.append(str(ip_address(answer[at + 12 : at + 12 + size])))
        at += 12 + size
    return code, found


@pytest.mark.parametrize(
    ("name", "kind", "code", "addresses", "told"),
    [
        pytest.param("allowed.test", A, FINE, ["198.18.1.0"], [], id="IPv4"),
        pytest.param("aLLowed.TEST", AAAA, FINE, ["fd73:746f:636b::100"], [], id="IPv6"),
        pytest.param("allowed.test", TXT, FINE, [], [], id="no such record"),
        pytest.param("allowed.test", HTTPS, FINE, [], [], id="no service record, and so no encrypted hello"),
        pytest.param("port.test", A, FINE, ["198.18.1.0"], [], id="allowed on one port"),
        pytest.param("evil.test", A, NO_SUCH_NAME, [], ["evil.test"], id="not allowed"),
        pytest.param("evil.test", TXT, NO_SUCH_NAME, [], ["evil.test"], id="not allowed, nor any record"),
        pytest.param("secret.allowed.test", A, NO_SUCH_NAME, [], ["secret.allowed.test"], id="below an allowed one"),
        pytest.param("denied.test", A, NO_SUCH_NAME, [], ["denied.test"], id="denied"),
        pytest.param("a b.test", A, NO_SUCH_NAME, [], ['"a b.test"'], id="malformed"),
        pytest.param("10.0.0.1", A, NO_SUCH_NAME, [], [], id="an address is no name"),
        pytest.param("localhost", A, FINE, ["127.0.0.1"], [], id="localhost"),
        pytest.param("x.LOCALHOST", AAAA, FINE, ["::1"], [], id="below localhost"),
        pytest.param("1.0.18.198.in-addr.arpa", PTR, NO_SUCH_NAME, [], [], id="the name of an address"),
    ],
)
def test_answers_come_from_policy(
    play: Play, name: str, kind: int, code: int, addresses: list[str], told: list[str]
) -> None:
    async def scene(world: World) -> None:
        outlet = world.outlet("allowed.test port.test:22 10.0.0.1", "denied.test")
        answer = Answerer(outlet, FakeAddresses()).answer(question(name, kind), over_udp=True)
        assert (read(answer), [refusal[0] for refusal in world.told()]) == ((code, addresses), told)
        assert world.looked_up == []

    play(scene)


def test_a_name_that_somebody_could_be_asked_about_has_an_address(play: Play) -> None:
    async def ask(_host: str, _port: int, _command: str) -> Answer:
        return Answer(Choice.DENY)

    async def scene(world: World) -> None:
        names = FakeAddresses()
        code, addresses = read(Answerer(world.outlet(ask=ask), names).answer(question("any.test"), over_udp=True))
        assert (code, [names.name_of(address) for address in addresses]) == (FINE, [Host.parse("any.test")])
        assert IPv4Address(addresses[0]) in IPV4_NETWORK

    play(scene)


def test_when_no_address_is_left_it_fails(play: Play) -> None:
    async def scene(world: World) -> None:
        names = FakeAddresses(1)
        held = names.assign(Host.parse("held.test"))
        assert held is not None
        names.hold(str(held.ipv4))
        answerer = Answerer(world.outlet("allowed.test"), names)
        assert read(answerer.answer(question("allowed.test"), over_udp=True)) == (FAILED, [])

    play(scene)


class Asker(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    def datagram_received(self, data: bytes, _address: object) -> None:
        self.heard.put_nowait(data)


async def over_tcp(client: Client) -> bytes:
    return await client.hear(int.from_bytes(await client.hear(2), "big"))


async def serving(world: World) -> tuple[NameServer, tuple[str, int], int]:
    server = NameServer(world.outlet("allowed.test"), FakeAddresses(), limits=ProxyLimits(linger_seconds=0.1))
    world.on_close(server.close)
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", 0))
    listener = world.listener()
    await server.serve_udp(bound)
    await server.serve_tcp(listener)
    return server, bound.getsockname(), listener.getsockname()[1]


def test_it_answers_over_udp_and_tcp(play: Play) -> None:
    async def scene(world: World) -> None:
        _, address, port = await serving(world)
        transport, asker = await asyncio.get_running_loop().create_datagram_endpoint(Asker, remote_addr=address)
        transport.sendto(question("allowed.test", AAAA, 9))
        answer = await asyncio.wait_for(asker.heard.get(), 5)
        code, addresses = read(answer)
        assert (answer[:2], code, IPv6Address(addresses[0]) in IPV6_NETWORK) == (b"\0\x09", FINE, True)
        transport.close()
        client = await world.connect(port)
        await client.say(frame(question("allowed.test")) + frame(question("evil.test"))[:5])
        assert read(await over_tcp(client)) == (FINE, ["198.18.1.0"])
        await client.say(frame(question("evil.test"))[5:])
        assert read(await over_tcp(client)) == (NO_SUCH_NAME, [])
        client.writer.write_eof()
        assert await client.rest() == b""
        assert world.told() == [("evil.test", "NOBODY_TO_ASK", "", 1)]

    play(scene)


def test_no_message_breaks_it(play: Play) -> None:
    async def scene(world: World) -> None:
        _, address, port = await serving(world)
        transport, asker = await asyncio.get_running_loop().create_datagram_endpoint(Asker, remote_addr=address)
        chance = random.Random(7)  # noqa: S311 - no secret
        for _ in range(500):
            data = bytearray(question("allowed.test"))
            for _ in range(chance.randrange(5)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            transport.sendto(bytes(data[: chance.randrange(len(data) + 1)]))
        while True:
            transport.sendto(question("allowed.test", A, 0xABCD))
            answer = await asyncio.wait_for(asker.heard.get(), 5)
            if answer[:2] == b"\xab\xcd":
                break
        assert read(answer) == (FINE, ["198.18.1.0"])
        transport.close()
        client = await world.connect(port)
        assert await client.ask(b"\xff\xff" + bytes(100)) == b""

    play(scene)


def test_once_closed_nothing_is_answered(play: Play) -> None:
    async def scene(world: World) -> None:
        server, _, port = await serving(world)
        await server.close()
        with pytest.raises(ConnectionError):
            await world.connect(port)

    play(scene)
