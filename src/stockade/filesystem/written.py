"""The directories of known repositories in which git writes, and whether something may have come there.

Git makes neither links nor pipes in ``refs`` and ``logs``, and nobody plans for what is there: it is many directories.
After a command, two things tell whether a repository needs a look:

- Where the disk is watched, these directories are watched, too, and those that hold the lists of other object stores.
  In a repository without an event there is nothing new.
- Where it is not, they are noted before the command, each with the time of its last change, which no command can set,
  and with its inode: another directory may have changed in the same tick of the clock, and be moved to its place.
  Those that have changed are searched afterwards.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final, Protocol, TypeAlias
from stockade.filesystem.signature import TICK
from stockade.placeholder import STAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from stockade.filesystem.terrain import Entries

#: The inode of a directory and the time of its last change; ``None`` if that is too near to tell.
State: TypeAlias = "tuple[int, int] | None"

#: Returns what a directory holds, each with its kind; nothing if that is not known.
Listed: TypeAlias = "Callable[[str], Entries]"

#: Git writes elsewhere in a repository, or they are looked at by themselves.
UNWALKED: Final = frozenset({"objects", "modules", "hooks", "lfs", "annex", STAGE})
#: In what lies in ``modules`` git writes as well.
_SKIPPED: Final = UNWALKED - {"modules"}
#: Of the objects, what may lead to others; the directories in them are many, and do not.
_OBJECTS: Final = ("/objects", "/objects/pack")
#: Where a list of other stores may come, which is asked for by itself where nobody watches.
_LISTS: Final = "/objects/info"
#: So many directories are searched in one repository.
_MOST: Final = 200_000
#: So often it is tried in vain to watch a repository, before times have to do for those that are not watched yet.
_ATTEMPTS: Final = 20
#: As many links as a directory has, before those of the directories in it.
_OWN_LINKS: Final = 2


class Watcher(Protocol):
    """Who can watch directories for a repository: see ``stockade.filesystem.memory``."""

    @property
    def attended(self) -> AbstractSet[str]:
        """The repositories for which something is watched."""

    def attend(self, owner: str, directory: str) -> bool:
        """Watch a directory, too; return whether that can be."""

    def leave(self, owner: str) -> None:
        """Watch nothing for a repository any more."""


class Written:
    """See the module. For one session."""

    def __init__(self) -> None:
        """Know of no repository."""
        self._known: dict[str, dict[str, State]] = {}
        self._attempts = _ATTEMPTS

    def know(self, stores: Iterable[str], watcher: Watcher | None, listed: Listed = lambda _: ()) -> None:
        """Note what there is in these repositories before a command runs, or have it watched from now on.

        Where nobody watches, one that was ``listed`` already is not listed again.
        """
        if watcher is None:
            for store in stores:
                self._known[store] = directories_of(store, below=listed(store))
            return
        new = [store for store in stores if store not in watcher.attended]
        if not self._attempts:
            new = [store for store in new if store not in self._known]
        self.know_again(new, watcher)

    def know_again(self, stores: Iterable[str], watcher: Watcher) -> None:
        """Watch what there is in these repositories now."""
        for store in stores:
            self._note(store, watcher)

    def search(self, stores: Iterable[str], stirred: AbstractSet[str], watcher: Watcher | None) -> list[str]:
        """Return those of the repositories in which links may lie, now that no command runs.

        ``stirred`` are those of which the ``watcher`` told. What it does not watch yet it does from now on; if events
        were lost while commands ran, that is all of them.
        """
        if watcher is None:
            return [store for store in stores if self._has_links(store)]
        found = list(stirred)
        attended = watcher.attended
        for store in [store for store in stores if store not in attended and store not in stirred]:
            if self._has_links(store):
                found.append(store)
            elif self._attempts:
                self._note(store, watcher)
        return found

    def _has_links(self, store: str) -> bool:
        return has_links(store, self._known.setdefault(store, {}))

    def _note(self, store: str, watcher: Watcher) -> None:
        watcher.leave(store)
        failed: list[str] = []

        def watch(directory: str) -> None:
            if not watcher.attend(store, directory):
                failed.append(directory)

        self._known[store] = directories_of(store, watch)
        if os.access(store + _LISTS, os.F_OK):
            watch(store + _LISTS)
        if failed or not self._known[store]:
            watcher.leave(store)
        if failed:
            self._attempts = max(0, self._attempts - 1)


def directories_of(
    store: str, watch: Callable[[str], object] = lambda _: None, *, below: Entries = ()
) -> dict[str, State]:
    """Return the directories of a repository in which git writes, each with its state.

    Each is watched before it is listed; ``below`` is what the repository itself held when it was listed before, if it
    was. Where it shows that a directory has a link for each one in it, one without needs no listing, nor does the
    repository if it holds as many. Nothing is returned if it cannot be told.
    """
    found: dict[str, State] = {}
    old = time.time_ns() - TICK
    objects = tuple(store + below for below in _OBJECTS)
    counted = -1
    todo = [*objects, store]
    while todo:
        here = todo.pop()
        try:
            status = os.lstat(here)
            watch(here)
            found[here] = _state_of(status, old)
            if here in objects or (status.st_dev == counted and status.st_nlink == _OWN_LINKS):
                continue
            names = [name for name, kind in below if kind == "directory"] if here == store else []
            if not names or len(names) != status.st_nlink - _OWN_LINKS:
                with os.scandir(here) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            found.pop(here, None)
            continue
        except OSError:
            return {}
        if here == store and len(names) == status.st_nlink - _OWN_LINKS > 0:
            counted = status.st_dev
        skipped = _skipped_in(here, store)
        todo += [f"{here}/{name}" for name in names if name not in skipped]
        if len(found) + len(todo) > _MOST:
            return {}
    return found


def has_links(store: str, known: dict[str, State]) -> bool:
    """Tell whether there may be a link or a pipe in a repository where git writes.

    ``known`` are the directories that were searched before, each with its state: those that have not changed since
    are not searched again.
    """
    old = time.time_ns() - TICK
    objects = tuple(store + below for below in _OBJECTS)
    todo = list(known) or [*objects, store]
    while todo:
        here = todo.pop()
        try:
            state = _state_of(os.lstat(here), old)
            if state is not None and known.get(here) == state:
                continue
            known[here] = state
            skipped = _skipped_in(here, store)
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        walked = entry.path in objects if here in objects else entry.name not in skipped
                        if walked and entry.path not in known:
                            todo.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        known.clear()
                        return True
        except FileNotFoundError:
            known.pop(here, None)
        except OSError:
            known.clear()
            return True  # git only needs to pass it
        if len(todo) > _MOST:
            return True
    return False


def _state_of(status: os.stat_result, old: int) -> State:
    """Return the state of a directory; a change in the same tick of the clock would not show."""
    return (status.st_ino, status.st_ctime_ns) if status.st_ctime_ns < old else None


def _skipped_in(here: str, store: str) -> frozenset[str]:
    """Return the names that are not searched in a directory: those of a repository, be it that of a submodule."""
    if here == store or (here.startswith(f"{store}/modules/") and os.access(f"{here}/HEAD", os.F_OK)):
        return _SKIPPED
    return frozenset()
