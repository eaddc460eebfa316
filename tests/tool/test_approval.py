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


HIDDEN = (
    "</dev/null $'rm' -f x",
    "time -p /bin/r[m] x",
    "env /bin/r[m] x && (echo y)",
    ">x r{m,} y",
    "<<<x /bin/r? y",
    "a+=1 /bin/r? x",
    "coproc X /bin/r? y",
    "sudo -u root -- r{m,} x;(:)",
    "repeat 2 /bin/r? x",
    "nocorrect /bin/r? x",
    "- /bin/r? x",
    "echo rm x | xargs env",
)


@pytest.mark.parametrize("line", HIDDEN)
def test_no_spelling_talks_its_way_around_a_rule(yard: Yard, line: str) -> None:
    assert approve(line, INSIDE, yard.policy({"deny": ("Bash(rm:*)",)}), Terms()).by == "deny rule"
    assert approve(line, INSIDE, yard.policy({"ask": ("Bash(rm:*)",)}), Terms()).by == "ask rule"
    assert approve(line, INSIDE, yard.policy(), Terms()).verdict is Verdict.ALLOW


LONG = "a " * 60_000
TOO_LONG = "the line is too long to be judged by the rules that deny or ask: somebody must look"


@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_line_that_is_too_long_to_be_judged_is_asked_for(yard: Yard, kind: str) -> None:
    policy = yard.policy({kind: ("Bash(rm:*)",), "allow": ("Bash(a:*)",)})
    assert approve(LONG, INSIDE, policy, Terms()) == Approval(Verdict.ASK, "length", TOO_LONG)
    skipped = approve(LONG, INSIDE, policy, Terms(skip_permissions=True))
    # A rule that denies might have refused it.
    assert skipped.verdict is (Verdict.REFUSE if kind == "deny" else Verdict.ALLOW)
    nowhere = Placement(Place.NOWHERE, "required", "there are no walls")
    assert approve(LONG, nowhere, policy, Terms()).verdict is Verdict.REFUSE


def test_without_rules_that_deny_or_ask_no_line_is_too_long(yard: Yard) -> None:
    assert approve(LONG, INSIDE, yard.policy(), Terms()).by == "walls"


def test_rules_that_deny_and_rules_that_ask_share_one_budget(yard: Yard) -> None:
    line = "ls; " * 600
    assert approve(line, INSIDE, yard.policy({"deny": ("Bash(rm:*)",)}), Terms()).by == "walls"
    both = {"deny": tuple(f"Bash(*{n}*{n} x)" for n in range(4)), "ask": tuple(f"Bash(*{n}*{n} y)" for n in range(4))}
    assert approve(line, INSIDE, yard.policy({"deny": both["deny"]}), Terms()).by == "walls"
    assert approve(line, INSIDE, yard.policy({"ask": both["ask"]}), Terms()).by == "walls"
    assert approve(line, INSIDE, yard.policy(both), Terms()).by == "length"


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
