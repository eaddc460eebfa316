"""A command that any other program can run inside a session."""

from __future__ import annotations

from stockade.value import Value


class Wrapped(Value):
    """What to run, as words or as a line for a shell; good for as long as the session is open.

    It runs inside with the streams of whoever runs it, gets the signals that this one gets, ends when this one is
    killed, and gives the exit status that a shell gives: 128 and the number for a signal, 126 or 127 if the program
    cannot be run, 125 if the session is over. The words hold neither the command nor its environment.
    """

    argv: tuple[str, ...]

    @property
    def line(self) -> str:
        """The words as a shell reads them back."""
        import shlex

        return shlex.join(self.argv)
