from __future__ import annotations

import io
import json

import pytest

from stockade.cli.terminal import Terminal
from stockade.errors import SettingsError, StockadeError
from stockade.settings.problem import Problem


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Terminal(io.StringIO(), io.StringIO()).paint("x", "red") == "x"
    screen = Terminal(Screen(), Screen())
    assert screen.paint("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert screen.paint("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert screen.paint("x", "red") == "x"


def test_failures_and_warnings_go_to_standard_error() -> None:
    out, err = io.StringIO(), io.StringIO()
    shown = Terminal(out, err)
    shown.fail(StockadeError("it is broken", "mend it"))
    shown.fail(StockadeError("no hint"))
    shown.warn("careful")
    assert out.getvalue() == ""
    assert err.getvalue() == (
        "stockade: it is broken\n  hint: mend it\nstockade: no hint\nstockade: warning: careful\n"
    )


def test_every_problem_of_the_settings_is_a_line() -> None:
    err = io.StringIO()
    problems = [Problem("a.json", "$.x", "is wrong", "right it"), Problem("b.json", "$", "is empty")]
    Terminal(io.StringIO(), err).fail(SettingsError(problems))
    assert err.getvalue() == "stockade: a.json: $.x: is wrong\n  hint: right it\nstockade: b.json: is empty\n"


def test_json_survives_names_that_are_not_utf8() -> None:
    out = io.StringIO()
    Terminal(out, io.StringIO()).json({"path": "/tmp/\udcff"})
    assert json.loads(out.getvalue()) == {"path": "/tmp/\udcff"}


def test_no_warning_and_no_failure_moves_the_cursor() -> None:
    err = io.StringIO()
    shown = Terminal(io.StringIO(), err)
    shown.warn("a\x1b[2J")
    shown.fail(StockadeError("b\rc", "d\u202e"))
    shown.fail(SettingsError([Problem("e\n.json", "$", "f\x07")]))
    assert err.getvalue() == (
        "stockade: warning: a\\x1b[2J\nstockade: b\\x0dc\n  hint: d\\u202e\nstockade: e\\x0a.json: f\\x07\n"
    )
