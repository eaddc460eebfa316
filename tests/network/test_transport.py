from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.network import transport as module
from stockade.network.pipe import Pipe, Pipes
from stockade.network.transport import PIECE, SocketTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Heard(asyncio.Protocol):
    """Writes down all that it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.keeps_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.told.append(type(transport).__name__)

    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    def eof_received(self) -> bool:
        self.told.append("end")
        return self.keeps_open

    def pause_writing(self) -> None:
        self.told.append("full")

    def resume_writing(self) -> None:
        self.told.append("room")

    def connection_lost(self, error: Exception | None) -> None:
        self.told.append(("lost", type(error)))

    @property
    def size(self) -> int:
        return sum(len(each) for each in self.told if isinstance(each, bytes))


def wired(body: Callable[[SocketTransport, Heard, socket.socket], Awaitable[None]]) -> None:
    """Run a test between a transport and a plain socket at its other end."""

    async def main() -> None:
        inner, outer = socket.socketpair()
        inner.setblocking(False)
        outer.setblocking(False)
        heard = Heard()
        transport = SocketTransport(inner, heard)
        try:
            await asyncio.wait_for(body(transport, heard, outer), 20)
        finally:
            transport.abort()
            outer.close()
            await asyncio.sleep(0)
            assert inner.fileno() == -1

    asyncio.run(main())


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for are bytes in the kernel
        await asyncio.sleep(0.001)


async def drain(outer: socket.socket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), bytearray()
    while len(data) < size:
        data += await loop.sock_recv(outer, PIECE)
    return bytes(data)


def test_it_stands_at_once_and_reads_to_the_end() -> None:
    async def body(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        assert heard.told == ["SocketTransport"]
        assert (transport.is_reading(), transport.is_closing(), transport.get_protocol()) == (True, False, heard)
        outer.send(b"a")
        await until(lambda: heard.size)
        outer.shutdown(socket.SHUT_WR)
        await until(lambda: "end" in heard.told)
        transport.resume_reading()
        assert not transport.is_reading()
        transport.write(b"still open")
        assert await drain(outer, 10) == b"still open"
        assert heard.told == ["SocketTransport", b"a", "end"]

    wired(body)


def test_an_end_may_close_it() -> None:
    async def body(_transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        heard.keeps_open = False
        outer.shutdown(socket.SHUT_WR)
        await until(lambda: len(heard.told) == 3)
        assert heard.told[1:] == ["end", ("lost", type(None))]

    wired(body)


def test_what_cannot_be_sent_waits_and_ends_in_order() -> None:
    async def body(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        big = bytes(range(256)) * 20_000
        transport.set_write_buffer_limits(high=1000)
        assert transport.get_write_buffer_limits() == (250, 1000)
        transport.write(memoryview(big))
        transport.write(b"tail")
        transport.write_eof()
        transport.write_eof()
        assert transport.get_write_buffer_size() > 1000
        with pytest.raises(RuntimeError):
            transport.write(b"x")
        assert await drain(outer, len(big) + 4) == big + b"tail"
        assert await asyncio.get_running_loop().sock_recv(outer, 10) == b""
        assert heard.told[1:] == ["full", "room"]
        assert transport.get_write_buffer_size() == 0

    wired(body)


def test_close_sends_what_waits_and_abort_does_not() -> None:
    async def body(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        big = bytes(5_000_000)
        transport.write(big)
        transport.close()
        transport.close()
        assert transport.is_closing()
        assert len(await drain(outer, len(big))) == len(big)
        await until(lambda: ("lost", type(None)) in heard.told)
        transport.abort()
        transport.write(b"nobody is there")
        await asyncio.sleep(0)
        assert heard.told.count(("lost", type(None))) == 1
        assert transport.get_extra_info("peername", "gone") == "gone"

    wired(body)

    async def aborted(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        transport.write(bytes(5_000_000))
        transport.abort()
        assert transport.get_write_buffer_size() == 0
        assert ("lost", type(None)) not in heard.told
        await asyncio.sleep(0)
        assert heard.told[-1] == ("lost", type(None))
        assert outer.fileno() >= 0

    wired(aborted)


def test_nothing_is_read_while_paused() -> None:
    async def body(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        transport.pause_reading()
        transport.pause_reading()
        outer.send(b"a")
        await asyncio.sleep(0.02)
        assert heard.size == 0
        transport.resume_reading()
        transport.resume_reading()
        await until(lambda: heard.size == 1)

    wired(body)


def test_a_connection_that_breaks_is_told_once() -> None:
    async def body(transport: SocketTransport, heard: Heard, outer: socket.socket) -> None:
        outer.close()
        transport.pause_reading()
        transport.write(b"x")
        transport.write(b"y")
        await until(lambda: len(heard.told) > 1)
        assert heard.told[1:] == [("lost", BrokenPipeError)]

    wired(body)


class Poured:
    """A transport that is poured into another one, with what both were told."""

    def __init__(self, most: int = 1 << 40) -> None:
        inner, self.near = socket.socketpair()
        outer, self.far = socket.socketpair()
        for each in (inner, outer, self.near, self.far):
            each.setblocking(False)
        self.heard, self.sink_heard = Heard(), Heard()
        self.source, self.sink = SocketTransport(inner, self.heard), SocketTransport(outer, self.sink_heard)
        self.sizes: list[int] = []
        self.source.pour(self.sink, most, self.sizes.append)

    async def close(self) -> None:
        self.source.abort()
        self.sink.abort()
        self.near.close()
        self.far.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def poured(body: Callable[[Poured], Awaitable[None]], most: int = 1 << 40) -> None:
    async def main() -> None:
        scene = Poured(most)
        try:
            await asyncio.wait_for(body(scene), 20)
        finally:
            await scene.close()

    asyncio.run(main())


CONTENT = bytes(range(251)) * 40_000


@pytest.fixture(params=["through pipes", "refused by the system", "no pipe to be had"])
def pipes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pipes:
    pipes = Pipes()
    if request.param == "refused by the system":

        def refuse(_pipe: Pipe, _descriptor: int, _most: int) -> int:
            raise PermissionError(errno.EPERM, "not permitted")

        monkeypatch.setattr(Pipe, "fill", refuse)
    elif request.param == "no pipe to be had":
        pipes.give_up()
    monkeypatch.setattr(module, "_PIPES", pipes)
    return pipes


def test_what_is_poured_arrives_whole_and_in_order(pipes: Pipes) -> None:
    async def body(scene: Poured) -> None:
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(scene.near, CONTENT))
        assert await drain(scene.far, len(CONTENT)) == CONTENT
        await sending
        assert sum(scene.sizes) == len(CONTENT)
        assert (scene.heard.size, scene.sink.get_write_buffer_size()) == (0, 0)
        scene.near.shutdown(socket.SHUT_WR)
        await until(lambda: scene.heard.told[-1] == "end")

    poured(body)
    assert len(pipes) <= 4


@pytest.mark.parametrize("most", [1, 1000, PIECE - 1, PIECE, PIECE + 1, 3_000_000])
def test_no_more_is_poured_than_was_said(most: int) -> None:
    async def body(scene: Poured) -> None:
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(scene.near, CONTENT))
        assert await drain(scene.far, most) == CONTENT[:most]
        await until(lambda: scene.heard.size == len(CONTENT) - most)
        await sending
        assert b"".join(each for each in scene.heard.told if isinstance(each, bytes)) == CONTENT[most:]
        assert sum(scene.sizes) == most

    poured(body, most)


@pytest.mark.usefixtures("pipes")
def test_pouring_is_no_faster_than_the_other_side_takes() -> None:
    async def body(scene: Poured) -> None:
        loop = asyncio.get_running_loop()
        sending = asyncio.create_task(loop.sock_sendall(scene.near, CONTENT))
        await asyncio.sleep(0.1)
        assert not sending.done()
        assert not scene.source.is_reading()
        assert sum(scene.sizes) < len(CONTENT) // 2
        scene.sink.write(b"behind it")
        waiting = scene.sink.get_write_buffer_size()
        assert waiting > len(b"behind it")
        got = await drain(scene.far, len(CONTENT) + len(b"behind it"))
        await sending
        assert got.replace(b"behind it", b"") == CONTENT

    poured(body)


def test_a_sink_that_is_lost_takes_nothing_more_and_leaves_no_dirty_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = Pipes()
    monkeypatch.setattr(module, "_PIPES", pipes)

    async def body(scene: Poured) -> None:
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(scene.near, CONTENT))
        await asyncio.sleep(0.1)
        assert scene.sink.get_write_buffer_size() > 0
        scene.sink.abort()
        assert scene.sink.get_write_buffer_size() == 0
        scene.source.resume_reading()
        await sending
        await until(lambda: sum(scene.sizes) + scene.heard.size == len(CONTENT))

    poured(body)
    assert all(pipe.held == 0 for pipe in pipes._idle)


def test_tcp_is_not_held_back() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            outer = socket.create_connection(listener.getsockname())
            inner, _ = listener.accept()
        inner.setblocking(False)
        transport = SocketTransport(inner, Heard())
        assert inner.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert transport.get_extra_info("peername") == outer.getsockname()
        assert transport.get_extra_info("sockname") == outer.getpeername()
        assert transport.get_extra_info("socket") is inner
        assert transport.get_extra_info("ssl_object") is None
        transport.abort()
        outer.close()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_what_is_there_can_be_taken_before_reading_begins() -> None:
    async def main() -> None:
        inner, outer = socket.socketpair()
        inner.setblocking(False)
        heard = Heard()
        transport = SocketTransport(inner, heard, reading=False)
        assert (transport.take(), transport.is_reading()) == (b"", False)
        outer.send(b"first")
        assert transport.take() == b"first"
        outer.close()
        assert (transport.take(), heard.told) == (b"", ["SocketTransport"])
        transport.resume_reading()
        await until(lambda: "end" in heard.told)
        transport.discard()
        transport.discard()
        transport.abort()
        await asyncio.sleep(0)
        assert (heard.told, inner.fileno(), transport.is_closing()) == (["SocketTransport", "end"], -1, True)

    asyncio.run(main())


def test_a_loss_that_is_found_by_taking_is_told() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            outer = socket.create_connection(listener.getsockname())
            inner, _ = listener.accept()
        inner.setblocking(False)
        heard = Heard()
        transport = SocketTransport(inner, heard, reading=False)
        outer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01" + bytes(7))
        outer.close()
        assert transport.take() == b""
        transport.resume_reading()
        await asyncio.sleep(0)
        assert heard.told == ["SocketTransport", ("lost", ConnectionResetError)]

    asyncio.run(main())
