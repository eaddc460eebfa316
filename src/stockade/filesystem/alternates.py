"""The lists by which repositories take objects from elsewhere, and whether commands have put others in their place."""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.signature import TICK, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.signature import Signature

_LIST: Final = "/objects/info/alternates"
#: So many lists are asked for by one look, if others told of every other change: each takes two microseconds.
_AT_ONCE: Final = 6


class Alternates:
    """The lists by which known repositories take objects from elsewhere, as they were before commands ran.

    A list comes with its directory if a command moves that, and is then older than the command. So of each repository
    it is noted once whether there is one. What the host does to it between two commands is noted by the next look.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, Signature | None] = {}
        self._suspects: set[str] = set()
        self._turn = 0
        self._rounds = (0, 0)

    def know(self, stores: Iterable[str]) -> None:
        """Note the lists of these repositories, before a command runs; of those that are known already they stay."""
        now = set(stores)
        for store in self._known.keys() - now:
            del self._known[store]
        for store in now - self._known.keys():
            self._known[store] = _listed_in(store)

    def begin(self) -> None:
        """Note that no command runs: what was set aside may be back, and then the host wants it so."""
        for store in self._suspects & self._known.keys():
            self._known[store] = _listed_in(store)
        self._suspects.clear()

    def changed(self, *, whole: bool) -> list[str]:
        """Return the repositories with other lists than before, of all of them if ``whole``, else of some, in turn."""
        known, access = self._known, os.access
        stores: Iterable[str] = known
        if not whole and len(known) > _AT_ONCE:
            if self._turn >= len(known):
                self._turn, self._rounds = 0, (self._rounds[1], time.time_ns() - TICK)
            stores = list(known)[self._turn : self._turn + _AT_ONCE]
            self._turn += _AT_ONCE
        return [
            store
            for store in stores
            if (access(store + _LIST, os.F_OK) if known[store] is None else _listed_in(store) != known[store])
        ]

    def is_another(self, objects: str, status: os.stat_result) -> bool:
        """Tell whether the list below a directory of objects is known to be another than before."""
        store = objects.removesuffix("/objects")
        return store in self._known and self._known[store] != signature_of(status)

    def since(self, since: int) -> int:
        """Return when the last look was that may not have found all of them, if that is before ``since``."""
        return min(since, self._rounds[0]) if len(self._known) > _AT_ONCE else since

    def settle(self, stores: Iterable[str]) -> None:
        """Note the lists of these as they are, now that they were looked at."""
        for store in stores:
            self._known[store] = _listed_in(store)
            self._suspects.add(store)


def _listed_in(store: str) -> Signature | None:
    """Return the signature of the list of a repository, ``None`` if git finds none there."""
    path = store + _LIST
    if not os.access(path, os.F_OK):  # nearly always, and an exception takes five times as long
        return None
    try:
        return signature_of(os.stat(path, follow_symlinks=False))
    except OSError:
        return None
