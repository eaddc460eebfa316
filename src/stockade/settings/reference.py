"""The settings reference of the documentation, generated from the catalogue.

To regenerate it: ``python -m stockade.settings.reference > docs/settings.md``.
"""

from __future__ import annotations

import sys

from stockade.annotation import TYPE_CHECKING
from stockade.settings.catalog import CATALOG, LEAVING, LOCKING, MANAGED_ONLY, Loosens

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

_PATHS = """\
Relative paths in a project's file start at the directory of that project (the one that holds `.stockade` or `.claude`),
in all other files at the session's working directory. The project is the nearest directory with settings, up to the
repository's root and before home. Of every settings file farther up, to the root of the disk, what tightens counts too;
the files in home are the user's own. `~` is `$HOME`. In managed settings a deny with `~` holds in the home that the
user database names as well, and an allow with `~` counts only where `$HOME` is that home.
"""

_LOOSE = {
    Loosens.WHEN_TRUE: " (when true)",
    Loosens.WHEN_FALSE: " (when false)",
    Loosens.WHEN_LESS: " (less than the default)",
}
_COLUMNS = ("setting", "kind", "default", "meaning", "in an untrusted project file")


def reference() -> str:
    """Return the whole page, Markdown."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *(_row(key) for key in CATALOG.values())]
    table = "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)
    names = ", ".join(f"`{key.name}`" for key in LOCKING)
    leaving = ", ".join(f"`{key.name}`{_LOOSE.get(key.loosens, '')}" for key in LEAVING)
    locks = (
        f"Set by an administrator or a fleet, any of these locks the sandbox settings: {names}. They then cannot be "
        "edited, and the command line can only tighten them. In every layer below the one that locks (under a lock of "
        "managed settings also in the file that `STOCKADE_FLAG_SETTINGS` names) the ways out of the walls are ignored, "
        f"with a warning: {leaving}. Other lists still merge, and a deny of the administrator holds against every "
        "allow. Where the lock says `sandbox.autoAllowBashIfSandboxed`: false, rules below it that allow every command "
        "(`Bash`, `Bash(*)`) are ignored too; narrower ones count. Where managed settings deny domains, only they "
        "can name a proxy of somebody else, lock or no lock.\n"
    )
    return f"{_INTRODUCTION}\n{table}\n{_PATHS}\n{locks}"


def _cells(row: tuple[str, ...]) -> Iterator[str]:
    # A bar would end the cell, even inside a code span.
    return (cell.replace("|", "\\|") for cell in row)


def _row(key: Key[object]) -> tuple[str, ...]:
    return (f"`{key.name}`", key.expected, _default(key), key.meaning, _untrusted(key))


def _default(key: Key[object]) -> str:
    import json  # only when the page is made

    return "" if key.default is None else f"`{json.dumps(key.default)}`"


def _untrusted(key: Key[object]) -> str:
    if key in MANAGED_ONLY:
        return "ignored"
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
