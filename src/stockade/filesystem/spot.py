"""A directory in which a command made a name that programs of the host obey."""

from __future__ import annotations

import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.handle import Handle
from stockade.filesystem.repository_inspection import is_bare
from stockade.policy.protected_names import OBEYED, left_over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.filesystem.repository_inspection import RepositoryInspection

#: A directory that keeps its name missing holds one of these in a repository (``stockade.platforms.linux.covers``).
_IGNORED: Final = ".gitignore"


def look_at_spot(
    spot: str, look: RepositoryInspection, known: tuple[int, int] | None, *, since: int, started: int
) -> None:
    """Look at a directory that may be a repository itself, and at what editors and agents obey in it.

    Of a repository that was there before (``known`` by device and inode), only what changed since commands ``started``
    counts; of other things here, what changed ``since``.
    """
    handle = Handle.reach(spot)
    if handle is None:
        return
    with handle:
        if is_bare(handle):
            look.look_at_bare(spot, started if known == handle.identity() else 0)
        for name, obeyed in OBEYED.items():
            entries = left_over(obeyed, name, look.lifted)
            if not entries:
                continue
            if "" in entries and not _is_hollow(handle, name):
                look.offend(handle, name, entries[""], since)
            elif "" not in entries:
                _look_in(handle, name, entries, look, since)


def _is_hollow(handle: Handle, name: str) -> bool:
    """Tell whether a directory holds nothing but what commands see where a name is kept missing.

    So do copies of a project that commands make, and no program obeys that.
    """
    below = handle.below(name)
    if below is None:
        return False
    with below:
        names = below.names(most=1)
        if not names:
            return names is not None
        status = below.status(_IGNORED)
        return names == (_IGNORED,) and status is not None and stat.S_ISREG(status.st_mode)


def _look_in(handle: Handle, name: str, entries: Mapping[str, str], look: RepositoryInspection, since: int) -> None:
    below = handle.below(name)
    if below is not None:
        with below:
            for entry, why in entries.items():
                look.offend(below, entry, why)
    elif handle.is_link(name):
        look.offend(handle, name, next(iter(entries.values())), since)
