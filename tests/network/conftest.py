"""A small world on loopback: servers that remember what reached them, names that lead to them, and the way out.

Each scene runs in an event loop of its own and must leave nothing behind: no task, no socket, no fault.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import pytest

from stockade.network.dial import Pace
from stockade.network.gate import AskingLimits, Gate
from stockade.network.outlet import Outlet
from stockade.network.resolver import Resolver, ResolverLimits
from stockade.network.route import Router
from stockade.network.upstream import Upstreams
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.network.gate import Ask
    from stockade.policy.decision import NetworkDecision

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Handler: TypeAlias = "Callable[[Canary, Reader, Writer], Awaitable[None]]"
USER = Origin(Layer.USER, "~/.stockade/settings.json")


def rules(allowed: str = "", denied: str = "") -> NetworkRules:
    def of(texts: str) -> tuple[Sourced[DomainPattern], ...]:
        return tuple(Sourced(DomainPattern.parse(text, deny=True), USER) for text in texts.split())

    return NetworkRules(of(allowed), of(denied))


class Canary:
    """A server that remembers what reached it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.connections = 0
        self.open = 0
        self.port = 0

    def __repr__(self) -> str:
        return f"Canary({self.connections} connections, {bytes(self.received)!r})"


async def echo(canary: Canary, reader: Reader, writer: Writer) -> None:
    """Send back what comes, and the end of it."""
    while data := await reader.read(65536):
        canary.received += data
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


class Client:
    """A program that speaks through the proxy."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hear(self, size: int) -> bytes:
        return await self.reader.readexactly(size)

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        """Return all until the end; nothing if the connection is reset."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def was_reset(self) -> bool:
        try:
            return await self.reader.read() != b"" and False
        except ConnectionError:
            return True

    async def ask(self, data: bytes) -> bytes:
        await self.say(data)
        return await self.rest()


class World:
    """Everything of one scene. Names lead to 127.0.0.1 unless ``names`` says otherwise."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        self.looked_up: list[str] = []
        self.refusals: list[tuple[NetworkDecision, str, int]] = []
        self.faults: list[Mapping[str, object]] = []
        self.resolver = Resolver(self._lookup, limits=ResolverLimits(kept_seconds=0))
        self._closing: list[Callable[[], Awaitable[object]]] = []
        self._writers: list[Writer] = []
        self._handlers: list[asyncio.Future[None]] = []

    def _lookup(self, name: str) -> list[str]:
        self.looked_up.append(name)
        return self.names.get(name, ["127.0.0.1"])

    def outlet(
        self,
        allowed: str = "",
        denied: str = "",
        *,
        ask: Ask | None = None,
        environment: Mapping[str, str] | None = None,
        pace: Pace | None = None,
    ) -> Outlet:
        """Return the way out."""
        gate = Gate(rules(allowed, denied), ask, limits=AskingLimits(seconds=5))
        router = Router(gate, self.resolver, Upstreams.from_environment(environment or {}))
        outlet = Outlet(gate, router, lambda *refusal: self.refusals.append(refusal), pace=pace or Pace(0.05, 5, 4))

        async def close() -> None:
            outlet.close()

        self._closing.insert(0, close)
        return outlet

    def told(self) -> list[tuple[str, str, str, int]]:
        """Return what was reported: destination, reason, command and how many times."""
        return [(decision.asked, decision.reason.name, command, times) for decision, command, times in self.refusals]

    def on_close(self, close: Callable[[], Awaitable[object]]) -> None:
        self._closing.append(close)

    def listener(self, address: str = "127.0.0.1") -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, 0), family=family, backlog=4096)

    async def canary(self, handler: Handler = echo, address: str = "127.0.0.1") -> Canary:
        """Start a server."""
        canary = Canary()

        async def connected(reader: Reader, writer: Writer) -> None:
            canary.connections += 1
            canary.open += 1
            self._writers.append(writer)
            task = asyncio.ensure_future(handler(canary, reader, writer))
            self._handlers.append(task)
            try:
                await task
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                canary.open -= 1
                writer.close()

        listener = self.listener(address)
        canary.port = listener.getsockname()[1]
        server = await asyncio.start_server(connected, sock=listener)

        async def close() -> None:
            server.close()

        self.on_close(close)
        return canary

    async def connect(self, port: int) -> Client:
        """Connect a program to a port of ours."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self._writers.append(writer)
        return Client(reader, writer)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        for _ in range(1000):
            if holds():
                return
            await asyncio.sleep(0.005)
        pytest.fail("it never came to hold")

    async def end(self) -> None:
        for close in reversed(self._closing):
            await close()
        for handler in self._handlers:
            handler.cancel()
        for writer in self._writers:
            writer.transport.abort()
        self.resolver.close()
        await self.until(lambda: len(asyncio.all_tasks()) <= 2)


Scene: TypeAlias = Callable[[World], Awaitable[None]]
Play: TypeAlias = Callable[[Scene], None]


async def _play(scene: Scene) -> None:
    world = World()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: world.faults.append(context))
    try:
        await scene(world)
    finally:
        await world.end()
    assert world.faults == []


@pytest.fixture
def play() -> Play:
    """Run a scene, within bounds."""

    def run(scene: Scene) -> None:
        asyncio.run(asyncio.wait_for(_play(scene), 60))
        gc.collect()  # a socket that was left open complains here

    return run
