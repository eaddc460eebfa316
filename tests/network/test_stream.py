from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.network.relay import HIGH_WATER, Relays
from stockade.network.stream import Stream
from stockade.network.transport import SocketTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def streamed(body: Callable[[Stream, Ends], Awaitable[None]]) -> None:
    """Run a test between a stream and the program at its other end."""

    async def main() -> None:
        inner, outer = socket.socketpair()
        inner.setblocking(False)
        stream = Stream()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: stream, inner)
        ends = await asyncio.open_connection(sock=outer)
        try:
            await asyncio.wait_for(body(stream, ends), 20)
        finally:
            stream.abort()
            ends[1].transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asyncio.run(main())


def test_what_comes_is_read_and_then_the_end() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        ends[1].write(b"abc")
        ends[1].write_eof()
        await stream.wait()
        assert stream.readable
        assert await stream.read() == b"abc"
        assert (await stream.read(), await stream.read()) == (b"", b"")
        assert (stream.ended, stream.lost, stream.moved) == (True, False, 3)
        await stream.write(b"still open")
        assert await ends[0].readexactly(10) == b"still open"

    streamed(body)


def test_what_is_put_back_is_read_first() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        ends[1].write(b"b")
        await stream.wait()
        stream.put_back(b"a")
        stream.put_back(b"")
        assert (await stream.read(), await stream.read()) == (b"a", b"b")

    streamed(body)


def test_nothing_is_taken_from_who_sends_more_than_is_read() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        total = 0
        ends[1].transport.set_write_buffer_limits(high=1)
        try:
            while total < 100 * HIGH_WATER:
                ends[1].write(bytes(HIGH_WATER))
                total += HIGH_WATER
                await asyncio.wait_for(ends[1].drain(), 0.3)
        except TimeoutError:
            pass
        assert stream.moved < 4 * HIGH_WATER
        assert total < 20 * HIGH_WATER
        read = 0
        while read < total - HIGH_WATER:
            read += len(await stream.read())

    streamed(body)


def test_who_writes_more_than_is_taken_waits() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        big = bytes(20 * HIGH_WATER)
        writing = asyncio.create_task(stream.write(big))
        await asyncio.sleep(0.05)
        assert not writing.done()
        assert stream.stalled
        assert len(await ends[0].readexactly(len(big))) == len(big)
        await writing
        assert not stream.stalled

    streamed(body)


def test_a_lost_connection_is_told_to_whoever_waits() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        lost: list[bool] = []
        stream.when_lost(lambda: lost.append(True))
        writing = asyncio.create_task(stream.write(bytes(20 * HIGH_WATER)))
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0.01)
        ends[1].transport.abort()
        with pytest.raises(ConnectionError):
            await writing
        with pytest.raises(ConnectionError):
            await reading
        with pytest.raises(ConnectionError):
            await stream.write(b"more")
        assert (stream.lost, lost) == (True, [True])

    streamed(body)


def test_it_finishes_when_all_was_read_and_the_other_side_has_closed() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        await stream.write(b"x" * 1000)
        ends[1].write(b"what nobody reads")
        finishing = asyncio.create_task(stream.finish(5, 5))
        assert await ends[0].read() == b"x" * 1000
        assert not finishing.done()
        ends[1].close()
        await finishing

    streamed(body)


@pytest.mark.parametrize("size", [10, 20 * HIGH_WATER])
def test_it_finishes_in_time_whatever_the_other_side_does(size: int) -> None:
    async def body(stream: Stream, _ends: Ends) -> None:
        writing = asyncio.create_task(stream.write(bytes(size)))
        await asyncio.sleep(0.01)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await stream.finish(0.02, 0.02)
        await asyncio.sleep(0.01)
        assert stream.lost

    streamed(body)


def test_a_connection_that_is_handed_over_takes_along_what_was_not_read() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        inner, outer = socket.socketpair()
        inner.setblocking(False)
        other = Stream()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: other, inner)
        reader, writer = await asyncio.open_connection(sock=outer)
        ends[1].write(b"unread")
        ends[1].write_eof()
        await asyncio.sleep(0.01)
        relays = Relays()
        over: list[bool] = []
        pair = relays.new(lambda: over.append(True))
        stream.give(pair.client)
        other.give(pair.server)
        pair.join()
        assert await reader.read() == b"unread"
        writer.write(b"answer")
        writer.write_eof()
        assert await ends[0].read() == b"answer"
        stream.abort()  # no longer its own
        await asyncio.sleep(0.01)
        assert (len(relays), over) == (0, [True])
        writer.close()

    streamed(body)


def test_what_is_lost_cannot_be_handed_over() -> None:
    async def body(stream: Stream, _ends: Ends) -> None:
        stream.abort()
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError):
            stream.give(Relays().new().client)
        stream.reset()

    streamed(body)


def test_a_reset_is_seen_as_one() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            stream = Stream()
            await asyncio.get_running_loop().connect_accepted_socket(lambda: stream, accepted)
            assert stream.address == "127.0.0.1"
            stream.reset()
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 5)
            writer.close()

    asyncio.run(main())


def test_before_there_is_a_connection_there_is_nothing() -> None:
    stream = Stream()
    assert (stream.began, stream.address, stream.readable) == (False, "", False)
    stream.abort()
    stream.reset()


async def joined(count: int) -> list[tuple[Stream, socket.socket]]:
    pairs = []
    for _ in range(count):
        inner, outer = socket.socketpair()
        inner.setblocking(False)
        outer.setblocking(False)
        stream = Stream()
        SocketTransport(inner, stream)
        pairs.append((stream, outer))
    return pairs


@pytest.mark.parametrize("most", [1, 300_000, 1_000_000, 2_000_000])
def test_a_stream_is_poured_into_another_one_as_far_as_was_said(most: int) -> None:
    async def main() -> None:
        (source, near), (sink, far) = await joined(2)
        loop, content = asyncio.get_running_loop(), bytes(range(250)) * 4000
        sending = asyncio.create_task(loop.sock_sendall(near, content))
        sending.add_done_callback(lambda _: near.shutdown(socket.SHUT_WR))
        pouring = asyncio.create_task(source.pour(sink, most))
        got = bytearray()
        while len(got) < min(most, len(content)):
            got += await loop.sock_recv(far, 1 << 20)
        assert await pouring == min(most, len(content))
        rest = bytearray()
        while data := await source.read():
            rest += data
        assert got + rest == content
        assert (source.moved, source.ended) == (len(content), True)
        for stream, outer in ((source, near), (sink, far)):
            stream.abort()
            outer.close()
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_sink_that_is_gone_ends_the_pouring() -> None:
    async def main() -> None:
        (source, near), (sink, far) = await joined(2)
        pouring = asyncio.create_task(source.pour(sink, 1000))
        await asyncio.sleep(0)
        far.close()
        await asyncio.sleep(0.01)
        sink.abort()
        near.send(b"kept")
        assert await pouring == 0
        assert await source.read() == b"kept"
        source.abort()
        near.close()
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_wait_ends_at_its_time() -> None:
    async def body(stream: Stream, ends: Ends) -> None:
        with pytest.raises(TimeoutError):
            await stream.wait(asyncio.get_running_loop().time() + 0.01)
        ends[1].write(b"x")
        await stream.wait(asyncio.get_running_loop().time() + 10)
        assert await stream.read() == b"x"

    streamed(body)
