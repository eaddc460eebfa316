"""What an inspection has found, and what it need not look at again."""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

Signature: TypeAlias = "tuple[int, int, int, int, int]"

_LIST: Final = "/objects/info/alternates"
#: So many lists are asked for by one look, if others told of every other change: each takes two microseconds.
_AT_ONCE: Final = 6
#: Nanoseconds; the clock of file systems has ticks of up to ten milliseconds.
_TICK: Final = 20_000_000


class Finding(Value):
    """Something that was set aside: where it was, where it is now, and why; ``failure`` says why it was not.

    ``back`` is the line of a shell that takes it back, where to move it is not enough.
    """

    path: str
    kept: str
    why: str
    failure: str = ""
    back: str = ""


def unseen(why: str) -> Finding:
    """Return the finding that not everything could be looked at."""
    return Finding("", "", "what the command left could not be looked at", why)


class Memo:
    """What earlier looks have found out, each by the signature of the file that it is about."""

    def __init__(self) -> None:
        """Begin with nothing."""
        #: Configs that may stay, with the repositories that they name by path.
        self.harmless: dict[str, tuple[Signature, tuple[str, ...]]] = {}
        #: The gitlinks of a repository's index, by the directory that the index is in.
        self.indexes: dict[str, tuple[Signature, tuple[str, ...]]] = {}
        #: Those of them that were read while a command ran.
        self.hasty: set[str] = set()
        #: What could not be set aside is told once.
        self.told: set[tuple[str, Signature]] = set()
        self.alternates = Alternates()


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
                self._turn, self._rounds = 0, (self._rounds[1], time.time_ns() - _TICK)
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


def signature_of(status: os.stat_result) -> Signature:
    """Return what changes with every change of a file; a command can set all of it but the last, the ctime."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
