"""A judged call is started, where it was judged to run, and followed to its end.

Rules: a timeout and a cancelled task end the command with all that it started, and wait for that; whatever happens,
the pipe is closed and the report of the directory is gone afterwards.
"""

from __future__ import annotations

import asyncio
import os
import time

from stockade.annotation import TYPE_CHECKING, Any
from stockade.tool.directory import read_report, shell_words
from stockade.tool.inside import start_inside
from stockade.tool.outside import start_outside
from stockade.tool.placement import Place
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.tool.ending import Ending, Run
    from stockade.tool.judgement import Judgement
    from stockade.tool.session import ToolSession
    from stockade.tool.transcript import Transcript


class Execution(Value):
    """A call that has run: how it ended, where it left its shell (if it said so), how long it took."""

    ending: Ending
    directory: str | None
    seconds: float
    timed_out: bool


async def execute(session: ToolSession, judged: Judgement, transcript: Transcript) -> Execution:
    """Run a call to its end. Raises StockadeError if it cannot be started."""
    report = os.path.join(session.temporary, f".directory-{os.urandom(6).hex()}")
    began = time.monotonic()
    expired: list[bool] = []
    try:
        shell, *options = shell_for(session, judged)
        first, *words = shell_words(shell, judged.call.command, report)
        run = await start(session, judged, (first, *options, *words), transcript)

        def expire() -> None:
            expired.append(True)
            run.kill()

        timer = asyncio.get_running_loop().call_later(judged.call.seconds or 0, expire)
        try:
            ending = await until_end(run)
        finally:
            timer.cancel()
            session.end(run)
    finally:
        transcript.finish()
        directory = read_report(report)
    return Execution(ending, directory, time.monotonic() - began, bool(expired))


def shell_for(session: ToolSession, judged: Judgement) -> tuple[str, ...]:
    """Return the words that start the shell for the line of a call. Raises UnavailableError if no shell is left."""
    return (session.shell,) if judged.outside is None else judged.outside.shell


def _environment(session: ToolSession, judged: Judgement) -> Mapping[str, str]:
    if judged.outside is None:
        return session.environment
    said_yes = judged.approval.by in ("answer", "skipped")
    return judged.outside.approved if said_yes else judged.outside.environment


async def start(session: ToolSession, judged: Judgement, words: tuple[str, ...], transcript: Transcript) -> Run:
    """Start words for a call; what they print is taken from now on, and they end with the session at the latest."""
    cwd = judged.directory
    run: Run
    if judged.placement.place is Place.INSIDE:
        line, name = judged.call.command, session.mint()
        run = await start_inside(session.sandbox, words, transcript.writer, cwd=cwd, command_id=name, line=line)
    else:
        where = judged.place_on_disk or cwd
        environment = _environment(session, judged)
        run = start_outside(words, transcript.writer, cwd=where, environment=environment)
    session.begin(run)
    transcript.listen(asyncio.get_running_loop())
    return run


async def until_end(run: Run) -> Ending:
    """Wait for the end of a command; a cancelled task ends it first."""
    waiting = asyncio.ensure_future(run.wait())
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        run.kill()
        waiting.add_done_callback(_retrieved)
        await asyncio.wait([waiting])
        raise


def _retrieved(waiting: asyncio.Future[Any]) -> None:
    """Note that somebody looked at the outcome."""
    if not waiting.cancelled():
        waiting.exception()
