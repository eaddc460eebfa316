"""An entry of ``sandbox.filesystem.allowProtected``: a protected name, or a path.

- A name that is known, in any case: its protection is lifted in all writable trees, where it is missing too. A
  directory of which only some entries are protected (``.claude``) stands for all of these.
- What begins with a dot is meant as a name (``.vscode``), so that an unknown one is a mistake; ``./.x`` is a path.
- Anything else is a path: all that is protected at it and below it is lifted. A name without its dot is a mistake.

Never lifted are Stockade's own settings and its installation: who writes them builds the walls. It takes settings from
``.claude`` as well (``SETTINGS``): these are guarded wherever it would read them, whatever is lifted.
"""

from __future__ import annotations

from stockade.annotation import Final, NoReturn
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.home_names import AT_HOME
from stockade.policy.protected_names import CONFIGS, INNER, NAMES, OWN, REPOSITORY

_CONFIG: Final = ".git/config"
#: Names of files that Stockade takes settings from, although others obey them, too.
SETTINGS: Final = frozenset({".claude/settings.json", ".claude/settings.local.json"})
#: Every name, folded, with the protections that it lifts. A config of git has two files; a directory is a repository by
#: all of its parts together, so that one of them stands for all.
KNOWN: Final[dict[str, frozenset[str]]] = {
    name.casefold(): frozenset({name})
    for name in (
        *AT_HOME,
        *NAMES,
        *(f"{first}/{entry}" for first, entries in INNER.items() for entry in entries if first != OWN),
    )
} | {_CONFIG: CONFIGS, **dict.fromkeys((name.casefold() for name in REPOSITORY), frozenset(REPOSITORY))}
KNOWN.update(
    (first, frozenset(name for names in tuple(KNOWN.values()) for name in names if name.startswith(f"{first}/")))
    for first in INNER
    if first not in (OWN, ".git")  # of which too much is git's own for one word
)
_PATTERN: Final = frozenset("*?[")
_CLOSE: Final = 0.75


def names_lifted_by(text: str) -> frozenset[str]:
    """Return the names whose protection an entry lifts; none if it is a path. Raises ``InvalidTextError``."""
    folded = text.casefold().rstrip("/")
    found = KNOWN.get(folded)
    if found is not None:
        return found
    first = folded.partition("/")[0]
    if first == OWN:
        message = f'"{escape(text, 60)}" cannot be lifted: commands would write the settings of their own walls'
        raise InvalidTextError(message, "Stockade's settings and its installation stay closed; change them outside.")
    if first.startswith(".") and first not in (".", "..") and not _PATTERN.intersection(text):
        _refuse(text, folded)
    if f".{folded}" in KNOWN:
        _refuse(text, f".{folded}")
    return frozenset()


def _refuse(text: str, folded: str) -> NoReturn:
    message = f'"{escape(text, 60)}" is not the name of anything that is protected'
    raise InvalidTextError(message, f"{_meant(folded)} For a path, write ./ before it.")


def _meant(folded: str) -> str:
    """Return the nearest name, or those in the directory that was named, or those that projects have."""
    if folded in KNOWN:
        return f"Did you mean {_spelled(folded)}?"
    around = next((name for name in _above(folded) if name in KNOWN and _spelled(name) in KNOWN[name]), "")
    if around:
        return f"Name {_spelled(around)}, which is protected as a whole."
    within = [_spelled(name) for name in KNOWN if name.startswith(f"{folded}/")]
    if within:
        return f"Name what is meant in it: {', '.join(within)}."
    from difflib import get_close_matches

    close = get_close_matches(folded, KNOWN, n=1, cutoff=_CLOSE)
    if close:
        return f"Did you mean {_spelled(close[0])}?"
    usual = (*NAMES, *(f"{first}/{entry}" for first in (".git", ".claude") for entry in INNER[first]))
    return f"Names are {', '.join(usual)}, and those of a home."


def _above(folded: str) -> list[str]:
    """Return the names of the directories above a name, the nearest first."""
    parts = folded.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]


def _spelled(folded: str) -> str:
    """Return a name as it is written."""
    return next((name for name in KNOWN[folded] if name.casefold() == folded), folded)
