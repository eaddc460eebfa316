"""The settings reference of the documentation, generated from the catalogue.

To regenerate it: ``python -m stockade.settings.reference > docs/settings.md``.
"""

from __future__ import annotations

import sys

from stockade.annotation import TYPE_CHECKING
from stockade.settings.catalog import CATALOG, LEAVING, LOCKING, Loosens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.settings.catalog import Key

_INTRODUCTION = """\
# Settings

<!-- Generated from the catalogue of settings: python -m stockade.settings.reference > docs/settings.md -->

Every setting is optional. A dotted name is a path inside the file: `sandbox.enabled` is
`{"sandbox": {"enabled": true}}`. The last column says what counts in a project file that the user has not trusted
(`stockade trust`): such a file can only tighten.
"""

_LOOSE = {Loosens.WHEN_TRUE: " (when true)", Loosens.WHEN_FALSE: " (when false)"}
_COLUMNS = ("setting", "kind", "default", "meaning", "in an untrusted project file")


def reference() -> str:
    """Return the whole page, Markdown."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *(_row(key) for key in CATALOG.values())]
    table = "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)
    names = ", ".join(f"`{key.name}`" for key in LOCKING)
    leaving = " and ".join(f"`{key.name}`{_LOOSE.get(key.loosens, '')}" for key in LEAVING)
    locks = (
        f"Set by an administrator or a fleet, any of these locks the sandbox settings: {names}. They then cannot be "
        f"edited, the command line can only tighten them, and {leaving} of other files are ignored, with a warning: "
        "what lets a command leave the walls altogether is for those who lock. Other lists still merge, and a deny "
        "of the administrator holds against every allow.\n"
    )
    return f"{_INTRODUCTION}\n{table}\n{locks}"


def _cells(row: tuple[str, ...]) -> Iterator[str]:
    # A bar would end the cell, even inside a code span.
    return (cell.replace("|", "\\|") for cell in row)


def _row(key: Key[object]) -> tuple[str, ...]:
    return (f"`{key.name}`", key.expected, _default(key), key.meaning, _untrusted(key))


def _default(key: Key[object]) -> str:
    import json  # only when the page is made

    return "" if key.default is None else f"`{json.dumps(key.default)}`"


def _untrusted(key: Key[object]) -> str:
    match key.loosens:
        case Loosens.WHEN_TRUE:
            return "only `false`"
        case Loosens.WHEN_FALSE:
            return "only `true`"
        case Loosens.WHEN_LESS:
            return f"only {key.default} or more"
        case Loosens.ALWAYS:
            return "ignored"
        case Loosens.NEVER:
            return "counts"


if __name__ == "__main__":
    sys.stdout.write(reference())
