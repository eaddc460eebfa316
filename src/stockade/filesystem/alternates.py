"""The lists by which repositories take objects from elsewhere, and whether commands have put others in their place."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.signature import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from stockade.filesystem.signature import Signature

_LIST: Final = "/objects/info/alternates"


class Alternates:
    """The lists by which known repositories take objects from elsewhere, as they were before commands ran.

    A list comes with its directory if a command moves that, and is then older than the command. So of each repository
    it is noted once whether there is one. What the host does to it between two commands is noted by the next look.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, Signature | None] = {}
        #: Those without a list.
        self._plain: set[str] = set()
        self._suspects: set[str] = set()

    def know(self, stores: Iterable[str], *, more: bool = False) -> None:
        """Note the lists of these repositories, before a command runs; of those that are known already they stay.

        They are all, or ``more`` than those that are known.
        """
        now = set(stores)
        if not more:
            for store in self._known.keys() - now:
                del self._known[store]
            self._plain &= now
        for store in now - self._known.keys():
            self._note(store)

    def begin(self) -> None:
        """Note that no command runs: what was set aside may be back, and then the host wants it so."""
        for store in self._suspects & self._known.keys():
            self._note(store)
        self._suspects.clear()

    def changed(self, still: AbstractSet[str] = frozenset()) -> list[str]:
        """Return the repositories with other lists than before; in those that are ``still``, no name came or went."""
        came = [store for store in self._plain - still if _has_list(store)]
        listed = self._known.keys() - self._plain if len(self._plain) < len(self._known) else ()
        return came + [store for store in listed if _listed_in(store) != self._known[store]]

    def _note(self, store: str) -> None:
        found = self._known[store] = _listed_in(store)
        if found is None:
            self._plain.add(store)
        else:
            self._plain.discard(store)

    def is_another(self, objects: str, status: os.stat_result) -> bool:
        """Tell whether the list below a directory of objects is known to be another than before."""
        store = objects.removesuffix("/objects")
        return store in self._known and self._known[store] != signature_of(status)

    def settle(self, stores: Iterable[str]) -> None:
        """Note the lists of these as they are, now that they were looked at."""
        for store in stores:
            self._note(store)
            self._suspects.add(store)


def _has_list(store: str) -> bool:
    return os.access(store + _LIST, os.F_OK)


def _listed_in(store: str) -> Signature | None:
    """Return the signature of the list of a repository, ``None`` if git finds none there."""
    if not _has_list(store):  # nearly always, and an exception takes five times as long
        return None
    try:
        return signature_of(os.stat(store + _LIST, follow_symlinks=False))
    except OSError:
        return None
