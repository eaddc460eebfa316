from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stockade.tool.remembering import remember
from stockade.tool.request import Answer, Choice

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

KEPT = {
    "a rule": (
        Answer(Choice.ALWAYS, ("git push:*", "ls:*")),
        {"permissions": {"allow": ["Bash(git push:*)", "Bash(ls:*)"]}},
        "allowed from now on: Bash(git push:*), Bash(ls:*)",
    ),
    "an exclusion": (
        Answer(Choice.EXCLUDE, ("docker:*",)),
        {"sandbox": {"excludedCommands": ["docker:*"]}},
        "outside the sandbox from now on: docker:*",
    ),
}


@pytest.mark.parametrize(("answer", "settings", "done"), KEPT.values(), ids=KEPT)
def test_answers_are_kept_in_the_local_file(yard: Yard, answer: Answer, settings: object, done: str) -> None:
    assert remember(answer, yard.locations) == f"kept in {yard.local}: {done}"
    assert json.loads(yard.local.read_text()) == settings


@pytest.mark.parametrize("choice", [Choice.ONCE, Choice.NO])
def test_other_answers_are_not(yard: Yard, choice: Choice) -> None:
    assert remember(Answer(choice, ("ls:*",)), yard.locations) == ""
    assert not yard.local.exists()


def test_locked_settings_keep_nothing_and_name_the_file(yard: Yard) -> None:
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    note = remember(Answer(Choice.ALWAYS, ("ls:*",)), yard.locations)
    assert note == f"the answer was not kept: sandbox settings are locked by {yard.managed} (policy)"
    assert not yard.local.exists()


@pytest.mark.parametrize("pattern", ["*", "a; b", ""])
def test_what_is_no_rule_is_not_kept(yard: Yard, pattern: str) -> None:
    for choice in (Choice.ALWAYS, Choice.EXCLUDE):
        assert remember(Answer(choice, (pattern,)), yard.locations).startswith("the answer was not kept: the ")
    assert not yard.local.exists()


def test_a_tool_that_knows_no_settings_says_so() -> None:
    assert "not told where" in remember(Answer(Choice.ALWAYS, ("ls:*",)), None)
