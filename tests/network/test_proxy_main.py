"""The proxy's own side, message by message, in the test's process. ``test_proxy_process`` has it whole."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.network import proxy_message
from stockade.network.environment import Credential
from stockade.network.link import Link, Message
from stockade.network.proxy_main import Desk
from stockade.network.proxy_message import Listeners, ProxySettings, Refused

if TYPE_CHECKING:
    from tests.network.conftest import Play, World

    from stockade.network.proxy_main import House

ALICE = Credential("alice", "a")
BOB = Credential("bob", "b")


class Sides:
    """An owner, and a desk that it speaks to."""

    def __init__(self, world: World) -> None:
        self.owner, theirs = Link.pair()
        self._link = Link.adopt(theirs.detach())
        self.ends = 0
        self.desk = Desk(self._link, self._end)
        world.on_close(self._close)

    @property
    def house(self) -> House:
        assert self.desk._house is not None
        return self.desk._house

    def say(self, *messages: Message) -> None:
        for message in messages:
            assert self.owner.send(message, 5)
        self.desk.read()

    def _end(self) -> None:
        self.ends += 1

    async def _close(self) -> None:
        if self.desk._house is not None:
            for service in (self.house._proxy, self.house._transparent, self.house._names):
                await service.close()
            for porter in self.house._porters.values():
                porter.close()
        self.owner.close()
        self._link.close()


def test_settings_come_first(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(proxy_message.add_message(ALICE, "a"))
        assert (sides.ends, sides.desk._house) == (1, None)

    play(scene)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message(b"?"), id="unknown"),
        pytest.param(ProxySettings().message(), id="settings again"),
        pytest.param(Message(proxy_message.UPDATE, (b"\0\0\0\x01x",)), id="rules that are none"),
        pytest.param(Message(proxy_message.UPDATE), id="no rules"),
        pytest.param(Message(proxy_message.ADD, (b"a b", b"t", b"c")), id="a credential that is none"),
        pytest.param(Message(proxy_message.LISTEN, (proxy_message.HTTP,)), id="no listener"),
        pytest.param(Message(proxy_message.PUBLISH, (b"80",)), id="nothing to publish"),
        pytest.param(Message(proxy_message.ANSWER, (b"x", b"ONCE", b"")), id="an answer to nothing"),
    ],
)
def test_what_cannot_be_done_ends_it(play: Play, message: Message) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        assert sides.ends == 0
        sides.say(message)
        assert sides.ends == 1

    play(scene)


def test_a_descriptor_that_is_no_socket_ends_it(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        reader, writer = os.pipe()
        sides.say(ProxySettings().message(), *Listeners(http=reader).messages())
        assert sides.ends == 1
        os.close(reader)
        os.close(writer)

    play(scene)


def test_the_end_of_the_link_is_the_end(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        sides.owner.end()
        sides.desk.read()
        assert sides.ends == 1
        sides.desk.finish()

    play(scene)


def test_last_words_are_said(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        decision = sides.house.outlet.gate.decide_name("evil.test")
        for _ in range(3):
            sides.house.outlet.tell(decision, "c")
        sides.owner.end()
        sides.desk.read()
        sides.desk.finish()
        assert [Refused.read(message).times for message in sides.owner.receive_available()] == [1, 2]

    play(scene)


def test_a_credential_that_was_not_read_yet_counts(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        assert sides.owner.send(proxy_message.add_message(ALICE, "c1"), 5)
        assert sides.house.authenticate("alice", "a") == "c1"
        assert sides.house.authenticate("alice", "wrong") is None
        assert sides.owner.send(proxy_message.revoke_message(ALICE), 5)
        sides.desk.read()
        assert sides.house.authenticate("alice", "a") is None

    play(scene)


def test_a_command_that_is_alone_is_known_without_a_credential(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        known = [sides.house.whose()]
        for message in (
            proxy_message.add_message(ALICE, "a"),
            proxy_message.add_message(BOB, "b"),
            proxy_message.revoke_message(ALICE),
            proxy_message.revoke_message(BOB),
        ):
            sides.say(message)
            known.append(sides.house.whose())
        assert known == ["", "a", "", "b", ""]

    play(scene)


def test_one_porter_serves_several_ports(play: Play) -> None:
    async def scene(world: World) -> None:
        sides = Sides(world)
        sides.say(ProxySettings().message())
        mine, theirs = socket.socketpair()
        other_mine, other_theirs = socket.socketpair()
        porters = [
            sides.house._porter(socket.socket(fileno=os.dup(end.fileno()))) for end in (theirs, theirs, other_theirs)
        ]
        assert porters[0] is porters[1]
        assert porters[1] is not porters[2]
        for end in (mine, theirs, other_mine, other_theirs):
            end.close()

    play(scene)
