from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

from stockade.network.limits import ProxyLimits
from stockade.network.service import Service, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.network.conftest import Play, World


def listening(world: World, service: Service) -> int:
    listener = world.listener()
    world.on_close(service.close)
    service.listen(listener)
    port: int = listener.getsockname()[1]
    return port


def test_a_fault_ends_one_connection_alone(play: Play) -> None:
    async def served(visit: Visit) -> None:
        data = await visit.stream.read()
        if data == b"break":
            message = "a fault of ours"
            raise ValueError(message)
        await visit.stream.write(data)
        await visit.finish()

    async def scene(world: World) -> None:
        faults: list[Mapping[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        service = Service(served)
        port = listening(world, service)
        bad, good = await world.connect(port), await world.connect(port)
        assert await bad.ask(b"break") == b""
        await good.say(b"echo")
        assert await good.rest() == b"echo"
        assert [fault["message"] for fault in faults] == ["a connection was dropped"]

    play(scene)


def test_a_client_that_goes_away_ends_the_work_for_it(play: Play) -> None:
    async def scene(world: World) -> None:
        over: list[str] = []

        async def served(visit: Visit) -> None:
            visit.when_over(lambda: over.append("over"))
            try:
                await asyncio.Event().wait()
            finally:
                over.append("cancelled")

        service = Service(served)
        client = await world.connect(listening(world, service))
        await world.until(lambda: len(service) == 1)
        await asyncio.sleep(0.01)
        client.writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
        )
        client.writer.transport.abort()
        await world.until(lambda: over == ["cancelled", "over"])
        assert len(service) == 0

    play(scene)


class Tired:
    """A listening socket for which the system has no descriptor at first."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.refused = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._listener, name)

    def accept(self) -> tuple[socket.socket, object]:
        if self.refused < 2:
            self.refused += 1
            raise OSError(errno.EMFILE, "too many open files")
        return self._listener.accept()


def test_without_descriptors_it_waits_a_moment(play: Play) -> None:
    async def served(visit: Visit) -> None:
        await visit.stream.write(b"here")
        await visit.finish()

    async def scene(world: World) -> None:
        service = Service(served)
        world.on_close(service.close)
        listener = world.listener()
        tired = Tired(listener)
        service.listen(tired)  # type: ignore[arg-type] # it does all that is asked of it
        client = await world.connect(listener.getsockname()[1])
        assert await client.hear(4) == b"here"
        assert tired.refused == 2

    play(scene)


class Idler:
    seen = -1
    moved = 0
    expired = 0

    def expire(self) -> None:
        self.expired += 1


def test_what_does_not_move_expires(play: Play) -> None:
    async def scene(world: World) -> None:
        async def served(_visit: Visit) -> None:
            return

        service = Service(served, ProxyLimits(idle_seconds=0.05))
        listening(world, service)
        still, moving = Idler(), Idler()
        stop, stop_moving = service.watch(still), service.watch(moving)
        for _ in range(200):
            moving.moved += 1
            await asyncio.sleep(0.005)
            if still.expired:
                break
        stop()
        stop_moving()
        assert (still.expired, moving.expired) == (1, 0)

    play(scene)
