"""What the person sees: lines, warnings, failures, JSON. Colour only on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from stockade.errors import SettingsError
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.errors import StockadeError

FAILURE: Final = 125
_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class Terminal(Value):
    """Where output goes. Everything that may hold foreign text must be escaped before it comes here.

    Warnings and failures come from everywhere, so what cannot be seen in them is escaped once more.
    """

    out: TextIO
    err: TextIO

    def line(self, text: str = "") -> None:
        """Print one line."""
        print(text, file=self.out)

    def json(self, value: object) -> None:
        """Print a value for programs. Lone surrogates of odd file names stay readable as escapes."""
        import json

        print(json.dumps(value, indent=2, ensure_ascii=True), file=self.out)

    def warn(self, text: str) -> None:
        """Print a warning line."""
        print(f"stockade: {self.paint('warning', 'yellow', self.err)}: {_legible(text)}", file=self.err)

    def fail(self, error: StockadeError) -> None:
        """Print what is wrong and what to do about it."""
        if isinstance(error, SettingsError):
            for problem in error.problems:
                self._complain(str(problem), problem.hint)
            return
        self._complain(error.message, error.hint)

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """Colour a text, if the stream is a terminal and NO_COLOR is not set."""
        target = self.out if stream is None else stream
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if _coloured(target) else text

    def _complain(self, message: str, hint: str) -> None:
        print(f"stockade: {_legible(message)}", file=self.err)
        if hint:
            print(f"  {self.paint('hint', 'bold', self.err)}: {_legible(hint)}", file=self.err)


def terminal() -> Terminal:
    """Return the terminal of this process. Names that are not UTF-8 must not make printing fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    return Terminal(sys.stdout, sys.stderr)


def _legible(text: str) -> str:
    from stockade.escape import legible  # most runs have nothing to complain about

    return legible(text)


def _coloured(stream: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
