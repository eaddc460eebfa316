"""The few failures that a caller would catch.

An error means "could not do it"; a refusal by policy is never an error but a value that says so.
Each error is one line that says what is wrong (``message``) and one that says what to do (``hint``).
"""

from __future__ import annotations

from errno import EMFILE, ENFILE

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.settings.problem import Problem

#: Descriptors of its owner that a sandbox takes while a command runs; each further directory with placeholders adds 2.
DESCRIPTORS_OF_A_SANDBOX: Final = 29


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


def shortage(error: BaseException) -> UnavailableError | None:
    """Return the words for a failure, if it means that this process has no file descriptor left.

    A library must not change the limits of its host program, so the words say who can.
    """
    if not isinstance(error, OSError) or error.errno not in {EMFILE, ENFILE}:
        return None
    if error.errno == ENFILE:
        return UnavailableError("the whole system has no file descriptor left", "end programs, or raise fs.file-max")
    limit, hint = "", "close sandboxes or files, or raise the limit of open files (ulimit -n)"
    try:
        from resource import RLIMIT_NOFILE, getrlimit

        soft, hard = getrlimit(RLIMIT_NOFILE)
        limit = f": its limit is {soft}, and a sandbox takes {DESCRIPTORS_OF_A_SANDBOX}"
        hint = (
            hint if soft == hard else f"close sandboxes or files, or raise the limit of open files (ulimit -n {hard})"
        )
    except (ImportError, OSError):
        pass  # there is no descriptor to import it with, either
    return UnavailableError(f"this process has no file descriptor left for a sandbox{limit}", hint)
