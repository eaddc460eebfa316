"""Which commands ask questions that take long to answer, so that they get the answer whose price is bounded.

The quick answer (``quick``) has the kernel resolve a path as it is written, which is nearly always a matter of a
microsecond. But links may lead through 50,000 names, in one call that nobody can interrupt, while all other commands
wait. A command of which that was seen is answered by ``walk`` for its next calls: the same answer, at a bounded price.

Rules: pure. A clock cannot tell a long way from a supervisor that had to wait for its processor, so a suspicion ends;
each further one lasts twice as long. So a command has a handful of slow calls in a million.
"""

from __future__ import annotations

#: A quick answer that takes this many seconds was none.
SLOW = 0.0005
FIRST_SPAN = 256
_LONGEST_SPAN = 1 << 24


class SlowCallers:
    """The commands under suspicion, by their listeners."""

    __slots__ = ("_left", "_spans")

    def __init__(self) -> None:
        """Begin without any."""
        self._left: dict[int, int] = {}
        self._spans: dict[int, int] = {}

    def note(self, caller: int) -> None:
        """Suspect a command, of which a call has taken long."""
        span = self._spans.get(caller, FIRST_SPAN)
        self._left[caller] = span
        self._spans[caller] = min(span * 2, _LONGEST_SPAN)

    def is_suspect(self, caller: int) -> bool:
        """Tell whether to be careful with this call; counts it."""
        left = self._left.get(caller)
        if left is None:
            return False
        if left == 1:
            del self._left[caller]
        else:
            self._left[caller] = left - 1
        return True

    def forget(self, caller: int) -> None:
        """Forget a command that has ended: its listener's number will be another's."""
        self._left.pop(caller, None)
        self._spans.pop(caller, None)
