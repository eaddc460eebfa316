"""Refusals that are not worth a word unasked: programs that keep a history in the home directory, and do without it.

`git commit` opens an editor that would remember where its cursor was. Told with a remedy, each commit would advise
people to open their home. Whoever asks for the refusals hears of these as well.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.violations.violation import Operation

if TYPE_CHECKING:
    from stockade.violations.violation import Violation

_NAMES: Final = frozenset(
    {".viminfo", ".viminfo.tmp", ".lesshst", ".lesshsQ", ".python_history", ".node_repl_history", ".sqlite_history"}
    | {".psql_history", ".bash_history", ".zsh_history", ".wget-hsts"}
)
_CHANGES: Final = frozenset({Operation.CREATE, Operation.WRITE, Operation.RENAME, Operation.DELETE})


def is_habit(violation: Violation, home: str) -> bool:
    """Tell whether a program only wanted to note something for itself, directly in the home directory."""
    folder, name = os.path.split(violation.target)
    return violation.operation in _CHANGES and name in _NAMES and folder == home
