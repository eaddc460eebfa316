from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError


def test_a_budget_is_spent_to_its_last_piece_and_no_further() -> None:
    effort = Effort(3)
    effort.spend()
    effort.spend(2)
    assert effort.left == 0
    with pytest.raises(TooMuchError):
        effort.spend()
