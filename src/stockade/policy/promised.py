"""Directories that commands may make although something in them is protected: a setting lifts some of it.

``.claude`` is protected while it is missing, for whoever makes it makes ``.claude/hooks``. If ``allowProtected`` names
``.claude/commands``, it is to be made all the same, and the rest of it stays closed. So it is judged and planned as if
it were there, and empty: then each protected name in it counts by itself. Walls that need it for that make it before a
command starts, and remove it when their session ends if nothing is in it.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any
from stockade.policy.protected import Protection
from stockade.policy.protected_names import INNER, UNKEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Places
    from stockade.policy.protected import Search


class Promising:
    """A disk on which some directories are there that are missing still; all else is as it is."""

    def __init__(self, places: Any, promised: frozenset[str]) -> None:
        """Look at another disk."""
        self._places = places
        self._promised = promised

    def __getattr__(self, name: str) -> Any:
        """Ask the other disk."""
        return getattr(self._places, name)

    def exists(self, path: str) -> bool:
        """Tell whether something is there, or will be."""
        return bool(self._places.exists(path)) or path in self._promised

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory is there, or will be."""
        return bool(self._places.is_directory(path)) or path in self._promised


def promised(roots: Iterable[str], search: Search, denies: Iterable[PathPattern], places: Places) -> frozenset[str]:
    """Return the missing directories at the roots of writable trees of which the settings lift what no rule denies."""
    kept = [first for first in INNER if first not in UNKEPT and not (first == ".git" and search.staged)]
    paths = {f"{root.rstrip('/')}/{first}": first for root in roots if places.is_directory(root) for first in kept}
    denies = tuple(denies)
    return frozenset(
        path
        for path, first in paths.items()
        if not places.exists(path)
        and any(search.lifts(entry) and not _is_denied(entry.path, denies) for entry in _entries(first, path))
    )


def _entries(first: str, path: str) -> Iterator[Protection]:
    """Yield what is protected in a directory of this name."""
    for name, why in INNER[first].items():
        place = f"{path}/{name}"
        yield Protection(f"{first}/{name}", place, place, why)


def _is_denied(path: str, denies: Iterable[PathPattern]) -> bool:
    return any(deny.depth_on(path) is not None for deny in denies)
