from __future__ import annotations

import pytest

from stockade.settings.problem import Problem, whole_file


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


def test_a_file_that_is_wrong_as_a_whole() -> None:
    assert whole_file("a.json", "is empty", "fill it").problems == (Problem("a.json", "$", "is empty", "fill it"),)
