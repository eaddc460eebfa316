"""An error is one line that says what is wrong, and one that says what to do."""

from __future__ import annotations

import resource
import sys
from errno import EMFILE, ENFILE, ENOENT

import pytest

from stockade import errors
from stockade.errors import InvalidTextError, LockedError, SettingsError, StockadeError, UnavailableError, shortage
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


RAISE = "close sandboxes or files, or raise the limit of open files (ulimit -n{})"


@pytest.mark.parametrize(
    ("limits", "hint"),
    [
        pytest.param((1024, 4096), RAISE.format(" 4096"), id="it can be raised"),
        pytest.param((1024, 1024), RAISE.format(""), id="it is the hard one"),
    ],
)
def test_a_process_without_descriptors_hears_its_limit_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], hint: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    found = shortage(OSError(EMFILE, "x"))
    assert found is not None
    message = "this process has no file descriptor left for a sandbox: its limit is 1024, and a sandbox takes 29"
    assert (found.message, found.hint) == (message, hint)


def test_a_limit_that_cannot_be_asked_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # as when there is no descriptor to import it with
    found = shortage(OSError(EMFILE, "x"))
    assert found is not None
    assert found.message == "this process has no file descriptor left for a sandbox"
    assert found.hint == RAISE.format("")


def test_the_whole_system_may_be_short() -> None:
    found = shortage(OSError(ENFILE, "x"))
    assert found is not None
    assert found.message == "the whole system has no file descriptor left"


@pytest.mark.parametrize("error", [OSError(ENOENT, "x"), ValueError("x"), OSError()])
def test_other_failures_are_no_shortage(error: Exception) -> None:
    assert shortage(error) is None
