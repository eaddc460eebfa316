from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Iterator

    Ends = tuple[Supervised, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    mine, theirs = Channel.pair()
    supervised = Supervised(mine)
    yield supervised, theirs
    supervised.close()
    theirs.close()


def test_a_listener_is_passed_on_and_assigned(ends: Ends) -> None:
    supervised, other = ends
    supervised.take(4, Packet(message.LISTENING, 0, b"", (os.open(os.devnull, os.O_RDONLY),)))
    supervised.assign(4, 1 << 62)
    listening, assigned = other.receive(wait=False), other.receive(wait=False)
    assert listening is not None
    assert assigned is not None
    assert (listening.kind, listening.number, len(listening.descriptors)) == (message.LISTENING, 4, 1)
    assert (assigned.kind, assigned.number, message.read_assigned(assigned)) == (message.ASSIGNED, 4, 1 << 62)
    listening.close()


def test_where_nothing_is_unsaid_nobody_is_asked(ends: Ends) -> None:
    supervised, other = ends
    assert supervised.flush(3) == []
    assert other.receive(wait=False) is None


@pytest.mark.parametrize("more", [False, True])
def test_what_is_unsaid_is_asked_for(ends: Ends, *, more: bool) -> None:
    supervised, other = ends
    other.send(message.empty(message.UNSAID))
    other.send(message.Refused(b"write", b"/x", 2).packet(3))
    other.send(message.flushed_packet(2, more=False))  # of a command that was not waited for any longer
    other.send(message.flushed_packet(3, more=more))
    assert [packet.number for packet in supervised.flush(3)] == [3]
    asked = other.receive(wait=False)
    assert asked is not None
    assert (asked.kind, asked.number, supervised.unsaid) == (message.FLUSH, 3, more)


def test_a_supervisor_that_says_nothing_is_not_waited_for_long(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.platforms.linux.supervised._PATIENCE", 10)
    supervised, other = ends
    other.send(message.empty(message.UNSAID))
    assert supervised.flush(3) == []
    assert supervised.unsaid


def test_a_supervisor_that_is_gone_is_not_waited_for(ends: Ends) -> None:
    supervised, other = ends
    other.send(message.empty(message.UNSAID))
    other.close()
    assert supervised.hear()
    assert not supervised.hear()
