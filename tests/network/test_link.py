from __future__ import annotations

import array
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.link import LARGE, MOST_DESCRIPTORS, SMALL, Decoder, Link, Message, encode, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES = [
    pytest.param(Message(b"a"), id="bare"),
    pytest.param(Message(b"a", (b"",)), id="empty field"),
    pytest.param(Message(b"\0", (b"one", b"", b"\xff" * 1000)), id="fields"),
    pytest.param(Message(b"d", (b"x",), (5, 6)), id="descriptors"),
]


@pytest.fixture
def ends() -> Iterator[tuple[Link, Link]]:
    """An owner's end and a proxy's."""
    owner, theirs = Link.pair()
    proxy = Link.adopt(theirs.detach())
    yield owner, proxy
    owner.close()
    proxy.close()


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_a_message_arrives_as_it_was_sent(message: Message, step: int) -> None:
    data = encode(message) * 2
    decoder = Decoder(SMALL)
    decoder.unclaimed.extend(message.descriptors * 2)
    found = [one for at in range(0, len(data), step) for one in decoder.receive(data[at : at + step])]
    assert (found, decoder.broken, list(decoder.unclaimed)) == ([message, message], False, [])


@pytest.mark.parametrize(
    ("data", "descriptors"),
    [
        pytest.param(b"a\0" + (SMALL + 1).to_bytes(4, "big"), 0, id="too large"),
        pytest.param(b"a\x01" + bytes(4), 0, id="descriptors that did not come"),
        pytest.param(b"a\xff" + bytes(4), 255, id="more descriptors than a frame may have"),
        pytest.param(b"a\0\0\0\0\x05\0\0\0\x09a", 0, id="field longer than the frame"),
        pytest.param(b"a\0\0\0\0\x02ab", 0, id="field without its length"),
        pytest.param(b"", 4 * MOST_DESCRIPTORS + 1, id="descriptors that nobody wants"),
    ],
)
def test_what_is_no_frame_breaks_it_for_good(data: bytes, descriptors: int) -> None:
    decoder = Decoder(SMALL)
    good = encode(Message(b"k"))
    assert decoder.receive(good + data, range(descriptors)) == [Message(b"k")]
    assert decoder.broken
    assert decoder.receive(good) == []


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_break_the_decoder(pieces: list[bytes]) -> None:
    decoder = Decoder(64)
    for piece in pieces:
        decoder.receive(piece)
    assert len(decoder._buffer) <= sum(map(len, pieces))


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_what_is_packed_is_unpacked(fields: list[bytes]) -> None:
    assert unpack(pack(fields)) == tuple(fields)


@given(st.binary(max_size=40))
def test_unpacking_raises_nothing_else(data: bytes) -> None:
    try:
        assert pack(unpack(data)) == data
    except ValueError:
        return


def test_descriptors_travel_with_their_message_and_survive_no_exec(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    pipes = [os.pipe() for _ in range(3)]
    assert owner.send(Message(b"1", (b"x",)), 1)
    assert owner.send(Message(b"2", (), (pipes[0][1],)), 1)
    assert owner.send(Message(b"3", (b"y" * 100,), (pipes[1][1], pipes[2][1])), 1)
    first, second, third = proxy.receive_available()
    assert [len(message.descriptors) for message in (first, second, third)] == [0, 1, 2]
    for pipe, descriptor in zip(pipes, second.descriptors + third.descriptors, strict=True):
        assert not os.get_inheritable(descriptor)
        os.write(descriptor, b"!")
        assert os.read(pipe[0], 1) == b"!"
        for number in (*pipe, descriptor):
            os.close(number)


def test_an_owner_gets_no_descriptors(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    before = len(os.listdir("/dev/fd"))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
    proxy._socket.sendmsg([encode(Message(b"a"))], rights)
    assert owner.receive_available() == [Message(b"a")]
    assert len(os.listdir("/dev/fd")) == before
    proxy._socket.sendmsg([encode(Message(b"a", (), (0,)))], rights)
    assert (owner.receive_available(), owner.ended, owner.broken) == ([], True, True)


def test_descriptors_that_nobody_claimed_are_closed() -> None:
    owner, theirs = Link.pair()
    proxy = Link.adopt(theirs.detach())
    before = len(os.listdir("/dev/fd"))
    owner._socket.sendmsg([b"a"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1]))])
    assert proxy.receive_available() == []
    assert len(os.listdir("/dev/fd")) == before + 2
    proxy.close()
    owner.close()
    assert len(os.listdir("/dev/fd")) == before - 2


def test_who_does_not_read_is_given_up(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    large = Message(b"u", (bytes(LARGE - 100),))
    assert not owner.send(large, 0.05)
    assert (owner.broken, owner.unsent) == (True, 0)
    assert not owner.send(Message(b"a"), 0.05)
    assert (proxy.receive_until_end(5), proxy.ended) == ([], True)


def test_large_messages_pass_if_they_are_read(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    message = Message(b"u", (bytes(3 << 20),))
    owner.post(message, 0)
    found: list[Message] = []
    while not found and not proxy.ended:
        owner.flush()
        found = proxy.receive_available()
    assert (found, owner.unsent) == ([message], 0)


def test_posting_never_waits_and_is_bounded(ends: tuple[Link, Link]) -> None:
    _, proxy = ends
    message = Message(b"R", (bytes(1000),))
    posted = sum(proxy.post(message, 10_000) for _ in range(5000))
    assert 10 < posted < 2000
    assert 10_000 < proxy.unsent <= 12_000
    assert not proxy.broken


def test_the_end_is_seen_after_what_was_said_and_can_be_answered(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    owner.send(Message(b"a"), 1)
    owner.end()
    assert (proxy.receive_available(), proxy.ended, proxy.broken) == ([Message(b"a")], True, False)
    assert proxy.send(Message(b"z"), 1)
    assert owner.receive_available() == [Message(b"z")]


def test_what_was_said_before_the_end_is_read_after_it() -> None:
    owner, theirs = Link.pair()
    proxy = Link.adopt(theirs.detach())
    proxy.send(Message(b"z"), 1)
    proxy.close()
    assert not owner.send(Message(b"a"), 1)
    assert (owner.receive_available(), owner.ended) == ([Message(b"z")], True)
    owner.close()


def test_garbage_ends_the_link_for_both(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    proxy._socket.send(encode(Message(b"a")) + b"\xff" * 20)
    assert (owner.receive_available(), owner.broken) == ([Message(b"a")], True)
    assert (proxy.receive_until_end(5), proxy.ended) == ([], True)


def test_nothing_is_sent_to_who_is_gone() -> None:
    owner, theirs = Link.pair()
    theirs.close()
    assert not owner.send(Message(b"a"), 1)
    assert (owner.receive_available(), owner.ended, owner.broken) == ([], True, True)
    owner.end()
    owner.close()


def test_who_never_stops_talking_is_cut_off(ends: tuple[Link, Link]) -> None:
    owner, proxy = ends
    over = threading.Event()

    def talk() -> None:
        while not over.is_set() and proxy.send(Message(b"R"), 5):
            proxy.post(Message(b"R"), 1 << 16)

    thread = threading.Thread(target=talk)
    thread.start()
    messages = owner.receive_until_end(60)
    over.set()
    thread.join()
    assert owner.broken
    assert 1 << 16 < len(messages) < 1 << 17
