"""The directories of known repositories in which git writes, and whether something may have come there.

Git makes neither links nor pipes in ``refs`` and ``logs``, and nobody plans for what is there: it is many directories.
After a command, two things tell whether a repository needs a look:

- Where the disk is watched, these directories are watched, too, and those that hold the lists of other object stores.
  In a repository without an event there is nothing new.
- Where it is not, they are noted before the command, each with the time of its last change, which no command can set.
  Those that have changed are searched afterwards.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final, Protocol
from stockade.filesystem.signature import TICK
from stockade.placeholder import STAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Git writes elsewhere in a repository, or they are looked at by themselves.
UNWALKED: Final = frozenset({"objects", "modules", "hooks", "lfs", "annex", STAGE})
#: In what lies in ``modules`` git writes as well.
_SKIPPED: Final = UNWALKED - {"modules"}
#: Of the objects, what may lead to others; the directories in them are many, and do not.
_OBJECTS: Final = ("/objects", "/objects/info", "/objects/pack")
#: So many directories are searched in one repository.
_MOST: Final = 200_000
#: So often it is tried in vain to watch a repository, before times have to do for those that are not watched yet.
_ATTEMPTS: Final = 20
#: As many links as a directory has, before those of the directories in it.
_OWN_LINKS: Final = 2


class Watcher(Protocol):
    """Who can watch directories for somebody: see ``stockade.filesystem.memory``."""

    def attend(self, owner: str, directory: str) -> bool:
        """Watch a directory, too; return whether that can be."""

    def attends(self, owner: str) -> bool:
        """Tell whether something is watched for an owner."""

    def leave(self, owner: str) -> None:
        """Watch nothing for an owner any more."""


class Written:
    """See the module. For one session; a repository goes by the directory that holds its ``.git``."""

    def __init__(self) -> None:
        """Know of no repository."""
        self._known: dict[str, dict[str, int]] = {}
        #: Those that are watched: the directories that hold them, and they themselves.
        self._watched: set[str] = set()
        self._stores: set[str] = set()
        self._attempts = _ATTEMPTS

    def know(self, holders: Iterable[str], watcher: Watcher | None) -> None:
        """Note what there is in these repositories before a command runs, or have it watched from now on."""
        for holder in holders:
            if watcher is None or not watcher.attends(holder):
                self._forget(holder)
                if watcher is None or self._attempts or holder not in self._known:
                    self._note(holder, watcher)

    def know_again(self, holders: Iterable[str], watcher: Watcher) -> None:
        """Watch what there is in these repositories now."""
        for holder in holders:
            self._forget(holder)
            self._note(holder, watcher)

    def still(self, stirred: Iterable[str]) -> set[str]:
        """Return the repositories that are watched, but for those ``stirred``: nothing came or went in them."""
        told = {f"{holder}/.git" for holder in stirred}
        return self._stores - told if told else self._stores

    def search(self, holders: Iterable[str], stirred: Iterable[str], watcher: Watcher | None) -> list[str]:
        """Return those of the repositories in which links may lie, now that no command runs.

        ``stirred`` are those of which the ``watcher`` told. What it does not watch yet it does from now on.
        """
        if watcher is None:
            return [holder for holder in holders if self._has_links(holder)]
        found = [holder for holder in stirred if holder in self._watched]
        for holder in [holder for holder in holders if holder not in self._watched]:
            if self._has_links(holder):
                found.append(holder)
            elif self._attempts:
                self._note(holder, watcher)
        return found

    def _has_links(self, holder: str) -> bool:
        return has_links(f"{holder}/.git", self._known.setdefault(holder, {}))

    def _forget(self, holder: str) -> None:
        self._watched.discard(holder)
        self._stores.discard(f"{holder}/.git")

    def _note(self, holder: str, watcher: Watcher | None) -> None:
        store = f"{holder}/.git"
        if watcher is None:
            self._known[holder] = directories_of(store)
            return
        watcher.leave(holder)
        failed: list[str] = []

        def watch(directory: str) -> None:
            if not watcher.attend(holder, directory):
                failed.append(directory)

        self._known[holder] = directories_of(store, watch)
        if failed or not self._known[holder]:
            watcher.leave(holder)
            self._attempts = max(0, self._attempts - 1)
        else:
            self._watched.add(holder)
            self._stores.add(store)


def directories_of(store: str, watch: Callable[[str], object] = lambda _: None) -> dict[str, int]:
    """Return the directories of a repository in which git writes, each with the time of its last change.

    Each is watched before it is listed. Where the repository itself shows that a directory has a link for each one in
    it, one without needs no listing. Nothing is returned if it cannot be told.
    """
    found: dict[str, int] = {}
    old = time.time_ns() - TICK
    objects = tuple(store + below for below in _OBJECTS)
    counted = -1
    todo = [*objects, store]
    while todo:
        here = todo.pop()
        try:
            status = os.stat(here, follow_symlinks=False)
            watch(here)
            found[here] = status.st_ctime_ns if status.st_ctime_ns < old else 0
            if here in objects or (status.st_dev == counted and status.st_nlink == _OWN_LINKS):
                continue
            with os.scandir(here) as entries:
                below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            found.pop(here, None)
            continue
        except OSError:
            return {}
        if here == store and len(below) == status.st_nlink - _OWN_LINKS > 0:
            counted = status.st_dev
        skipped = _skipped_in(here, store)
        todo += [entry.path for entry in below if entry.name not in skipped]
        if len(found) + len(todo) > _MOST:
            return {}
    return found


def has_links(store: str, known: dict[str, int]) -> bool:
    """Tell whether there may be a link or a pipe in a repository where git writes.

    ``known`` are the directories that were searched before, each with the time of its last change: those that have
    not changed since are not searched again. A change in the same tick of the clock would not show.
    """
    old = time.time_ns() - TICK
    objects = tuple(store + below for below in _OBJECTS)
    todo = list(known) or [*objects, store]
    while todo:
        here = todo.pop()
        try:
            changed = os.stat(here, follow_symlinks=False).st_ctime_ns
            if known.get(here) == changed:
                continue
            known[here] = changed if changed < old else 0
            skipped = _skipped_in(here, store)
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if here not in objects and entry.name not in skipped and entry.path not in known:
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


def _skipped_in(here: str, store: str) -> frozenset[str]:
    """Return the names that are not searched in a directory: those of a repository, be it that of a submodule."""
    if here == store or (here.startswith(f"{store}/modules/") and os.access(f"{here}/HEAD", os.F_OK)):
        return _SKIPPED
    return frozenset()
