"""A call is judged: where it would run, whether it may, and what somebody says who is asked.

What was approved is what runs: the settings may change while somebody is asked, so the call is judged again after
that, and never runs with less around it than was shown, nor in another directory.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any
from stockade.escape import escape
from stockade.tool.allowance import SKIPPED
from stockade.tool.approval import Approval, Verdict, approve
from stockade.tool.directory import place_on_disk
from stockade.tool.placement import Place, Situation, leaves_walls, place
from stockade.tool.program import surroundings
from stockade.tool.remembering import remember, with_answers
from stockade.tool.request import ApprovalAnswer, ApprovalChoice, make_request
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.settings.sources import Locations
    from stockade.tool.call import ShellCall
    from stockade.tool.directory import WorkingDirectory
    from stockade.tool.inheritance import Inheritance
    from stockade.tool.placement import Placement
    from stockade.tool.program import Surroundings
    from stockade.tool.request import Approve
    from stockade.tool.session import ToolSession


class Judgement(Value):
    """A call, where it would run, in which directory, whether it may, and what there is to tell.

    ``place_on_disk`` is the directory without links, as it was when the call was judged first. ``outside`` is what a
    call gets that leaves the walls.
    """

    call: ShellCall
    placement: Placement
    approval: Approval
    directory: str
    notes: tuple[str, ...] = ()
    place_on_disk: str = ""
    outside: Surroundings | None = None


class Judge:
    """Judges the calls of one agent."""

    def __init__(
        self, session: ToolSession, directory: WorkingDirectory, ask: Approve | None, locations: Locations | None
    ) -> None:
        """Take what calls share; ``ask`` is awaited with each question, and answers are kept at ``locations``."""
        self._session = session
        self._directory = directory
        self._ask = ask
        self._locations = locations

    async def judge(self, call: ShellCall, inheritance: Inheritance) -> Judgement:
        """Return the final judgement on a call: it is allowed, or refused. Raises StockadeError."""
        first = await self._look(call, inheritance)
        if first.approval.verdict is not Verdict.ASK:
            return first
        answer = await self._answer(first, inheritance)
        if not answer.is_yes:
            return first.but(approval=Approval(Verdict.REFUSE, "answer", answer.reason or "the answer was no"))
        note = self._keep(answer)
        again = await self._look(call, inheritance)
        notes = dict.fromkeys((*first.notes, *again.notes, *((note,) if note else ())))
        return again.but(
            directory=first.directory,
            place_on_disk=first.place_on_disk,
            notes=tuple(notes),
            approval=_settled(first, again),
        )

    def _keep(self, answer: ApprovalAnswer) -> str:
        # All in one step of the loop: the next command would keep the names of settings files from being made.
        if answer.patterns:
            self._session.rest()
        remembered = remember(answer, self._locations)
        if remembered.waits:
            self._session.pending.append(answer)
        return remembered.note

    async def _look(self, call: ShellCall, inheritance: Inheritance) -> Judgement:
        session = self._session
        await session.refresh()
        policy = with_answers(session.policy, session.pending) if session.pending else session.policy
        unavailable = await session.ready() if policy.mode.enabled else ""
        placement = place(Situation(call, policy, unavailable, may_bypass=inheritance.may_bypass))
        directory, notes = self._directory.begin(policy)
        outside = None
        if leaves_walls(placement) and not call.is_empty:
            outside = surroundings(
                call.command,
                policy.files,
                session.environment,
                directory,
                temporary=session.known_temporary,
                bypass=placement.gate == "bypass",
            )
        programs = None if outside is None else outside.programs
        approval = approve(call.command, placement, policy, inheritance.terms, programs)
        notes += session.news()
        if programs is not None:
            notes += programs.notes
        if placement.gate == "unavailable":
            notes += (placement.reason,)
        if not inheritance.terms.check_injection:
            notes += (SKIPPED,)
        return Judgement(call, placement, approval, directory, notes, place_on_disk(directory), outside)

    async def _answer(self, judged: Judgement, inheritance: Inheritance) -> ApprovalAnswer:
        if self._ask is None:
            return ApprovalAnswer(
                ApprovalChoice.NO, reason=f"it needs approval, and nobody can be asked: {judged.approval.reason}"
            )
        request = make_request(
            judged.call,
            judged.placement,
            judged.approval,
            directory=judged.place_on_disk,
            agent=inheritance.agent,
            remembers=self._locations is not None,
        )
        try:
            answer: Any = await self._ask(request)
        except Exception as error:  # noqa: BLE001 - a stranger's callback
            return ApprovalAnswer(
                ApprovalChoice.NO, reason=f"asking failed: {escape(f'{type(error).__name__}: {error}')}"
            )
        return (
            answer
            if isinstance(answer, ApprovalAnswer)
            else ApprovalAnswer(ApprovalChoice.NO, reason="asking gave no answer")
        )


def _settled(first: Judgement, again: Judgement) -> Approval:
    """Return what a yes is worth, now that the settings may be others."""
    if again.approval.verdict is Verdict.REFUSE:
        return again.approval
    if again.placement.place is Place.OUTSIDE and first.placement.place is not Place.OUTSIDE:
        changed = "the settings changed while it was asked for: it would now run outside the sandbox; call it again"
        return Approval(Verdict.REFUSE, "answer", changed)
    if again.outside is not None and (first.outside is None or again.outside.programs != first.outside.programs):
        changed = "the programs that it would start changed while it was asked for; call it again"
        return Approval(Verdict.REFUSE, "answer", changed)
    return Approval(Verdict.ALLOW, "answer", "somebody was asked and said yes")
