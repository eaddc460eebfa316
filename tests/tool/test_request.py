from __future__ import annotations

import pytest

from stockade.tool.approval import Approval, Verdict
from stockade.tool.call import ShellCall
from stockade.tool.placement import Place, Placement
from stockade.tool.request import ApprovalAnswer, ApprovalChoice, make_request

INSIDE = Placement(Place.INSIDE, "walls", "the sandbox is on")
BYPASS = Placement(Place.OUTSIDE, "bypass", "this call asked to run outside the sandbox")
WHY = Approval(Verdict.ASK, "nothing", "it would run outside")

OFFERED = {
    "inside": (INSIDE, WHY, "git push x", [ApprovalChoice.ONCE, ApprovalChoice.ALWAYS, ApprovalChoice.NO]),
    "a bypass": (
        BYPASS,
        WHY,
        "git push x",
        [ApprovalChoice.ONCE, ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE, ApprovalChoice.NO],
    ),
    "nothing to remember": (BYPASS, WHY, "git push $(x)", [ApprovalChoice.ONCE, ApprovalChoice.NO]),
    "a program that was planted": (
        BYPASS,
        WHY.but(by="planted"),
        "git push x",
        [ApprovalChoice.ONCE, ApprovalChoice.NO],
    ),
    "the project's own code": (BYPASS, WHY, "npm run build", [ApprovalChoice.ONCE, ApprovalChoice.NO]),
    "a rule asks each time": (BYPASS, WHY.but(by="ask rule"), "git push x", [ApprovalChoice.ONCE, ApprovalChoice.NO]),
}


@pytest.mark.parametrize(("placement", "approval", "line", "choices"), OFFERED.values(), ids=OFFERED)
def test_suggestions(placement: Placement, approval: Approval, line: str, choices: list[ApprovalChoice]) -> None:
    request = make_request(ShellCall(line), placement, approval, directory="/p", remembers=True)
    assert [one.answer.choice for one in request.suggestions] == choices
    kept = [
        one.answer.patterns
        for one in request.suggestions
        if one.answer.choice in (ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE)
    ]
    assert all(patterns == ("git push:*",) for patterns in kept)
    forgetful = make_request(ShellCall(line), placement, approval, directory="/p")
    assert [one.answer.choice for one in forgetful.suggestions] == [ApprovalChoice.ONCE, ApprovalChoice.NO]


def test_the_question_is_safe_to_show() -> None:
    call = ShellCall("ls \x1b[2J\nrm \u202ex", "Look <b>around</b>", run_in_background=True)
    request = make_request(call, BYPASS, WHY, directory="/p\n", agent="helper")
    assert request.outside
    assert request.text() == (
        "Run in the background OUTSIDE the sandbox for the sub-agent helper, in /p\\x0a?\n"
        "    ls \\x1b[2J\n"
        "    rm \\u202ex\n"
        "  it says: Look \\x3cb\\x3earound\\x3c/b\\x3e\n"
        "  asked because it would run outside"
    )


def test_only_a_no_is_a_no() -> None:
    assert [ApprovalAnswer(choice).is_yes for choice in ApprovalChoice] == [True, True, True, False]
