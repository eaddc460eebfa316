from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stockade.tool.remembering import remember
from stockade.tool.request import ApprovalAnswer, ApprovalChoice

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

KEPT = {
    "a rule": (
        ApprovalAnswer(ApprovalChoice.ALWAYS, ("git push:*", "ls:*")),
        {"permissions": {"allow": ["Bash(git push:*)", "Bash(ls:*)"]}},
        "allowed from now on: Bash(git push:*), Bash(ls:*)",
    ),
    "an exclusion": (
        ApprovalAnswer(ApprovalChoice.EXCLUDE, ("docker:*",)),
        {"sandbox": {"excludedCommands": ["docker:*"]}},
        "outside the sandbox from now on: docker:*",
    ),
}


@pytest.mark.parametrize(("answer", "settings", "done"), KEPT.values(), ids=KEPT)
def test_answers_are_kept_in_the_local_file(yard: Yard, answer: ApprovalAnswer, settings: object, done: str) -> None:
    assert remember(answer, yard.locations) == f"kept in {yard.local}: {done}"
    assert json.loads(yard.local.read_text()) == settings


@pytest.mark.parametrize("choice", [ApprovalChoice.ONCE, ApprovalChoice.NO])
def test_other_answers_are_not(yard: Yard, choice: ApprovalChoice) -> None:
    assert remember(ApprovalAnswer(choice, ("ls:*",)), yard.locations) == ""
    assert not yard.local.exists()


def test_locked_settings_keep_nothing_and_name_the_file(yard: Yard) -> None:
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    note = remember(ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*",)), yard.locations)
    assert note == f"the answer was not kept: sandbox settings are locked by {yard.managed} (policy)"
    assert not yard.local.exists()


@pytest.mark.parametrize("pattern", ["*", "a; b", ""])
def test_what_is_no_rule_is_not_kept(yard: Yard, pattern: str) -> None:
    for choice in (ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE):
        assert remember(ApprovalAnswer(choice, (pattern,)), yard.locations).startswith("the answer was not kept: the ")
    assert not yard.local.exists()


def test_a_tool_that_knows_no_settings_says_so() -> None:
    assert "not told where" in remember(ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*",)), None)
