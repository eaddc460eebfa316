"""An error is one line that says what is wrong, and one that says what to do."""

from __future__ import annotations

import pytest

from stockade import errors
from stockade.errors import InvalidTextError, LockedError, SettingsError, StockadeError, UnavailableError
from stockade.settings.problem import Problem

FIRST = Problem("s.json", "$.sandbox.enabeld", "unknown key", "did you mean enabled?")
SECOND = Problem("s.json", "$", "is empty")
THIRD = Problem("t.json", "$.permissions", "expected an object")


@pytest.mark.parametrize("kind", [StockadeError, InvalidTextError, LockedError, UnavailableError])
def test_message_and_hint_are_kept_apart(kind: type[StockadeError]) -> None:
    error = kind("what is wrong", "what to do")
    assert (str(error), error.message, error.hint) == ("what is wrong", "what is wrong", "what to do")
    assert kind("no hint").hint == ""


@pytest.mark.parametrize(
    ("problems", "message", "hint"),
    [
        pytest.param([FIRST], "s.json: $.sandbox.enabeld: unknown key", "did you mean enabled?", id="one"),
        pytest.param([SECOND, FIRST], "s.json: is empty (and 1 more)", "", id="two"),
        pytest.param(
            [FIRST, SECOND, THIRD],
            "s.json: $.sandbox.enabeld: unknown key (and 2 more)",
            "did you mean enabled?",
            id="three",
        ),
    ],
)
def test_a_settings_error_holds_every_problem(problems: list[Problem], message: str, hint: str) -> None:
    error = SettingsError(problems)
    assert (error.problems, error.message, error.hint) == (tuple(problems), message, hint)


def test_every_error_is_ours() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    assert [kind for kind in kinds if not issubclass(kind, StockadeError)] == []
