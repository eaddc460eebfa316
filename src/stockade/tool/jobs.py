"""Background jobs: they outlive the call that started them, not the session.

A job's output is taken as it comes, and bounded as any other; ``read`` returns what is new since the last time. Who
has ended a job, or read the end of one, still finds it in the list.
"""

from __future__ import annotations

import asyncio
import time

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError
from stockade.escape import escape
from stockade.tool.ending import Ending
from stockade.value import Value
from stockade.violations.annotation import annotate, neutralise
from stockade.violations.mark import PLAIN

if TYPE_CHECKING:
    from stockade.tool.call import ShellCall
    from stockade.tool.ending import Run
    from stockade.tool.placement import Place
    from stockade.tool.session import ToolSession
    from stockade.tool.transcript import Transcript
    from stockade.violations.mark import Mark


class JobState(Value):
    """A job as it is now. ``ending`` is missing while it runs; ``failure`` says why it could not be run."""

    name: str
    command: str
    description: str
    place: Place
    seconds: float
    output_size: int
    ending: Ending | None = None
    failure: str = ""

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self.ending is None and not self.failure

    def __str__(self) -> str:
        """Return it as one line."""
        state = "runs" if self.running else self.failure or _ended(self.ending or Ending())
        return f"{self.name}: {state}, {self.place.value} the sandbox: {escape(self.command, 100)}"


class JobOutput(Value):
    """What a job printed since it was last read, for the model, and how it is; ``mark`` tells our words from its."""

    state: JobState
    output: str
    output_file: str = ""
    cut: bool = False
    mark: Mark = PLAIN

    @property
    def for_model(self) -> str:
        """Return it in words for the model."""
        gap = "" if not self.output or self.output.endswith("\n") else "\n"
        lines = [] if self.output else ["nothing new"]
        if self.cut and self.mark.id:
            lines.append(f"not all of its new output is shown; the file is {escape(self.output_file)}")
        lines.append(str(self.state))
        return f"{self.output}{gap}" + "\n".join(self.mark.line(neutralise(line, self.mark)) for line in lines)


class Job:
    """One background job."""

    def __init__(
        self, name: str, call: ShellCall, place: Place, run: Run, transcript: Transcript, session: ToolSession
    ) -> None:
        """Take a command that was started."""
        self.name = name
        self._call = call
        self._place = place
        self._run = run
        self._transcript = transcript
        self._session = session
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._ending: Ending | None = None
        self._failure = ""
        self._told = 0
        self._watching = asyncio.ensure_future(self._watch())
        loop = self._watching.get_loop()
        self._timer = None if call.seconds is None else loop.call_later(call.seconds, run.kill)

    @property
    def state(self) -> JobState:
        """How it is now."""
        seconds = time.monotonic() - self._began if self._seconds is None else self._seconds
        size = self._transcript.size
        call = self._call
        return JobState(
            self.name, call.command, call.description, self._place, seconds, size, self._ending, self._failure
        )

    def read(self) -> JobOutput:
        """Return what is new."""
        cut, text = self._transcript.is_cut, self._transcript.take()
        violations = () if self._ending is None else self._ending.violations[self._told :]
        self._told += len(violations)
        mark = self._session.mark
        return JobOutput(self.state, annotate(text, violations, mark=mark), self._transcript.file, cut, mark)

    async def wait(self) -> JobState:
        """Wait until it has ended."""
        await asyncio.shield(self._watching)
        return self.state

    async def end(self) -> JobState:
        """End it, with all that it started, and wait for that."""
        self._run.kill()
        return await self.wait()

    async def _watch(self) -> None:
        try:
            self._ending = await self._run.wait()
        except StockadeError as error:
            self._failure = error.message
        finally:
            self._seconds = time.monotonic() - self._began
            if self._timer is not None:
                self._timer.cancel()
            self._transcript.finish()
            self._session.end(self._run)


class Jobs:
    """The background jobs of one agent."""

    def __init__(self, session: ToolSession) -> None:
        """Begin with none."""
        self._session = session
        self._jobs: dict[str, Job] = {}

    def add(self, call: ShellCall, place: Place, run: Run, transcript: Transcript) -> Job:
        """Take over a command that was started."""
        job = Job(f"job-{len(self._jobs) + 1}", call, place, run, transcript, self._session)
        self._jobs[job.name] = job
        return job

    def list(self) -> tuple[JobState, ...]:
        """Return all jobs, the oldest first."""
        return tuple(job.state for job in self._jobs.values())

    def read(self, name: str) -> JobOutput:
        """Return what a job printed since it was last read. Raises StockadeError if there is no such job."""
        return self._named(name).read()

    async def wait(self, name: str) -> JobState:
        """Wait until a job has ended."""
        return await self._named(name).wait()

    async def end(self, name: str) -> JobState:
        """End a job, with all that it started."""
        return await self._named(name).end()

    async def close(self) -> None:
        """End all jobs."""
        await asyncio.gather(*(job.end() for job in self._jobs.values()))

    def _named(self, name: str) -> Job:
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none was started"
            message = f"there is no background job {escape(name, 60)}"
            raise StockadeError(message, f"known: {known}")
        return self._jobs[name]


def _ended(ending: Ending) -> str:
    return f"ended by signal {ending.signal}" if ending.signal is not None else f"ended with {ending.exit_code}"
