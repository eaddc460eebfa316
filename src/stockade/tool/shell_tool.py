"""The shell tool that an agent host plugs in: ``async with ShellTool(policy) as tool: await tool.run(call)``.

One call goes: mode -> placement -> approval -> run -> what was refused -> bounds. Rules:

- A call that does not run is a result that says why; only a cancelled task raises.
- Cancelling, a timeout and closing end a command with all that it started. Background jobs live as long as the tool.
- Many calls may run at once; each begins where the last one that changed the directory has ended.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Any, Self
from stockade.errors import StockadeError
from stockade.sandbox.session import NO_LIMITS
from stockade.tool.allowance import SKIPPED, skips_check
from stockade.tool.approval import Approval, ApprovalMode, Terms, Verdict, approve_mode, may_edit
from stockade.tool.call import definition
from stockade.tool.directory import WorkingDirectory
from stockade.tool.execution import execute, shell_for, start
from stockade.tool.inheritance import Inheritance
from stockade.tool.jobs import Jobs
from stockade.tool.judgement import Judge
from stockade.tool.output import advise
from stockade.tool.placement import bypass_allowed
from stockade.tool.remembering import remember
from stockade.tool.root import require_not_root
from stockade.tool.session import ToolSession
from stockade.tool.shell_result import ShellResult
from stockade.tool.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from stockade.network.gate import Ask
    from stockade.platforms.backend import Observe, Walls
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.limits import Limits
    from stockade.settings.sources import Locations
    from stockade.tool.call import ShellCall
    from stockade.tool.job_call import JobCall
    from stockade.tool.judgement import Judgement
    from stockade.tool.request import Approve
    from stockade.violations.mark import Mark
    from stockade.violations.store import Violations


class ShellTool:
    """See the module."""

    def __init__(  # noqa: PLR0913 - what a host may decide, all named
        self,
        policy: SandboxPolicy | LivePolicy,
        *,
        approve: Approve | None = None,
        mode: ApprovalMode = ApprovalMode.OPEN,
        skip_permissions: bool = False,
        locations: Locations | None = None,
        plan_file: str = "",
        ask: Ask | None = None,
        limits: Limits = NO_LIMITS,
        environment: Mapping[str, str] | None = None,
        observe: Observe = "auto",
        walls: Callable[[str], Walls] | None = None,
    ) -> None:
        """Take a policy; nothing is started before the first call. A ``LivePolicy`` is kept up to date.

        ``approve`` is awaited with an ``ApprovalRequest`` for each call that must be asked for; without it, those do
        not run. ``locations`` is where settings are: with it, an answer may be kept. ``skip_permissions`` answers every
        question with yes; as root it raises, unless ``IS_SANDBOX=1``. ``plan_file`` is what may be written in plan
        mode, see ``may_edit``. The rest is as for ``Sandbox``.
        """
        session = ToolSession(policy, environment=environment, ask=ask, limits=limits, observe=observe, walls=walls)
        if skip_permissions:
            require_not_root(os.geteuid(), session.environment)
        check = not skips_check(session.environment)
        if not check:
            sys.stderr.write(f"stockade: {SKIPPED}\n")
        terms = Terms(mode, skip_permissions=skip_permissions, check_injection=check)
        self._set_up(session, Inheritance(terms=terms, plan_file=plan_file), approve, locations)
        self._owner = True

    def _set_up(
        self, session: ToolSession, inheritance: Inheritance, approve: Approve | None, locations: Locations | None
    ) -> None:
        self._session = session
        self._inheritance = inheritance
        self._approve = approve
        self._locations = locations
        self._directory = WorkingDirectory(session.policy.cwd)
        self._judge = Judge(session, self._directory, approve, locations)
        self.jobs = Jobs(session)

    @property
    def policy(self) -> SandboxPolicy:
        """The policy that the next call gets."""
        return self._session.policy

    @property
    def violations(self) -> Violations:
        """What was refused in this session."""
        return self._session.violations

    @property
    def mark(self) -> Mark:
        """What tells our words in results from a command's: ``guidance`` says it to the model; no command has it."""
        return self._session.mark

    @property
    def directory(self) -> str:
        """Where the next call begins."""
        return self._directory.path

    @property
    def mode(self) -> ApprovalMode:
        """How much is done without asking; may be set between calls."""
        return self._inheritance.terms.mode

    @mode.setter
    def mode(self, mode: ApprovalMode) -> None:
        self._inheritance = self._inheritance.but(terms=self._inheritance.terms.but(mode=mode))

    def may_edit(self, path: str) -> bool:
        """Say whether the mode lets the host's own tools write a file: in plan mode only the plan."""
        return may_edit(self.mode, path, self._inheritance.plan_file)

    @property
    def may_bypass(self) -> bool:
        """Whether a call may ask to run outside, as the policy is now."""
        return bypass_allowed(self.policy, may_bypass=self._inheritance.may_bypass)

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as model APIs take it, for the policy as it is now."""
        return definition(bypass=self.policy.mode.enabled and self.may_bypass)

    @property
    def job_definition(self) -> dict[str, Any]:
        """The tool for background jobs; its calls are for ``run_job``."""
        from stockade.tool.job_call import job_definition

        return job_definition()

    @property
    def guidance(self) -> str:
        """What to put into the agent's system prompt, for the policy as it is now; empty if the sandbox is off."""
        from stockade.tool.guidance import guidance

        return guidance(
            self.policy,
            temporary=self._session.known_temporary,
            may_bypass=self._inheritance.may_bypass,
            can_ask=self._session.can_ask,
            mark=self._session.mark,
        )

    async def __aenter__(self) -> Self:
        """Use it; the sandbox is opened by the first call that needs it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """End all that runs. A sub-agent's tool ends its own jobs alone."""
        await self.jobs.close()
        if self._owner:
            await self._session.close()
            while self._session.pending:
                remember(self._session.pending.pop(0), self._locations)

    async def update(self, policy: SandboxPolicy) -> None:
        """Use another policy from the next call on."""
        await self._session.update(policy)

    async def slash(self, text: str) -> str:
        """Do what somebody typed behind ``/sandbox``, and return the answer; it counts from the next call on."""
        from stockade.tool.slash import slash

        if self._locations is None:
            return "this tool was not told where settings are"
        self._session.rest()
        answer = slash(text, self._locations, violations=self.violations)
        await self._session.refresh()
        return answer

    def child(self, name: str, *, approve: Approve | None = None) -> ShellTool:
        """Return the tool of a sub-agent: the same session, never a bypass. Its questions go where ours go."""
        child = ShellTool.__new__(ShellTool)
        inheritance = self._inheritance.child(name)
        child._set_up(self._session, inheritance, approve or self._approve, self._locations)  # noqa: SLF001 - one class
        child._directory.path = self.directory  # noqa: SLF001 - one class
        child._owner = False  # noqa: SLF001 - one class
        return child

    async def run(self, call: ShellCall, *, on_output: Callable[[bytes], object] | None = None) -> ShellResult:
        """Run a call and return what came of it; ``on_output`` is told each piece of output as it comes."""
        early = approve_mode(self.mode)
        if early is not None:
            mark = self._session.mark
            return ShellResult(call.command, early, refusal=early.reason, directory=self.directory, mark=mark)
        try:
            judged = await self._judge.judge(call, self._inheritance)
            if judged.approval.verdict is Verdict.REFUSE:
                return self._result(judged, refusal=judged.approval.reason)
            if call.is_empty:
                return self._result(judged.but(notes=(*judged.notes, "there was nothing to run")), exit_code=0)
            if call.run_in_background:
                return await self._start_job(judged, on_output)
            return await self._run(judged, on_output)
        except StockadeError as error:
            return self._failed(call, error)

    async def run_job(self, call: JobCall) -> str:
        """Do what a model wants with its background jobs, and return the answer for it."""
        from stockade.tool.job_call import run_job_call

        return await run_job_call(self.jobs, call, self._session.mark)

    async def _run(self, judged: Judgement, on_output: Callable[[bytes], object] | None) -> ShellResult:
        session = self._session
        transcript = Transcript(session.temporary, on_output)
        done = await execute(session, judged, transcript)
        ending, text = done.ending, transcript.text()
        moved = self._directory.end(judged.directory, done.directory, session.policy, session.known_temporary)
        child = self._inheritance.is_child
        return self._result(
            judged,
            exit_code=ending.exit_code,
            signal=ending.signal,
            timed_out=done.timed_out,
            seconds=done.seconds,
            output=text,
            output_size=transcript.size,
            output_file=transcript.file,
            violations=ending.violations,
            violations_dropped=ending.dropped,
            notes=(*judged.notes, *moved, *session.untold(ending.notes), *transcript.notes),
            advice=advise(text, ending, judged.placement, may_bypass=self.may_bypass, is_child=child),
        )

    async def _start_job(self, judged: Judgement, on_output: Callable[[bytes], object] | None) -> ShellResult:
        session = self._session
        transcript = Transcript(session.temporary, on_output)
        try:
            run = await start(session, judged, (*shell_for(session, judged), "-c", judged.call.command), transcript)
        except BaseException:
            transcript.finish()
            raise
        job = self.jobs.add(judged.call, judged.placement.place, run, transcript)
        return self._result(judged, job=job.name)

    def _result(self, judged: Judgement, **facts: Any) -> ShellResult:
        given: dict[str, Any] = {"notes": judged.notes, "directory": self.directory, "mark": self._session.mark} | facts
        return ShellResult(judged.call.command, judged.approval, judged.placement, **given)

    def _failed(self, call: ShellCall, error: StockadeError) -> ShellResult:
        why = f"{error.message} ({error.hint})" if error.hint else error.message
        failure = Approval(Verdict.REFUSE, "failure", why)
        notes = self._directory.leave(self.policy) if "working directory" in error.message else ()
        mark = self._session.mark
        return ShellResult(call.command, failure, refusal=why, notes=notes, directory=self.directory, mark=mark)
