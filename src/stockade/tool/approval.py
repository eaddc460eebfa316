"""May a call run, must somebody be asked, or is it refused? A value with its reason.

In this order, the first that speaks decides:

1. mode ``none``: tools are off. Mode ``plan``: nothing runs, and where it would run is not even looked at.
2. A deny rule that may match any part: refused, wherever it would run.
3. Nowhere to run, or nothing to run.
4. An ask rule that may match any part, or a line that takes too long to be judged by the rules: asked for.
5. A program that would run outside the walls, and that commands inside could have planted: asked for.
6. Allow rules that cover every part, with nothing hidden in the line: allowed.
7. Inside the walls, with ``autoAllowBashIfSandboxed``, in mode ``open``: allowed, because of the walls.
8. All else is asked for.

``skip_permissions`` answers every question of 4, 5 and 8 with yes. It changes no refusal, and a line that takes too
long for the rules that deny is refused then, for one of them might have. Approval says only whether a call runs, never
where: it does not widen the walls.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.enumeration import Enum
from stockade.tool.allowance import allowed_by
from stockade.tool.may_match import TOO_LONG, Possible, Reading, may_match
from stockade.tool.placement import Place
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.layer import Sourced
    from stockade.tool.may_match import TooLong
    from stockade.tool.placement import Placement
    from stockade.tool.program import Programs


class ApprovalMode(Enum):
    """How much a host lets its agent do without asking."""

    OPEN = "open"
    PROMPT = "prompt"
    NONE = "none"
    PLAN = "plan"


class Verdict(Enum):
    """What is to be done with a call."""

    ALLOW = "allow"
    ASK = "ask"
    REFUSE = "refuse"


class Approval(Value):
    """The answer. ``by`` names what decided (``deny rule``, ``walls``, ...), ``rules`` are those that were needed."""

    verdict: Verdict
    by: str
    reason: str
    rules: tuple[Sourced[CommandPattern], ...] = ()


class Terms(Value):
    """What a host has decided: the mode, whether each question is a yes, whether hidden things are looked for."""

    mode: ApprovalMode = ApprovalMode.OPEN
    skip_permissions: bool = False
    check_injection: bool = True


TOOLS_OFF = Approval(Verdict.REFUSE, "mode none", "tools are off in this mode")
_TOO_LONG = "the line is too long to be judged by the rules that deny or ask: somebody must look"
PLANNING = Approval(Verdict.REFUSE, "mode plan", "this is plan mode: nothing runs until the plan is accepted")


def approve_mode(mode: ApprovalMode) -> Approval | None:
    """Return the answer if the mode alone gives it; it comes before placement."""
    return {ApprovalMode.NONE: TOOLS_OFF, ApprovalMode.PLAN: PLANNING}.get(mode)


def may_edit(mode: ApprovalMode, path: str, plan_file: str) -> bool:
    """Say whether a mode lets a host's own tools write a file: in plan mode only the plan, with no tools nothing."""
    if mode is ApprovalMode.PLAN:
        return bool(plan_file) and path == plan_file
    return mode is not ApprovalMode.NONE


def approve(
    line: str, placement: Placement, policy: SandboxPolicy, terms: Terms, programs: Programs | None = None
) -> Approval:
    """Return what is to be done with a line that would run where ``placement`` says, and would start ``programs``."""
    if (answer := approve_mode(terms.mode)) is not None:
        return answer
    # Rules that deny and rules that ask share one reading of the line, and one budget for it.
    reading = Reading(line)
    denied = may_match(policy.commands.deny, reading)
    if (answer := _refusal(denied, placement)) is not None:
        return answer
    if placement.gate == "empty" or not line.strip():
        return Approval(Verdict.ALLOW, "nothing", "there is nothing to run")
    question = _ruled_question(denied, may_match(policy.commands.ask, reading), terms)
    return _with_programs(question or _by_allowance(line, placement, policy, terms, programs), programs)


def _by_allowance(
    line: str, placement: Placement, policy: SandboxPolicy, terms: Terms, programs: Programs | None
) -> Approval:
    if programs is not None and programs.planted:
        return _question("planted", f"it would run outside ({placement.reason})", terms)
    match = allowed_by(policy.commands.allow, line, check=terms.check_injection)
    if match.covered:
        names = ", ".join(f"`{rule.value}` of {rule.origin}" for rule in match.matched)
        return Approval(Verdict.ALLOW, "allow rule", f"allowed by {names}", match.matched)
    return _unruled(placement, policy, terms, match.blocked_by if policy.commands.allow else "")


def _with_programs(answer: Approval, programs: Programs | None) -> Approval:
    """Return an answer that names the planted programs, where somebody is asked."""
    if programs is None or answer.verdict is not Verdict.ASK or not programs.shown:
        return answer
    return answer.but(reason=f"{answer.reason}; {programs.shown}")


def _refusal(denied: Possible | TooLong | None, placement: Placement) -> Approval | None:
    if isinstance(denied, Possible):
        return Approval(Verdict.REFUSE, "deny rule", f"denied: {denied}", (denied.pattern,))
    if placement.place is Place.NOWHERE:
        return Approval(Verdict.REFUSE, "no walls", placement.reason)
    return None


def _ruled_question(
    denied: Possible | TooLong | None, asked: Possible | TooLong | None, terms: Terms
) -> Approval | None:
    if isinstance(asked, Possible):
        return _question("ask rule", f"a rule asks each time: {asked}", terms, (asked.pattern,))
    if denied is TOO_LONG and terms.skip_permissions:
        # No question may be answered with yes that a rule might have refused.
        return Approval(Verdict.REFUSE, "length", _TOO_LONG)
    return _question("length", _TOO_LONG, terms) if TOO_LONG in (denied, asked) else None


def _unruled(placement: Placement, policy: SandboxPolicy, terms: Terms, blocked_by: str) -> Approval:
    inside = placement.place is Place.INSIDE
    if inside and policy.mode.auto_allow and terms.mode is ApprovalMode.OPEN:
        return Approval(Verdict.ALLOW, "walls", "it runs inside the sandbox, where commands need no approval")
    why = f"it would run {placement.place.value}: {placement.reason}"
    if inside:
        strict = not policy.mode.auto_allow
        why = "every command is asked for, also inside the sandbox" if strict else "this mode asks for every command"
    return _question("nothing", f"{why}; no rule allows it: {blocked_by}" if blocked_by else why, terms)


def _question(by: str, why: str, terms: Terms, rules: tuple[Sourced[CommandPattern], ...] = ()) -> Approval:
    if terms.skip_permissions:
        return Approval(Verdict.ALLOW, "skipped", f"permissions are skipped; otherwise: {why}", rules)
    return Approval(Verdict.ASK, by, why, rules)
