from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.platforms.walls import make_walls
from stockade.policy.live import LivePolicy
from stockade.tool.request import ApprovalAnswer, ApprovalChoice
from stockade.tool.session import ToolSession

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

    from stockade.platforms.backend import Walls


class Builder:
    """Builds walls, or fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self, temporary: str) -> Walls:
        self.calls += 1
        if self.calls <= self.failures:
            message = "no user namespaces"
            raise UnavailableError(message, "enable them")
        return make_walls(temporary)


def test_calls_at_once_share_one_opening(yard: Yard) -> None:
    async def main() -> None:
        builder = Builder()
        session = ToolSession(yard.policy(), walls=builder)
        assert session.known_temporary == ""
        assert await asyncio.gather(*(session.ready() for _ in range(20))) == [""] * 20
        assert builder.calls == 1
        assert session.temporary == session.known_temporary == session.sandbox.temporary
        await session.close()

    asyncio.run(main())


def test_a_failed_opening_leaves_nothing_and_is_tried_again(yard: Yard) -> None:
    async def main() -> None:
        builder = Builder(failures=1)
        session = ToolSession(yard.policy(), walls=builder, environment={**os.environ, "TMPDIR": str(yard.home)})
        answers = await asyncio.gather(*(session.ready() for _ in range(5)))
        assert answers == ["no user namespaces; enable them"] * 5
        assert [*yard.home.glob("stockade-*/*")] == []
        assert await session.ready() == ""
        assert builder.calls == 2
        await session.close()
        await session.close()
        assert [*yard.home.glob("stockade-*/*")] == []
        with pytest.raises(StockadeError, match="is closed"):
            await session.ready()

    asyncio.run(main())


def test_without_a_sandbox_there_is_a_directory_all_the_same(yard: Yard) -> None:
    async def main() -> str:
        session = ToolSession(yard.policy(enabled=False), environment={**os.environ, "TMPDIR": str(yard.home)})
        folder = session.temporary
        assert folder == session.temporary
        assert os.stat(folder).st_mode & 0o777 == 0o700
        await session.close()
        return folder

    assert not os.path.exists(asyncio.run(main()))


def test_settings_are_looked_at_before_each_call_and_told_once(yard: Yard) -> None:
    async def main() -> None:
        file = yard.user({"sandbox": {"enabled": True}})
        session = ToolSession(LivePolicy(yard.locations))
        await session.ready()
        before = session.policy
        await session.refresh()
        assert session.policy is before
        yard.user({"sandbox": {"enabled": True, "filesystem": {"allowWrite": [str(yard.outside)]}}})
        await session.refresh()
        assert session.policy is session.sandbox.policy
        assert session.policy != before
        assert session.news() == ()
        file.write_text("{")
        await session.refresh()
        news = session.news()
        assert len(news) == 1
        assert "the settings before stay in force" in news[0]
        assert session.news() == ()
        await session.close()

    asyncio.run(main())


def test_a_policy_may_be_set_by_hand(yard: Yard) -> None:
    async def main() -> None:
        session = ToolSession(yard.policy())
        policy = yard.policy(enabled=False)
        await session.update(policy)
        await session.refresh()
        assert session.policy is policy
        assert [session.mint(), session.mint()] == ["call-1", "call-2"]
        await session.close()

    asyncio.run(main())


def test_a_lock_that_comes_takes_answers_that_wait(yard: Yard) -> None:
    async def main() -> None:
        session = ToolSession(LivePolicy(yard.locations))
        session.pending.append(ApprovalAnswer(ApprovalChoice.EXCLUDE, ("docker *",)))
        await session.refresh()
        assert len(session.pending) == 1
        yard.write(yard.managed, {"sandbox": {"enabled": True}})
        await session.refresh()
        assert session.pending == []
        await session.close()

    asyncio.run(main())


def test_each_session_has_a_mark_of_its_own(yard: Yard) -> None:
    first, second = ToolSession(yard.policy()), ToolSession(yard.policy())
    assert first.mark.id
    assert first.mark != second.mark
