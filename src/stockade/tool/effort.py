"""How much work one judgement may take: a budget that all of it shares.

A line is written by somebody who may want the host to stop answering, so every word that is read and every comparison
is paid for. When nothing is left, the line cannot be judged, and that is an answer of its own: ask.
"""

from __future__ import annotations

from stockade.annotation import Final

#: Words and comparisons. A script of 500 lines takes a tenth of that; all of it takes less than a tenth of a second.
MOST_EFFORT: Final = 6_000


class TooMuchError(Exception):
    """The budget is used up."""


class Effort:
    """What is left of a budget."""

    def __init__(self, most: int = MOST_EFFORT) -> None:
        """Begin with a whole budget."""
        self.left = most

    def spend(self, amount: int = 1) -> None:
        """Take some of it, or raise TooMuchError."""
        self.left -= amount
        if self.left < 0:
            raise TooMuchError
