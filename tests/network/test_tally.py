from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stockade.network.tally import Tally
from stockade.policy.decision import NetworkDecision, decide
from stockade.policy.network_rules import NetworkRules

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B, C = (decide(NetworkRules(), f"{name}.test", 443, can_ask=False) for name in "abc")


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int]] = []

    def __call__(self, decision: NetworkDecision, command: str, times: int) -> None:
        self.heard.append((decision.asked, command, times))


def test_the_first_is_told_at_once_and_the_rest_in_numbers() -> None:
    async def scene() -> None:
        ear = Ear()
        tally = Tally(ear, seconds=0.01)
        for decision, command in ((A, "c1"), (A, "c1"), (B, "c1"), (A, "c1"), (A, "c2")):
            tally.add(decision, command)
        assert ear.heard == [("a.test:443", "c1", 1), ("b.test:443", "c1", 1), ("a.test:443", "c2", 1)]
        await asyncio.sleep(0.1)
        assert ear.heard[3:] == [("a.test:443", "c1", 2)]
        tally.add(A, "c1")
        tally.flush()
        tally.flush()
        assert ear.heard[4:] == [("a.test:443", "c1", 1)]

    asyncio.run(scene())


def test_only_so_many_are_remembered_and_none_is_lost() -> None:
    async def scene() -> None:
        ear = Ear()
        tally = Tally(ear, remembered=2)
        for decision in (A, A, B, C, A):
            tally.add(decision, "")
        tally.flush()
        assert sum(times for asked, _, times in ear.heard if asked == "a.test:443") == 3
        assert len(ear.heard) == 5

    asyncio.run(scene())


def test_a_listener_that_breaks_breaks_nothing() -> None:
    def broken(_decision: NetworkDecision, _command: str, _times: int) -> None:
        message = "no"
        raise ValueError(message)

    async def scene() -> None:
        faults: list[Mapping[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        Tally(broken).add(A, "")
        assert [fault["message"] for fault in faults] == ["a report of a refusal failed"]

    asyncio.run(scene())
