"""How a command ended, and what it said."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.sandbox.limits import Limit
    from stockade.violations.violation import Violation


class Result(Value):
    """The end of one command.

    ``exit_code`` is ``None`` if a signal ended it, and ``signal`` is then its number. ``limit`` names the limit
    that ended it, if one did; ``cancelled`` says that the caller did. ``notes`` is what the walls had to say, and
    ``violations`` is what they refused.
    """

    command: str
    exit_code: int | None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    user_time: float = 0.0
    system_time: float = 0.0
    peak_memory: int = 0
    limit: Limit | None = None
    cancelled: bool = False
    notes: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.exit_code == 0

    @property
    def status(self) -> int:
        """The status as a shell gives it: the exit code, or 128 and the signal."""
        return 128 + (self.signal or 0) if self.exit_code is None else self.exit_code

    @property
    def output(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become marks."""
        return self.stdout.decode(errors="replace")

    @property
    def errors(self) -> str:
        """Standard error as text; bytes that are not UTF-8 become marks."""
        return self.stderr.decode(errors="replace")
