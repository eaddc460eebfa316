"""Command-line parsing: argparse that says nothing by itself and suggests what was meant."""

from __future__ import annotations

import argparse
import os

from stockade.annotation import TYPE_CHECKING, Any, NoReturn, TypeVar
from stockade.errors import StockadeError
from stockade.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

N = TypeVar("N")


class UsageError(StockadeError):
    """The command line itself is wrong."""


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal. Left to itself argparse would import ``shutil`` to ask, in every run."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns())


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors of ours, and which never guesses an abbreviation."""

    def __init__(self, **options: Any) -> None:
        """Switch off abbreviations: a flag that nobody wrote must not be taken for one."""
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)
        self.register("action", "either", argparse.BooleanOptionalAction)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and exiting."""
        raise UsageError(escape(message), f"see `{self.prog} --help`")

    def read(self, arguments: Sequence[str], namespace: N) -> N:
        """Parse, naming the nearest flag for one that does not exist."""
        parsed, rest = self.parse_known_args(arguments, namespace)
        if rest:
            self._unknown(rest[0])
        return parsed

    def flags(self) -> tuple[str, ...]:
        """Return every flag that this parser takes."""
        return tuple(flag for action in self._actions for flag in action.option_strings)

    def _unknown(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            message = f"unexpected argument: {escape(word)}"
            raise UsageError(message, f"see `{self.prog} --help`")
        flag = word.partition("=")[0]
        near = nearest(flag, self.flags())
        hint = f"did you mean {near}?" if near else f"see `{self.prog} --help`"
        message = f"unknown option: {escape(flag)}"
        raise UsageError(message, hint)


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"]) - 2
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(1).columns - 2
    except OSError:
        return 78


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant."""
    import difflib

    found = difflib.get_close_matches(word, tuple(known), n=1, cutoff=0.6)
    return found[0] if found else None
