"""What a command says, taken from its pipes as it comes and kept within a bound.

No loop and no waiting: a face watches the descriptors and calls ``read`` when one is readable.
Once all of a command is dead nobody can write to its pipes any more, so ``finish`` reads them to the end.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.sandbox.limits import Limits

_PIECE: Final = 1 << 16


class Capture:
    """One pipe: ``writer`` goes to the command, ``reader`` is read here."""

    def __init__(self, watcher: Callable[[bytes], None] | None = None) -> None:
        """Make the pipe; ``watcher`` is told every piece as it comes."""
        self.reader, self.writer = os.pipe()
        # The command must meet an ordinary pipe: that it never blocks is for the reading end alone.
        os.set_blocking(self.reader, False)
        self._pieces: list[bytes] = []
        self._watcher = watcher
        self.size = 0

    def close_writer(self) -> None:
        """Give the writing end up once the command has its own."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def read(self) -> bool:
        """Take what is there; ``False`` at the end of the pipe."""
        try:
            piece = os.read(self.reader, _PIECE)
        except BlockingIOError:
            return True
        if not piece:
            return False
        self.size += len(piece)
        self._pieces.append(piece)
        if self._watcher is not None:
            self._watcher(piece)
        return True

    def finish(self) -> bytes:
        """Read what is left, close the pipe, and return all of it."""
        if self.reader >= 0:
            self.close_writer()
            before = -1
            while before != self.size:
                before = self.size
                self.read()
            os.close(self.reader)
            self.reader = -1
        return b"".join(self._pieces)


def exceeded(captures: Iterable[Capture], limits: Limits) -> bool:
    """Tell whether a command has said more than it may."""
    return limits.output_bytes is not None and sum(capture.size for capture in captures) > limits.output_bytes
