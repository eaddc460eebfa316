from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.network.gate import Answer, Choice
from stockade.network.link import Link
from stockade.network.owner import Owner
from stockade.network.proxy_message import REFUSED, Question, Refused, Withdrawn
from stockade.policy.decision import decide
from stockade.policy.network_rules import NetworkRules

if TYPE_CHECKING:
    from tests.network.conftest import Play, World

    from stockade.network.link import Message
    from stockade.policy.decision import NetworkDecision


def denied(host: str) -> NetworkDecision:
    return decide(NetworkRules(), host, 443, can_ask=False)


def ends(world: World) -> tuple[Link, Link]:
    mine, theirs = Link.pair()
    proxy = Link.adopt(theirs.detach())

    async def close() -> None:
        mine.close()
        proxy.close()

    world.on_close(close)
    return mine, proxy


def refusals(messages: list[Message]) -> list[Refused]:
    return [Refused.read(message) for message in messages if message.kind == REFUSED]


def test_a_flood_that_nobody_reads_is_counted_and_told_later(play: Play) -> None:
    async def scene(world: World) -> None:
        reader, proxy = ends(world)
        owner = Owner(proxy, room=10_000, most_kept=50)
        hosts = [f"h{number % 3000}.test" for number in range(6000)]
        for host in hosts:
            owner.report(denied(host), "c1", 1)
        assert proxy.unsent < 12_000
        assert len(owner._kept) == 50
        found: list[Refused] = []
        while sum(told.times for told in found) < 6000:
            found += refusals(reader.receive_available())
            await asyncio.sleep(0)
        assert sum(told.times for told in found) == 6000
        rest = [told for told in found if not told.reason]
        assert [told.asked for told in rest] == [""]
        assert rest[0].words.startswith(f"denied: {rest[0].times} requests to further destinations")
        assert (owner._kept, owner._others, owner._watching) == ({}, 0, False)
        owner.report(denied("again.test"), "c1", 1)
        assert [told.asked for told in refusals(reader.receive_available())] == ["again.test:443"]

    play(scene)


def test_what_was_kept_is_told_at_the_end(play: Play) -> None:
    async def scene(world: World) -> None:
        reader, proxy = ends(world)
        owner = Owner(proxy, room=10, most_kept=5)
        for number in range(2000):
            owner.report(denied(f"h{number}.test"), "", 2)
        reading = asyncio.create_task(asyncio.to_thread(reader.receive_until_end, 20.0))
        await asyncio.to_thread(lambda: None)
        owner._stop_watching()
        await asyncio.to_thread(owner.finish, 10.0)
        proxy.end()
        assert sum(told.times for told in refusals(await reading)) == 4000

    play(scene)


def test_the_end_does_not_wait_for_who_does_not_read(play: Play) -> None:
    async def scene(world: World) -> None:
        _, proxy = ends(world)
        owner = Owner(proxy)
        for number in range(3000):
            owner.report(denied(f"h{number}.test"), "", 1)
        owner.finish(0.05)
        assert proxy.broken

    play(scene)


@pytest.mark.parametrize("choice", list(Choice))
def test_a_question_gets_its_answer(play: Play, choice: Choice) -> None:
    async def scene(world: World) -> None:
        reader, proxy = ends(world)
        owner = Owner(proxy)
        first = asyncio.create_task(owner.ask("a.test", 443, "c1"))
        second = asyncio.create_task(owner.ask("b.test", 80, ""))
        await asyncio.sleep(0)
        asked = [Question.read(message) for message in reader.receive_available()]
        assert asked == [Question(1, "a.test", 443, "c1"), Question(2, "b.test", 80, "")]
        owner.answer(3, "DENY", "no such question")
        owner.answer(2, choice.name, "because")
        owner.answer(2, "DENY", "too late")
        assert await second == Answer(choice, "because")
        assert not first.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert [Withdrawn.read(message) for message in reader.receive_available()] == [Withdrawn(1)]
        owner.answer(1, "ONCE", "too late")
        assert owner._questions == {}

    play(scene)


def test_an_answer_that_is_none_of_the_choices_is_a_failure(play: Play) -> None:
    async def scene(world: World) -> None:
        _, proxy = ends(world)
        owner = Owner(proxy)
        asking = asyncio.create_task(owner.ask("a.test", 443, ""))
        await asyncio.sleep(0)
        owner.answer(1, "MAYBE", "the question failed")
        with pytest.raises(StockadeError, match="the question failed"):
            await asking

    play(scene)


def test_a_question_that_finds_no_room_is_not_asked(play: Play) -> None:
    async def scene(world: World) -> None:
        _, proxy = ends(world)
        owner = Owner(proxy, room=1000)
        for number in range(3000):
            owner.report(denied(f"h{number}.test"), "", 1)
        with pytest.raises(OSError, match="reads no questions"):
            await owner.ask("a.test", 443, "")
        owner._stop_watching()

    play(scene)


def test_nobody_is_told_once_the_link_has_ended(play: Play) -> None:
    async def scene(world: World) -> None:
        reader, proxy = ends(world)
        owner = Owner(proxy)
        reader.abandon()
        owner.report(denied("a.test"), "", 1)
        with pytest.raises(OSError, match="reads no questions"):
            await owner.ask("a.test", 443, "")
        owner.finish(5)
        assert proxy.broken

    play(scene)
