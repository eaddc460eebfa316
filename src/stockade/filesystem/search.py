"""Finding protected names under a writable root: one pass, no question per entry.

The answers are those of ``stockade.policy.protected.find``, which is where the meaning stands; this is the fast way.

Of 20,000 directories (two cores, warm cache): 157 ms here, 213 ms by ``find``, 119 ms by ripgrep with the same names.
Ripgrep is left out all the same: it names files, not the directories that must be watched for the next command to be
free (``stockade.filesystem.memory``), so they would have to be listed here once more. ``sandbox.ripgrep`` is accepted
and not used.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.terrain import Interest
from stockade.policy.path_pattern import joined, names_of
from stockade.policy.protected import absent, around, held_at
from stockade.policy.protected_names import HELD, UNSEARCHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.filesystem.terrain import Terrain
    from stockade.policy.protected import Protection, Search

_ON_THE_WAY: Final = Interest(HELD, directories=True)
_AT_THE_END: Final = Interest(HELD)


def find_protected(root: str, search: Search, terrain: Terrain) -> Iterator[Protection]:
    """Yield every protection in the writable tree at the place ``root``: the missing ones too where they count."""
    yield from around(root, search, terrain)
    yield from absent(root, search, terrain)
    start = joined(names_of(root)).rstrip("/")
    todo = [(start, 0)]
    while todo:
        directory, level = todo.pop()
        deeper = level < search.depth
        for name, kind in terrain.entries(directory or "/", _ON_THE_WAY if deeper else _AT_THE_END):
            path, folded = f"{directory}/{name}", name.casefold()
            if folded in HELD:
                yield from held_at(path, folded, terrain)
            if deeper and kind == "directory" and folded not in UNSEARCHED:
                todo.append((path, level + 1))
