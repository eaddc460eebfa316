from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from stockade.network.pipe import CAPACITY
from stockade.network.relay import HIGH_WATER, Relays
from stockade.network.screen import Screen
from stockade.network.transport import SocketTransport
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stockade.network.relay import Pair

RETRY = (
    b"\x16\3\3\0\x2a\2\0\0\x26\3\3"
    + bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    + b"\0\x13\1\0"
)
ANSWER = RETRY[:11] + bytes(32) + RETRY[43:]
CHANGE = b"\x14\3\3\0\1\1"

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def relayed(body: Callable[[Ends, Ends, Pair, Relays], Awaitable[None]]) -> None:
    """Run a test between two programs that a pair joins: over our transports, over asyncio's, over one of each."""
    for ours in ((True, True), (False, False), (True, False)):
        relayed_over(ours, body)


def relayed_over(ours: tuple[bool, bool], body: Callable[[Ends, Ends, Pair, Relays], Awaitable[None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        relays = Relays()
        pair = relays.new()
        sockets = [socket.socketpair(), socket.socketpair()]
        for (_, inner), side, own in zip(sockets, (pair.client, pair.server), ours, strict=True):
            inner.setblocking(False)
            if own:
                SocketTransport(inner, side)
                continue
            await loop.connect_accepted_socket(lambda side=side: side, inner)  # type: ignore[misc]
        client, server = [await asyncio.open_connection(sock=outer) for outer, _ in sockets]
        try:
            await asyncio.wait_for(body(client, server, pair, relays), 20)
        finally:
            relays.close()
            for _, writer in (client, server):
                writer.close()
            await asyncio.sleep(0)

    asyncio.run(main())


def hello() -> bytes:
    """Return what a real client says first."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="allowed.test")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


HELLO = hello()


async def until(holds: Callable[[], object]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not come")


def screened(pair: Pair) -> list[str]:
    """Have a pair's client looked at; return what is told."""
    told: list[str] = []
    pair.screen = Screen(Destination(Host.parse("allowed.test"), Port(443)), told.append)
    return told


def test_a_screen_lets_pass_what_is_no_tls_and_all_that_comes_after() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        client[1].write(b"early")
        await asyncio.sleep(0.05)
        pair.join()
        big = b"\x16\x03" * 1_000_000
        client[1].write(big)
        assert await server[0].readexactly(5 + len(big)) == b"early" + big
        assert (told, pair.screen) == ([], None)

    relayed(body)


def test_a_screen_that_refuses_ends_both_and_lets_nothing_pass() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        told = screened(pair)
        pair.join()
        client[1].write(b"\x16\x03\x01\0\x04")
        await asyncio.sleep(0.05)
        client[1].write(b"\x02\0\0\0")
        assert await server[0].read() == b""
        assert told == ["its TLS hello cannot be read: a message before the server's answer is no client hello"]
        assert await client[0].read() == b""
        await until(lambda: not len(relays))

    relayed(body)


def test_half_a_hello_that_ends_goes_nowhere() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        pair.join()
        client[1].write(b"\x16\x03\x01")
        client[1].write_eof()
        assert await server[0].read() == b""
        assert told == ["its TLS hello cannot be read: it ends in the midst"]

    relayed(body)


def test_half_a_hello_is_not_waited_for_without_end() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        told = screened(pair)
        pair._hello_seconds = 0.05
        pair.join()
        client[1].write(HELLO[:20])
        assert await server[0].read() == b""
        assert told == []
        await until(lambda: not len(relays))

    relayed(body)


def test_a_whole_hello_has_no_time_limit() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        screened(pair)
        pair._hello_seconds = 0.05
        pair.join()
        client[1].write(HELLO[:20])
        await asyncio.sleep(0.01)
        client[1].write(HELLO[20:])
        assert await server[0].readexactly(len(HELLO)) == HELLO
        await asyncio.sleep(0.2)
        server[1].write(ANSWER)
        assert await client[0].readexactly(len(ANSWER)) == ANSWER
        client[1].write(CHANGE)
        assert await server[0].readexactly(len(CHANGE)) == CHANGE
        assert (pair.screen, pair._timer) == (None, None)

    relayed(body)


def test_a_screen_looks_at_both_until_the_client_goes_on_after_the_answer_and_then_at_nothing() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        client[1].write(HELLO)
        await asyncio.sleep(0.05)
        pair.join()
        assert await server[0].readexactly(len(HELLO)) == HELLO
        client[1].write(b"\x16\3")  # part of a record that does not come to its end before the answer does
        await until(lambda: pair.screen is not None and pair.screen.holds)
        for half in (ANSWER[:20], ANSWER[20:]):
            assert pair.screen is not None
            server[1].write(half)
            assert await client[0].readexactly(len(half)) == half
        key = b"\3\0\4\x10"  # the record begins with another message than a hello
        big = b"x" * 3_000_000
        client[1].write(key + big)
        assert await server[0].readexactly(6 + len(big)) == b"\x16\3" + key + big
        assert pair.screen is None
        server[1].write(big)
        assert await client[0].readexactly(len(big)) == big
        assert told == []

    relayed(body)


def test_a_second_hello_that_names_another_server_ends_both() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        pair.join()
        client[1].write(HELLO)
        assert await server[0].readexactly(len(HELLO)) == HELLO
        server[1].write(RETRY)
        assert await client[0].readexactly(len(RETRY)) == RETRY
        other = HELLO.replace(b"allowed.test", b"another.test")
        for at in range(0, len(other), 30):
            client[1].write(other[at : at + 30])
            await asyncio.sleep(0)
        assert await server[0].read() == b""
        assert told == ['its second TLS hello names another server: "another.test"']

    relayed(body)


def test_a_client_that_has_said_hello_and_all_else_may_end_before_the_answer() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        pair.join()
        client[1].write(HELLO)
        client[1].write_eof()
        assert await server[0].read() == HELLO
        server[1].write(ANSWER * 10_000)
        server[1].write_eof()
        assert await client[0].read() == ANSWER * 10_000
        assert (told, pair.screen) == ([], None)

    relayed(body)


def test_a_server_that_speaks_first_is_heard_at_once_and_nothing_is_looked_at() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        told = screened(pair)
        pair.join()
        server[1].write(b"greetings")
        assert await client[0].readexactly(9) == b"greetings"
        client[1].write(b"\x16 is the length of what follows")
        assert (await server[0].readexactly(31))[:4] == b"\x16 is"
        assert (told, pair.screen) == ([], None)

    relayed(body)


def test_bytes_go_both_ways_and_early_ones_are_kept() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        client[1].write(b"early")
        await asyncio.sleep(0.05)
        pair.join()
        assert await server[0].readexactly(5) == b"early"
        server[1].write(b"answer")
        assert await client[0].readexactly(6) == b"answer"
        big = b"x" * 5_000_000
        client[1].write(big)
        assert await server[0].readexactly(len(big)) == big

    relayed(body)


def test_the_end_of_one_direction_leaves_the_other_open() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        pair.join()
        client[1].write(b"request")
        client[1].write_eof()
        assert await server[0].read() == b"request"
        server[1].write(b"late answer")
        server[1].write_eof()
        assert await client[0].read() == b"late answer"
        await asyncio.sleep(0.05)
        assert len(relays) == 0

    relayed(body)


def test_an_end_before_joining_is_passed_on() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        client[1].write(b"all")
        client[1].write_eof()
        await asyncio.sleep(0.05)
        pair.join()
        assert await server[0].read() == b"all"

    relayed(body)


def test_what_both_said_before_joining_and_ending_is_passed_on() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        for end, words in ((client, b"question"), (server, b"answer")):
            end[1].write(words)
        await asyncio.sleep(0.05)
        for side in (pair.client, pair.server):
            side.eof_received()  # as a stream tells it that had come to its end when it was given
        pair.join()
        assert (await server[0].read(), await client[0].read()) == (b"question", b"answer")
        await asyncio.sleep(0.05)
        assert len(relays) == 0

    relayed(body)


def test_a_slow_reader_slows_the_writer() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, _relays: Relays) -> None:
        pair.join()
        client[1].transport.set_write_buffer_limits(high=1)
        total = 0
        try:
            while total < 200 * HIGH_WATER:
                client[1].write(b"x" * HIGH_WATER)
                total += HIGH_WATER
                await asyncio.wait_for(client[1].drain(), 0.3)
        except TimeoutError:
            pass
        # The reader has taken nothing: what waits is in the buffers of two sockets, one transport and one pipe.
        assert total < 40 * HIGH_WATER
        waiting = pair.server.transport
        assert waiting is not None
        assert waiting.get_write_buffer_size() <= CAPACITY + HIGH_WATER
        assert len(await server[0].readexactly(total - HIGH_WATER)) == total - HIGH_WATER

    relayed(body)


def test_a_lost_side_takes_the_other_with_it() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        pair.join()
        client[1].write(b"last words")
        await client[1].drain()
        await asyncio.sleep(0.05)
        client[1].transport.abort()
        assert await server[0].read() == b"last words"
        server[1].close()
        await asyncio.sleep(0.05)
        assert len(relays) == 0

    relayed(body)


def test_what_does_not_move_is_swept() -> None:
    async def body(client: Ends, server: Ends, pair: Pair, relays: Relays) -> None:
        pair.join()
        assert relays.sweep() == 0
        client[1].write(b"x")
        await server[0].readexactly(1)
        assert relays.sweep() == 0
        assert relays.sweep() == 1
        assert await client[0].read() == b""
        await asyncio.sleep(0.05)
        assert len(relays) == 0

    relayed(body)


def test_what_came_early_and_fills_the_other_side_stops_the_reading() -> None:
    """A pair that is not poured (by a foreign transport, say) has nothing else that keeps what waits from growing."""

    async def body(client: Ends, _server: Ends, pair: Pair, _relays: Relays) -> None:
        # Nobody reads at the other end.
        pair.client.data_received(bytes(4 * HIGH_WATER))
        pair.join()
        writer = client[1]
        for _ in range(2000):
            if writer.transport.get_write_buffer_size() < HIGH_WATER:
                writer.write(bytes(HIGH_WATER))
            await asyncio.sleep(0)
        assert pair.server.transport is not None
        assert pair.server.transport.get_write_buffer_size() <= 8 * HIGH_WATER

    relayed_over((False, False), body)
