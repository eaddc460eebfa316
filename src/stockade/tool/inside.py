"""Commands that run behind the walls, as the tool sees them."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.tool.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.sandbox.asynchronous import Sandbox
    from stockade.sandbox.process import Process


class InsideRun:
    """One command of a sandbox."""

    def __init__(self, sandbox: Sandbox, process: Process, command_id: str) -> None:
        """Take a command that was started; see ``start_inside``."""
        self._sandbox = sandbox
        self._process = process
        self._id = command_id

    async def wait(self) -> Ending:
        """Wait until it has ended. Raises StockadeError if it could not be started at all."""
        result = await self._process.wait()
        dropped = self._sandbox.violations.dropped_of(self._id) if result.violations else 0
        return Ending(result.exit_code, result.signal, result.violations, dropped, result.notes)

    def kill(self) -> None:
        """End it."""
        self._process.kill()


async def start_inside(
    sandbox: Sandbox, words: Sequence[str], output: int, *, cwd: str, command_id: str, line: str
) -> InsideRun:
    """Start words with nothing to read and one descriptor for all output; ``line`` is what they stand for."""
    process = await sandbox.spawn(
        words, cwd=cwd, stdin=None, stdout=output, stderr=output, command_id=command_id, line=line
    )
    return InsideRun(sandbox, process, command_id)
