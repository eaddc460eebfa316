from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.settings.layer import Layer, Origin, Sourced
from stockade.violations.ignore import _answers, ignored
from stockade.violations.violation import Occasion, Operation, Violation


def violation(line: str, target: str = "/etc/hosts") -> Violation:
    return Violation.refused(Operation.WRITE, target, Occasion(0.0, "c", line), why="of a reason", remedy="a remedy")


def entries(*pairs: tuple[str, str]) -> tuple[Sourced[tuple[str, str]], ...]:
    return tuple(Sourced(pair, Origin(Layer.USER)) for pair in pairs)


@pytest.mark.parametrize(
    ("line", "pairs", "expected"),
    [
        pytest.param("make", (), False, id="no entries"),
        pytest.param("make", (("*", "/etc/"),), True, id="any command"),
        pytest.param("make", (("*", "/var/"),), False, id="another text"),
        pytest.param("make", (("*", 'write "/etc/hosts"'),), True, id="as it is shown"),
        pytest.param("make", (("*", "reason"),), False, id="not in the reason"),
        pytest.param("make", (("*", "remedy"),), False, id="not in the remedy"),
        pytest.param("make", (("*", ""),), False, id="an empty text is contained in nothing"),
        pytest.param("npm ci --quiet", (("npm ci", "/etc/"),), True, id="the command"),
        pytest.param("npm test", (("npm ci", "/etc/"),), False, id="another command"),
        pytest.param("npm ci", (("npm ci", "/var/"),), False, id="the command, another text"),
        pytest.param("cd x && npm ci", (("npm ci", "/etc/"),), True, id="one of the commands"),
        pytest.param("npm test", (("npm ci", "/etc/"), ("npm *", "hosts")), True, id="a later entry"),
        pytest.param("echo `npm ci`", (("npm *", "/etc/"), ("echo *", "/etc/")), False, id="an uncertain line"),
        pytest.param("echo `npm ci`", (("*", "/etc/"),), True, id="an uncertain line of any command"),
        pytest.param("", (("npm *", "/etc/"),), False, id="an unknown line"),
        pytest.param("npm ci", (("npm 'ci", "/etc/"),), False, id="no pattern at all"),
    ],
)
def test_what_is_ignored(line: str, pairs: tuple[tuple[str, str], ...], expected: bool) -> None:  # noqa: FBT001 (a table)
    assert ignored(violation(line), entries(*pairs)) is expected


def test_a_text_is_found_in_a_target_too_long_to_show() -> None:
    assert ignored(violation("make", "/" + "a" * 400 + "middle" + "b" * 400), entries(("*", "middle")))


@given(st.text(), st.text(), st.text())
def test_nothing_makes_it_fail(line: str, pattern: str, text: str) -> None:
    assert isinstance(ignored(violation(line, text), entries((pattern, text))), bool)


def test_what_is_remembered_is_bounded() -> None:
    for number in range(100):
        assert ignored(violation(f"npm {number}"), entries(("npm *", "/etc/")))
        assert not ignored(violation(f"npm {number}"), entries(("make *", "/etc/")))
    assert len(_answers) <= 16
