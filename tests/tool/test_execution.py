from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.tool.approval import Approval, Verdict
from stockade.tool.call import ShellCall
from stockade.tool.ending import Ending
from stockade.tool.execution import Execution, execute, until_end
from stockade.tool.judgement import Judgement
from stockade.tool.placement import Place, Placement
from stockade.tool.session import ToolSession
from stockade.tool.transcript import Transcript

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

YES = Approval(Verdict.ALLOW, "walls", "it may")


class Slow:
    """A command that ends only when it is told to, and then takes its time."""

    def __init__(self) -> None:
        self.killed = asyncio.Event()
        self.gone = False

    async def wait(self) -> Ending:
        await self.killed.wait()
        await asyncio.sleep(0.05)
        self.gone = True
        message = "it was never there"
        raise StockadeError(message)

    def kill(self) -> None:
        self.killed.set()


def test_a_cancelled_task_waits_until_the_command_is_gone() -> None:
    async def main() -> None:
        run = Slow()
        task = asyncio.create_task(until_end(run))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.gone

    asyncio.run(main())


@pytest.mark.parametrize("where", [Place.INSIDE, Place.OUTSIDE])
def test_a_call_is_followed_to_its_end(yard: Yard, where: Place) -> None:
    async def main() -> None:
        session = ToolSession(yard.policy())
        await session.ready()
        transcript = Transcript(session.temporary)
        call = ShellCall("cd .git; echo x; exit 3")
        judged = Judgement(call, Placement(where, "walls", ""), YES, str(yard.project))
        done = await execute(session, judged, transcript)
        expected = Execution(Ending(3), str(yard.project / ".git"), done.seconds, timed_out=False)
        assert (done, transcript.text()) == (expected, "x\n")
        late = judged.but(call=ShellCall("sleep 300", timeout=0.1))
        done = await execute(session, late, Transcript(session.temporary))
        assert (done.timed_out, done.ending, done.directory) == (True, Ending(signal=9), None)
        await session.close()

    asyncio.run(main())
