"""The few failures that a caller would catch.

An error means "could not do it"; a refusal by policy is never an error but a value that says so.
Each error is one line that says what is wrong (``message``) and one that says what to do (``hint``).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.settings.problem import Problem


class StockadeError(Exception):
    """Base of every failure that this package raises on purpose."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the two lines apart, so that each face can show them in its own way."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidTextError(StockadeError):
    """A text is not what it should be: a host, a pattern, a rule, a port."""


class SettingsError(StockadeError):
    """Settings could not be used; ``problems`` holds every reason found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Summarise the problems in one line; the faces print them one by one."""
        self.problems = tuple(problems)
        first = self.problems[0]
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"{first}{more}", first.hint)


class LockedError(StockadeError):
    """An administrator has fixed the sandbox settings; the message names the file."""


class UnavailableError(StockadeError):
    """The walls cannot be built on this machine; nothing was run."""
