"""Refusals travel from the warden to the owner under the number of their command, before its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet, pack
from stockade.platforms.linux.hearing import Hearing
from stockade.platforms.linux.tally import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.platforms.linux.launcher import Launcher
    from stockade.platforms.linux.tally import Refusal

    Said = list[tuple[int, bytes, int]]


class FakeLauncher:
    """Knows one command, and keeps what is said."""

    def __init__(self) -> None:
        self.unsaid: list[Packet] = []
        self.said: Said = []

    def number_of(self, first_process: int) -> int:
        return {7: 70, 8: 80}.get(first_process, 0)

    def say(self, packet: Packet) -> None:
        refused = message.Refused.read(packet)
        assert (packet.kind, refused.operation) == (message.REFUSED, b"read")
        self.said.append((packet.number, refused.place, refused.times))


@pytest.fixture
def stage() -> Iterator[tuple[Hearing, FakeLauncher, Channel]]:
    mine, theirs = Channel.pair()
    launcher = FakeLauncher()
    hearing = Hearing(mine, cast("Launcher", launcher))
    yield hearing, launcher, theirs
    hearing.close()
    theirs.close()


def refused(who: int, *refusals: Refusal) -> Packet:
    return Packet(message.KNOCKED, who, pack(packed(list(refusals))))


Stage = tuple[Hearing, FakeLauncher, Channel]


def test_what_is_told_goes_on_under_the_number_of_its_command(stage: Stage) -> None:
    hearing, launcher, warden = stage
    warden.send(refused(7, (b"/a", 1), (b"/b", 2)))
    warden.send(refused(9, (b"/c", 1)))
    hearing.hear()
    assert launcher.said == [(70, b"/a", 1), (70, b"/b", 2), (0, b"/c", 1)]


def test_a_command_without_refusals_asks_nobody(stage: Stage) -> None:
    hearing, launcher, warden = stage
    hearing.settle(7)
    assert (launcher.said, warden.receive(wait=False)) == ([], None)


def test_the_rest_is_told_before_the_end(stage: Stage) -> None:
    hearing, launcher, warden = stage
    for packet in (refused(7, (b"/a", 1)), refused(7, (b"/a", 5)), Packet(message.TOLD, 7), refused(8, (b"/z", 1))):
        warden.send(packet)
    hearing.heard_of.add(7)
    hearing.ask(cast("Channel", hearing.warden), 7)
    question = warden.receive(wait=False)
    assert question is not None
    assert (question.kind, question.number) == (message.TELL, 7)
    assert launcher.said == [(70, b"/a", 1), (70, b"/a", 5)]


def test_a_warden_that_is_gone_is_not_waited_for(stage: Stage) -> None:
    hearing, launcher, warden = stage
    warden.send(refused(7, (b"/a", 1)))
    warden.close()
    hearing.settle(7)
    hearing.close()
    hearing.settle(7)
    assert (launcher.said, hearing.fileno()) == ([(70, b"/a", 1)], -1)


def test_an_owner_that_does_not_listen_is_told_sums(stage: Stage) -> None:
    hearing, launcher, warden = stage
    launcher.unsaid = [Packet(message.ENDED, 0)] * 100
    for _ in range(3):
        warden.send(refused(7, (b"/a", 2)))
    hearing.hear()
    assert launcher.said == []
    warden.close()
    hearing.settle(7)
    assert launcher.said == [(70, b"/a", 6)]
