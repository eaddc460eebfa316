from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.network.credentials import Entrance
from stockade.network.gate import Answer, Choice
from stockade.network.limits import Admissions, ProxyLimits, Ticket
from stockade.network.resolver import Resolver
from stockade.network.shortcut import Shortcuts
from stockade.policy.host import Host

if TYPE_CHECKING:
    from tests.network.conftest import Play, World

HOST = b"Host: x\r\n\r\n"
TUNNEL = b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n" + HOST
ANSWER = b"HTTP/1.1 200 Connection established\r\n\r\n"


def ticket(limits: ProxyLimits | None = None) -> Ticket:
    place = Admissions(limits or ProxyLimits()).admit()
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        pytest.param(TUNNEL, b"", id="plain"),
        pytest.param(TUNNEL + b"early\r\n\r\n", b"early\r\n\r\n", id="with data for the server"),
        pytest.param(TUNNEL.replace(b"1.1", b"1.0"), b"", id="HTTP/1.0"),
        pytest.param(TUNNEL.replace(b"Host", b"X: " + b"x" * 5000 + b"\r\nHost"), b"", id="a long head"),
        pytest.param(TUNNEL[:-2], None, id="half a head"),
        pytest.param(TUNNEL.replace(b"CONNECT", b"GET"), None, id="another method"),
        pytest.param(TUNNEL.replace(b"\r\nHost", b"\nHost"), None, id="malformed"),
        pytest.param(b"CONNECT evil.test:80 HTTP/1.1\r\n" + HOST, None, id="refused"),
        pytest.param(b"CONNECT allowed.test:80 HTTP/1.1\r\n" + HOST, None, id="a name that nobody has asked for"),
        pytest.param(b"\x05\x01\x00", None, id="SOCKS"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_only_what_needs_no_waiting_is_one(play: Play, data: bytes, rest: bytes | None) -> None:
    async def scene(world: World) -> None:
        shortcuts = Shortcuts(world.outlet("127.0.0.1:80 allowed.test"), Entrance())
        for _ in range(2):  # the second time from memory
            found = shortcuts.find(data, ticket())
            if rest is None:
                assert found is None
                continue
            assert found is not None
            assert (str(found.route.destination), found.answer, found.rest) == ("127.0.0.1:80", ANSWER, rest)
        assert (world.told(), world.looked_up) == ([], [])

    play(scene)


@pytest.mark.parametrize(
    ("addresses", "one"),
    [
        pytest.param(["8.8.8.8"], True, id="one address"),
        pytest.param(["8.8.8.8", "8.8.4.4"], False, id="several to choose from"),
        pytest.param(["127.0.0.1"], False, id="an address that the guard forbids"),
        pytest.param(["127.0.0.1", "8.8.8.8"], True, id="one that it does not forbid"),
    ],
)
def test_a_name_is_one_as_long_as_its_address_is_known(play: Play, addresses: list[str], *, one: bool) -> None:
    async def scene(world: World) -> None:
        now = 0.0
        world.names["allowed.test"] = addresses
        world.resolver = Resolver(world._lookup, clock=lambda: now)
        shortcuts = Shortcuts(world.outlet("allowed.test"), Entrance())
        head = TUNNEL.replace(b"127.0.0.1", b"allowed.test")
        assert shortcuts.find(head, ticket()) is None
        await world.resolver.resolve(Host.parse("allowed.test"))
        found = shortcuts.find(head, ticket())
        led = None if found is None else [str(address) for address in found.route.addresses]
        assert led == (["8.8.8.8"] if one else None)
        now = 60.0
        assert shortcuts.find(head, ticket()) is None
        assert world.looked_up == ["allowed.test"]

    play(scene)


def test_an_upstream_proxy_is_none(play: Play) -> None:
    async def scene(world: World) -> None:
        outlet = world.outlet("8.8.8.8", environment={"https_proxy": "http://127.0.0.1:1"})
        head = TUNNEL.replace(b"127.0.0.1", b"8.8.8.8")
        assert Shortcuts(outlet, Entrance()).find(head, ticket()) is None
        assert Shortcuts(world.outlet("8.8.8.8"), Entrance()).find(head, ticket()) is not None

    play(scene)


def test_a_question_is_none_until_it_was_answered(play: Play) -> None:
    async def yes(_host: str, _port: int, _command: str) -> Answer:
        return Answer(Choice.SESSION)

    async def scene(world: World) -> None:
        outlet = world.outlet(ask=yes)
        shortcuts = Shortcuts(outlet, Entrance())
        head = TUNNEL.replace(b"127.0.0.1", b"8.8.8.8")
        assert shortcuts.find(head, ticket()) is None
        await outlet.decide(outlet.gate.caller(), "8.8.8.8", 80)
        assert shortcuts.find(head, ticket()) is not None

    play(scene)


def test_who_is_not_to_be_served_has_none(play: Play) -> None:
    async def scene(world: World) -> None:
        outlet = world.outlet("127.0.0.1:80")
        named = Shortcuts(outlet, Entrance(lambda _user, _token: "c1", must_authenticate=False))
        assert Shortcuts(outlet, Entrance(lambda _user, _token: None)).find(TUNNEL, ticket()) is None
        assert named.find(TUNNEL, ticket(ProxyLimits(connections=0))) is None
        head = TUNNEL.replace(b"Host", b"Proxy-Authorization: Basic YTpi\r\nHost")
        assert named.find(head, ticket(ProxyLimits(per_command=0))) is None
        assert named.find(head, ticket(ProxyLimits(per_command=1))) is not None

    play(scene)


def test_heads_are_forgotten_before_they_are_too_many(play: Play) -> None:
    async def scene(world: World) -> None:
        shortcuts = Shortcuts(world.outlet("127.0.0.1:80"), Entrance())
        for number in range(1000):
            assert shortcuts.find(TUNNEL.replace(b"x", b"%d" % number), ticket()) is not None
        assert len(shortcuts._heads) <= 256

    play(scene)
