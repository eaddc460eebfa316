from __future__ import annotations

from stockade.tool.ending import Ending


def test_an_ending_without_news() -> None:
    assert Ending(3) == Ending(exit_code=3, signal=None, violations=(), dropped=0, notes=())
