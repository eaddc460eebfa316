"""The lists by which repositories take objects from elsewhere, and whether commands have put others in their place.

A list names directories of objects, each of which may have a list again. So a list can stay as it is, and lead to other
objects: through a link that a command has put on the way, or by the list of a directory in a writable place. What all
lists of a repository lead to, its *reach*, is noted with them.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.signature import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from stockade.filesystem.signature import Signature

_LIST: Final = "/objects/info/alternates"
#: Git follows lists of lists as deep as that.
_DEEPEST: Final = 5
#: A repository with a longer list, or with more directories in its reach, does not keep its list.
_LONGEST: Final = 65536
_MOST: Final = 100
#: Stands for what cannot be told.
_ANYWHERE: Final = frozenset({"/"})


class Alternates:
    """The lists by which known repositories take objects from elsewhere, as they were before commands ran.

    A list comes with its directory if a command moves that, and is then older than the command. So of each repository
    it is noted once whether there is one. What the host does to it between two commands is noted by the next look.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, Signature | None] = {}
        #: What the lists lead to, for those that have one.
        self._reach: dict[str, frozenset[str]] = {}
        self._suspects: set[str] = set()

    def know(self, stores: Iterable[str], *, more: bool = False) -> None:
        """Note the lists of these repositories, before a command runs; of those that are known already they stay.

        They are all, or ``more`` than those that are known.
        """
        now = set(stores)
        if not more:
            for store in self._known.keys() - now:
                del self._known[store]
                self._reach.pop(store, None)
        for store in now - self._known.keys():
            self._note(store)

    def begin(self) -> None:
        """Note that no command runs: what was set aside may be back, and then the host wants it so.

        What lists lead to now is what the host wants, too.
        """
        for store in (self._suspects | self._reach.keys()) & self._known.keys():
            self._note(store)
        self._suspects.clear()

    def changed(self, still: AbstractSet[str] = frozenset()) -> list[str]:
        """Return the repositories with other lists than before; in those that are ``still``, no name came or went."""
        came = [store for store in self._known.keys() - self._reach.keys() - still if _has_list(store)]
        return came + [
            store
            for store, reach in self._reach.items()
            if _listed_in(store) != self._known[store] or reach_of(f"{store}/objects") != reach
        ]

    def leads_elsewhere(self, objects: str, reach: frozenset[str]) -> bool:
        """Tell whether a list that was there before led to other objects than its ``reach`` now."""
        return self._reach.get(objects.removesuffix("/objects"), reach) != reach

    def _note(self, store: str) -> None:
        found = self._known[store] = _listed_in(store)
        if found is None:
            self._reach.pop(store, None)
        else:
            self._reach[store] = reach_of(f"{store}/objects")

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


def reach_of(objects: str) -> frozenset[str]:
    """Return the directories from which git takes objects by the list below a directory of them, and by lists of lists.

    Links are followed, those among objects, too. If it cannot be told the root stands for all of them.
    """
    from stockade.policy.git_judgement import alternates

    found: set[str] = set()
    todo = [(objects, 0)]
    while todo:
        here, depth = todo.pop()
        listed = _content(f"{here}/info/alternates")
        others = () if listed is None else alternates(listed or None, here)
        if others is None or depth >= _DEEPEST:
            return _ANYWHERE
        for other in others:
            place = os.path.realpath(other)
            if place not in found:
                found.add(place)
                found.update(_links_in(place))
                todo.append((place, depth + 1))
        if len(found) > _MOST:
            return _ANYWHERE
    return frozenset(found)


def _content(path: str) -> bytes | None:
    """Return the text of a list, empty if it cannot be read; ``None`` if no list is there."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""
    try:
        content = os.read(descriptor, _LONGEST + 1)
        return content if len(content) <= _LONGEST else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _links_in(objects: str) -> list[str]:
    """Return where links among the objects of a directory lead."""
    found: list[str] = []
    for place in (objects, f"{objects}/pack"):
        try:
            with os.scandir(place) as entries:
                found += [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
        except OSError:
            continue
    return found
