from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.network.carrier import Carrier
from stockade.network.failure import ConnectError, Failure
from stockade.network.limits import ProxyLimits
from stockade.network.proxy_main import _connect

if TYPE_CHECKING:
    from tests.network.conftest import Play, World

    from stockade.network.carrier import Reach
    from stockade.network.service import Visit
    from stockade.network.stream import Stream


async def serve(world: World, reach: Reach, limits: ProxyLimits | None = None) -> tuple[Carrier, int]:
    carrier = Carrier(reach, limits=limits)
    listener = world.listener()
    world.on_close(carrier.close)
    await carrier.serve(listener)
    return carrier, listener.getsockname()[1]


def test_bytes_are_carried_both_ways_to_the_end(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        carrier, port = await serve(world, lambda _visit: _connect("127.0.0.1", canary.port))
        client = await world.connect(port)
        await client.say(b"hello")
        assert await client.hear(5) == b"hello"
        client.writer.write_eof()
        assert await client.rest() == b""
        await world.until(lambda: not len(carrier))

    play(scene)


async def _denied(_visit: Visit) -> Stream | None:
    return None


async def _unreachable(_visit: Visit) -> Stream | None:
    raise ConnectError(Failure.REFUSED, "there")


async def _broken(_visit: Visit) -> Stream | None:
    raise ConnectionResetError


@pytest.mark.parametrize(
    "reach",
    [
        pytest.param(_denied, id="it may not"),
        pytest.param(_unreachable, id="it cannot"),
        pytest.param(_broken, id="it breaks"),
    ],
)
def test_who_is_not_carried_is_reset(play: Play, reach: Reach) -> None:
    async def scene(world: World) -> None:
        carrier, port = await serve(world, reach)
        client = await world.connect(port)
        assert await client.was_reset()
        await world.until(lambda: not len(carrier))

    play(scene)


def test_beyond_the_limit_nobody_is_carried(play: Play) -> None:
    async def scene(world: World) -> None:
        canary = await world.canary()
        carrier, port = await serve(
            world, lambda _visit: _connect("127.0.0.1", canary.port), ProxyLimits(connections=1)
        )
        await world.connect(port)
        await world.until(lambda: canary.open == 1)
        assert await (await world.connect(port)).was_reset()
        assert len(carrier) == 1

    play(scene)
