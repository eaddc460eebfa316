from __future__ import annotations

import pytest

from stockade.settings.problem import Problem


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        pytest.param(Problem("a.json", "$", "is empty"), "a.json: is empty", id="whole file"),
        pytest.param(Problem("a.json", "$.x[3]", "is odd", "mend it"), "a.json: $.x[3]: is odd", id="inside"),
        pytest.param(Problem("a\n\x1b[2J.json", "$", "is odd"), "a\\x0a\\x1b[2J.json: is odd", id="hostile name"),
    ],
)
def test_a_problem_is_one_line(problem: Problem, text: str) -> None:
    assert str(problem) == text
