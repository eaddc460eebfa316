from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.tool.approval import PLANNING, TOOLS_OFF, Approval, ApprovalMode, Terms, Verdict, approve, may_edit
from stockade.tool.placement import Place, Placement

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

INSIDE = Placement(Place.INSIDE, "walls", "the sandbox is on")
OUTSIDE = Placement(Place.OUTSIDE, "bypass", "this call asked to run outside the sandbox")
RULES = {"allow": ("Bash(npm:*)", "Bash(git status)"), "ask": ("Bash(npm publish:*)",), "deny": ("Bash(rm:*)",)}
ASKED = "it would run outside: this call asked to run outside the sandbox"
FILE = "settings.json (user)"

REASONS = {
    "the walls": ("ls", INSIDE, Verdict.ALLOW, "it runs inside the sandbox, where commands need no approval"),
    "outside": (
        "ls",
        OUTSIDE,
        Verdict.ASK,
        f"{ASKED}; no rule allows it: no pattern matches `ls`",
    ),
    "outside by a rule": ("npm ci", OUTSIDE, Verdict.ALLOW, f"allowed by `npm:*` of {FILE}"),
    "every part by a rule": (
        "npm ci && git status",
        OUTSIDE,
        Verdict.ALLOW,
        f"allowed by `npm:*` of {FILE}, `git status` of {FILE}",
    ),
    "one part without a rule": (
        "npm ci && curl x",
        OUTSIDE,
        Verdict.ASK,
        f"{ASKED}; no rule allows it: no pattern matches `curl x`",
    ),
    "denied inside": ("rm x", INSIDE, Verdict.REFUSE, f"denied: `rm x` matches `rm:*` of {FILE}"),
    "denied in part": ("npm ci; rm x", OUTSIDE, Verdict.REFUSE, f"denied: `rm x` matches `rm:*` of {FILE}"),
    "perhaps denied": (
        "npm ci; $x",
        INSIDE,
        Verdict.REFUSE,
        f"denied: `$x` may be what is meant by `rm:*` of {FILE}",
    ),
    "asked though allowed": (
        "npm publish",
        INSIDE,
        Verdict.ASK,
        f"a rule asks each time: `npm publish` matches `npm publish:*` of {FILE}",
    ),
}


@pytest.mark.parametrize(("line", "placement", "verdict", "reason"), REASONS.values(), ids=REASONS)
def test_reasons(yard: Yard, line: str, placement: Placement, verdict: Verdict, reason: str) -> None:
    found = approve(line, placement, yard.policy(RULES), Terms())
    assert (found.verdict, found.reason) == (verdict, reason)


def test_strict_asks_inside_too(yard: Yard) -> None:
    found = approve("ls", INSIDE, yard.policy(autoAllowBashIfSandboxed=False), Terms())
    assert found == Approval(Verdict.ASK, "nothing", "every command is asked for, also inside the sandbox")


def test_a_mode_that_asks_for_everything(yard: Yard) -> None:
    found = approve("ls", INSIDE, yard.policy(), Terms(ApprovalMode.PROMPT))
    assert found == Approval(Verdict.ASK, "nothing", "this mode asks for every command")


def test_skipping_answers_questions_and_lifts_no_refusal(yard: Yard) -> None:
    terms = Terms(skip_permissions=True)
    policy = yard.policy(RULES)
    assert approve("ls", OUTSIDE, policy, terms).by == "skipped"
    assert approve("npm publish", OUTSIDE, policy, terms).by == "skipped"
    assert approve("rm x", OUTSIDE, policy, terms).verdict is Verdict.REFUSE
    assert approve("ls", OUTSIDE, policy, terms.but(mode=ApprovalMode.PLAN)) == PLANNING
    assert approve("ls", OUTSIDE, policy, terms.but(mode=ApprovalMode.NONE)) == TOOLS_OFF


def test_what_hides_something_is_allowed_only_without_the_check(yard: Yard) -> None:
    line = "npm ci $(curl x)"
    assert approve(line, OUTSIDE, yard.policy(RULES | {"deny": ()}), Terms()).verdict is Verdict.ASK
    terms = Terms(check_injection=False)
    assert approve(line, OUTSIDE, yard.policy(RULES | {"deny": ()}), terms).verdict is Verdict.ALLOW


EDITS = [
    (ApprovalMode.OPEN, "/x", True),
    (ApprovalMode.PROMPT, "/x", True),
    (ApprovalMode.NONE, "/plan.md", False),
    (ApprovalMode.PLAN, "/x", False),
    (ApprovalMode.PLAN, "/plan.md", True),
]


@pytest.mark.parametrize(("mode", "path", "allowed"), EDITS)
def test_in_plan_mode_only_the_plan_is_written(mode: ApprovalMode, path: str, *, allowed: bool) -> None:
    assert may_edit(mode, path, "/plan.md") is allowed
    assert not may_edit(ApprovalMode.PLAN, "", "")
