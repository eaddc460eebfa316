"""How a command of the tool ended, wherever it ran."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Protocol
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.violations.violation import Violation


class Ending(Value):
    """The end of one command; ``exit_code`` is ``None`` if a signal ended it, whose number is ``signal``."""

    exit_code: int | None = None
    signal: int | None = None
    violations: tuple[Violation, ...] = ()
    dropped: int = 0
    notes: tuple[str, ...] = ()


class Run(Protocol):
    """A command that runs."""

    async def wait(self) -> Ending:
        """Wait until it has ended, with all that it started. Cancelling the wait leaves it running."""

    def kill(self) -> None:
        """End it, with all that it started. Nothing happens once it has ended."""
