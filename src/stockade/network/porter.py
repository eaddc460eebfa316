"""Sockets from inside: fetched from a porter, who stands in the session's network and hands them out.

A socket belongs to the network in which it was made. So whoever stands outside asks for one, a byte ``4`` or ``6`` for
its family, and gets a byte back and with it a socket that is neither blocking nor connected.

Rules: one question at a time, each with a time limit; a porter that misses it is given up, for its answers could no
longer be told apart. Which words it answers with does not matter; an answer without a socket means that there is none
of that family. Several ports may share a porter, which is reached by a stream or by packets.
"""

from __future__ import annotations

import asyncio
import os
import socket

from stockade.annotation import Final
from stockade.network.link import received
from stockade.network.stream import Stream

_SECONDS: Final = 5.0
_PLACES: Final = ((b"4", socket.AF_INET, "127.0.0.1"), (b"6", socket.AF_INET6, "::1"))
_MOST_DESCRIPTORS: Final = 4
_ANSWER_BYTES: Final = 16
_DESCRIPTOR: Final = 4
_CLOSE_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Porter:
    """One porter. Belongs to one event loop."""

    def __init__(self, connection: socket.socket, *, seconds: float = _SECONDS) -> None:
        """Own the connection to it."""
        connection.setblocking(False)
        self._connection = connection
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[socket.socket]] = set()
        self._gone = False

    @property
    def place(self) -> tuple[int, int]:
        """What tells whether two descriptors are of one porter."""
        found = os.fstat(self._connection.fileno())
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Let it go."""
        self._gone = True
        self._connection.close()

    async def reach(self, port: int) -> Stream:
        """Connect to a port of the session's localhost, or raise ``OSError``."""
        failure: OSError = ConnectionRefusedError("nobody answers inside")
        for letter, family, address in _PLACES:
            try:
                return await self._connect(letter, family, (address, port))
            except OSError as error:
                failure = error
        raise failure

    async def _connect(self, letter: bytes, family: int, place: tuple[str, int]) -> Stream:
        loop = asyncio.get_running_loop()
        connection = await self._fetched(letter, family)
        stream = Stream()
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(self._seconds):
                await loop.sock_connect(connection, place)
                await loop.create_connection(lambda: stream, sock=connection)
        except BaseException:
            stream.abort()
            connection.close()
            raise
        return stream

    async def _fetched(self, letter: bytes, family: int) -> socket.socket:
        """Fetch a socket; whoever stops waiting for it must not leave its answer to the next."""
        task = asyncio.create_task(self._fetch(letter, family))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_discard)
            raise

    async def _fetch(self, letter: bytes, family: int) -> socket.socket:
        async with self._turn:
            if self._gone:
                message = "the way inside is gone"
                raise ConnectionError(message)
            try:
                self._connection.send(letter)
                async with asyncio.timeout(self._seconds):
                    found = await self._answer()
            except BaseException:
                # An answer that comes after all would be taken for that to the next question.
                self._gone = True
                raise
        for other in found[1:]:
            os.close(other)
        if not found:
            message = "there is no such socket inside"
            raise ConnectionError(message)
        return _checked(found[0], family)

    async def _answer(self) -> list[int]:
        await _readable(self._connection)
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR)
        data, ancillary, _flags, _address = self._connection.recvmsg(_ANSWER_BYTES, space, _CLOSE_ON_EXEC)
        if not data:
            message = "the porter is gone"
            raise ConnectionError(message)
        return received(ancillary)


def _checked(descriptor: int, family: int) -> socket.socket:
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        raise
    if (connection.family, connection.type) != (family, socket.SOCK_STREAM):
        connection.close()
        message = "the porter gave something else"
        raise ConnectionError(message)
    return connection


def _discard(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection.fileno(), lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(connection.fileno())
