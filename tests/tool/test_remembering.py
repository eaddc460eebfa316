from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.tool.remembering import Remembered, remember, with_answers
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
    assert remember(answer, yard.locations) == Remembered(f"kept in {yard.local}: {done}")
    assert json.loads(yard.local.read_text()) == settings


@pytest.mark.parametrize("choice", [ApprovalChoice.ONCE, ApprovalChoice.NO])
def test_other_answers_are_not(yard: Yard, choice: ApprovalChoice) -> None:
    assert remember(ApprovalAnswer(choice, ("ls:*",)), yard.locations) == Remembered()
    assert not yard.local.exists()


def test_locked_settings_keep_nothing_and_name_the_file(yard: Yard) -> None:
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    locked = remember(ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*",)), yard.locations)
    assert locked == Remembered(f"the answer was not kept: sandbox settings are locked by {yard.managed} (policy)")
    assert not yard.local.exists()


@pytest.mark.parametrize("pattern", ["*", "a; b", ""])
def test_what_is_no_rule_is_not_kept(yard: Yard, pattern: str) -> None:
    for choice in (ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE):
        refused = remember(ApprovalAnswer(choice, (pattern,)), yard.locations)
        assert refused.note.startswith("the answer was not kept: the ")
    assert not yard.local.exists()


def test_a_tool_that_knows_no_settings_says_so() -> None:
    assert "not told where" in remember(ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*",)), None).note


def test_while_a_sandbox_holds_the_name_an_answer_waits(yard: Yard) -> None:
    os.mknod(yard.project / ".stockade", stat.S_IFSOCK)
    always = ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*",))
    assert remember(always, yard.locations).waits
    assert not remember(always.but(patterns=("*",)), yard.locations).waits
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    assert not remember(always, yard.locations).waits


def test_an_answer_that_waits_holds(yard: Yard) -> None:
    policy = yard.policy({"allow": ("Bash(id)",)}, excludedCommands=("cp",))
    answers = (
        ApprovalAnswer(ApprovalChoice.ALWAYS, ("ls:*", "wc")),
        ApprovalAnswer(ApprovalChoice.EXCLUDE, ("docker *",)),
    )
    commands = with_answers(policy, answers).commands
    assert [rule.value.text for rule in commands.allow] == ["id", "ls:*", "wc"]
    assert [rule.value.text for rule in commands.excluded] == ["cp", "docker *"]
