from __future__ import annotations

import pytest

from stockade.violations.habit import is_habit
from stockade.violations.violation import Occasion, Operation, Violation


@pytest.mark.parametrize(
    ("operation", "target", "expected"),
    [
        (Operation.CREATE, "/home/me/.viminfo", True),
        (Operation.WRITE, "/home/me/.python_history", True),
        (Operation.READ, "/home/me/.viminfo", False),
        (Operation.CREATE, "/home/me/.bashrc", False),
        (Operation.CREATE, "/home/me/work/.viminfo", False),
        (Operation.CREATE, "/home/you/.viminfo", False),
    ],
)
def test_only_histories_in_the_home_are_habits(operation: Operation, target: str, *, expected: bool) -> None:
    assert is_habit(Violation.refused(operation, target, Occasion(0.0), why="no"), "/home/me") == expected
