"""The three standard streams of a command whose output is taken: opened together, closed together."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.errors import UnavailableError
from stockade.sandbox.capture import Capture
from stockade.sandbox.input import open_input

if TYPE_CHECKING:
    from collections.abc import Callable


class Streams:
    """What a command reads, and what it says."""

    def __init__(self, stdin: bytes | None, watcher: Callable[[bytes], None] | None = None) -> None:
        """Open all three or none; ``watcher`` is told each piece of output as it comes."""
        self._source = -1
        self.captures: tuple[Capture, ...] = ()
        try:
            self._source = open_input(stdin)
            self.captures = (Capture(watcher),)
            self.captures += (Capture(watcher),)
        except OSError as error:
            self.finish()
            message = f"the command's streams cannot be opened: {error.strerror}"
            raise UnavailableError(message, "close files, or raise the limit of open files (ulimit -n)") from error

    @property
    def numbers(self) -> tuple[int, ...]:
        """The descriptors that the command gets."""
        return self._source, *(capture.writer for capture in self.captures)

    def hand_over(self) -> None:
        """Close our copies of what the command has now."""
        if self._source >= 0:
            os.close(self._source)
            self._source = -1
        for capture in self.captures:
            capture.close_writer()

    def finish(self) -> tuple[bytes, ...]:
        """Close everything; return what was said. May be called again."""
        self.hand_over()
        return tuple(capture.finish() for capture in self.captures)
