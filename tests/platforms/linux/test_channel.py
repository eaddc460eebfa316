from __future__ import annotations

import os
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.channel import INLINE_BYTES, Channel, Packet, decode, encode, pack, unpack


@given(st.lists(st.binary(max_size=50)))
def test_what_was_packed_is_unpacked(fields: list[bytes]) -> None:
    assert unpack(pack(fields)) == fields


@given(st.binary(max_size=60))
def test_any_bytes_unpack_or_are_refused(data: bytes) -> None:
    try:
        assert pack(unpack(data)) == data
    except ValueError as error:
        assert str(error) == "a packet ends within a field"  # noqa: PT017 - either outcome is right


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        packet, in_file = decode(data)
    except ValueError as error:
        assert str(error) == "a packet has no valid header"  # noqa: PT017 - either outcome is right
    else:
        assert in_file or encode(packet) == data


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(0, id="empty"),
        pytest.param(INLINE_BYTES, id="largest-inline"),
        pytest.param(INLINE_BYTES + 1, id="smallest-in-a-file"),
        pytest.param(3_000_000, id="large"),
    ],
)
@pytest.mark.parametrize("with_files", [pytest.param(False, id="alone"), pytest.param(True, id="with-files")])
def test_a_packet_arrives_whole(size: int, *, with_files: bool) -> None:
    one, other = Channel.pair()
    reader, writer = os.pipe()
    body = os.urandom(size)
    one.send(Packet(b"k", 2**40, body, (writer,) if with_files else ()))
    os.close(writer)
    packet = other.receive()
    assert packet is not None
    assert (packet.kind, packet.number, packet.body, len(packet.descriptors)) == (b"k", 2**40, body, int(with_files))
    for descriptor in packet.descriptors:
        assert not os.get_inheritable(descriptor)
        os.write(descriptor, b"x")
    packet.close()
    assert os.read(reader, 2) == (b"x" if with_files else b"")
    os.close(reader)
    one.close()
    other.close()


def test_what_was_said_before_the_end_is_heard_though_something_was_left_unread() -> None:
    mine, theirs = Channel.pair()
    mine.send(Packet(b"q", 1))
    theirs.send(Packet(b"a", 2))
    theirs.close()
    heard = mine.receive()
    assert heard is not None
    assert (heard.kind, heard.number) == (b"a", 2)
    assert mine.receive() is None
    mine.close()


def test_nothing_there_and_nobody_there() -> None:
    one, other = Channel.pair()
    assert one.receive(wait=False) is None
    other.close()
    assert one.receive() is None
    one.close()


@pytest.mark.parametrize("size", [0, INLINE_BYTES + 1])
def test_a_packet_whose_files_found_no_room_says_so(size: int) -> None:
    one, other = Channel.pair()
    one.send(Packet(b"x", 1, bytes(size), (0, 1, 2)))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))
    try:
        packet = other.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert packet is not None
    assert (packet.kind, packet.cut, len(packet.descriptors)) == (b"x", True, 1)
    packet.close()
    one.send(Packet(b"y", 2, bytes(size), (0, 1, 2)))
    packet = other.receive()
    assert packet is not None
    assert (packet.body, packet.cut, len(packet.descriptors)) == (bytes(size), False, 3)
    packet.close()
    one.close()
    other.close()
