"""What the person sees: lines, warnings, failures, JSON. Colour only on a terminal."""

from __future__ import annotations

import os
import sys

from stockade.annotation import Final, TextIO
from stockade.errors import SettingsError, StockadeError
from stockade.value import Value

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
        self._write(f"{text}\n")

    def json(self, value: object) -> None:
        """Print a value for programs. Lone surrogates of odd file names stay readable as escapes."""
        import json

        self._write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")

    def flush(self) -> None:
        """Let everything printed so far arrive. Raises StockadeError if it cannot."""
        self._write("", flush=True)

    def warn(self, text: str) -> None:
        """Print a warning line."""
        print(f"stockade: {self.paint('warning', 'yellow', self.err)}: {_legible(text)}", file=self.err)

    def aside(self, text: str) -> None:
        """Print lines beside the output, as they are."""
        print(text, file=self.err, end="")

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
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if coloured(target) else text

    def _write(self, text: str, *, flush: bool = False) -> None:
        try:
            print(text, file=self.out, end="", flush=flush)
        except BrokenPipeError:  # the reader has gone, which is for the caller to take as an end
            raise
        except OSError as error:
            leave_output()
            message = f"the output cannot be written: {error.strerror}"
            raise StockadeError(message, "see where it goes: is the disk full?") from error

    def _complain(self, message: str, hint: str) -> None:
        print(f"stockade: {_legible(message)}", file=self.err)
        if hint:
            print(f"  {self.paint('hint', 'bold', self.err)}: {_legible(hint)}", file=self.err)


def terminal() -> Terminal:
    """Return the terminal of this process. Names that are not UTF-8 must not make printing fail."""
    return Terminal(_stream(sys.stdout), _stream(sys.stderr))


def leave_output() -> None:
    """Send what is still to be printed nowhere, so that its failure is not told once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _stream(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by whoever started us
        return open(os.devnull, "w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _legible(text: str) -> str:
    from stockade.escape import legible  # most runs have nothing to complain about

    return legible(text)


def coloured(stream: TextIO) -> bool:
    """Tell whether somebody looks at a stream and wants colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
