"""What commands left for programs of the host, looked at before a result is returned and while commands run.

What is protected exists already when a command starts, or is kept from being made at the root of a writable tree. Below
the root a command can make such names: a repository with a config of its own, ``.vscode`` in a package. They are found
here, and what a program of the host would obey is set aside under another name. The rules:

- Only directories that changed are listed, and those that are new in them, down to the search depth
  (``sandbox.mandatoryDenySearchDepth``); gitlinks lead further, at any depth.
- Repositories: see ``stockade.filesystem.repository_inspection``.
- Of the protected names, those count below a root that a program obeys in the directory where it is opened: see
  ``stockade.policy.protected.OBEYED``.
- What was found stays under observation for as long as a command may run that no mount keeps from it.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.finding import Memo, unseen
from stockade.filesystem.signature import signature_of
from stockade.filesystem.written import Written
from stockade.policy.protected_names import OBEYED, UNSEARCHED
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stockade.filesystem.cover import Covers
    from stockade.filesystem.finding import Finding
    from stockade.filesystem.written import Listed, Watcher

_NOTED: Final = frozenset((*OBEYED, ".git"))
#: Two of these may make a directory a repository itself.
_BARE: Final = ("HEAD", "commondir", "objects")
_ENOUGH: Final = 2
_STATE: Final = ("rebase-merge", "rebase-apply", "remotes")
#: So many directories are listed below one; a command that makes more keeps its own result waiting for a while only.
_MOST: Final = 200_000


class Ground(Value):
    """What the look is about: how deep, what is left alone, and what was known when the commands started.

    ``lifted`` are the protected names that do not count (``configs``: those of git's configs), ``spared`` tells whether
    none does at a path.
    ``holders`` are the directories of known repositories, ``bare`` those that are one themselves (device and inode).
    ``seen`` tells whether a directory was searched before; ``since`` is when the first command started, in nanoseconds
    of the epoch; ``links`` are the gitlinks of an index, if the plan has read that very one. ``settled``: no command
    runs any more, and we heard of every change of an index. ``last``: no command runs any more; ``again``: and there
    were looks while they ran. ``named`` tells which files in a work tree the user's own configs name for git to run.
    ``stirred`` are the known repositories in which something came or went where git writes, as far as the ``watcher``
    watches them.
    """

    depth: int
    configs: bool
    spared: Callable[[str], bool]
    holders: tuple[str, ...]
    bare: Mapping[str, tuple[int, int]]
    seen: Callable[[str], bool]
    since: int
    links: Callable[[str, tuple[int, int, int, int]], tuple[str, ...] | None]
    settled: bool = False
    last: bool = False
    again: bool = False
    named: Callable[[str, str], Iterable[str]] = lambda _common, _worktree: ()
    lifted: frozenset[str] = frozenset()
    stirred: frozenset[str] = frozenset()
    watcher: Watcher | None = None


class Inspection:
    """The looks of one session."""

    def __init__(self) -> None:
        """Begin with nothing under observation."""
        self._memo = Memo()
        self._spots: dict[str, None] = {}
        self._walked: set[str] = set()
        self._cut: set[str] = set()
        #: The known repositories as of the last look at all of them, and those whose index leads somewhere.
        self._asked: tuple[str, ...] = ()
        self._leading: dict[str, None] = {}
        self._written = Written()

    def begin(self) -> None:
        """Note that no command runs, and that mounts will cover what is there now."""
        self._spots.clear()
        self._walked.clear()
        self._memo.alternates.begin()

    def know(
        self,
        stores: Iterable[str],
        owned: Iterable[str],
        watcher: Watcher | None,
        listed: Listed,
        *,
        more: bool = False,
    ) -> None:
        """Note what these repositories are like before a command runs.

        Those ``owned`` by a work tree are watched from now on, if that can be. They are all, or ``more`` than those
        that are known.
        """
        self._memo.alternates.know(stores, more=more)
        self._written.know(owned, watcher, listed)

    def know_again(self, stores: Iterable[str], watcher: Watcher) -> None:
        """Watch what there is now in these repositories: directories came or went in them."""
        self._written.know_again(stores, watcher)

    def ask_again(self) -> None:
        """Ask for every known index once more: something changed on the disk that no look was told of."""
        self._asked = ()

    def walk_again(self) -> None:
        """Search directories again that are new since the commands started: nobody tells what happened in them."""
        self._walked.clear()

    def look(
        self,
        covers: Covers,
        ground: Ground,
        changed: Iterable[str],
        replaced: Iterable[str] = (),
        made: Iterable[str] = (),
    ) -> list[Finding]:
        """Look at everything once, after names have ``changed`` in directories, or all below them was ``replaced``.

        In the directories ``made`` commands have made a repository.
        """
        made = tuple(made)
        holders: dict[str, None] = dict.fromkeys(made)
        found: list[Finding] = []
        for directories, whole in ((changed, False), (replaced, True)):
            for directory in directories:
                holder, inside, _ = f"{directory}/".partition("/.git/")
                if inside:
                    holders[holder] = None
                elif "/node_modules/" not in f"{directory}/":
                    found += self._list(directory, covers, ground, whole=whole)
        # An index that was read while commands ran is read again at the end, see ``_forget``.
        holders.update(dict.fromkeys(root for root in covers.roots if ground.again or _has_state(root)))
        lists: list[str] = []
        if ground.last:
            watcher = ground.watcher if ground.settled else None
            stores = [f"{holder}/.git" for holder in ground.holders if holder not in holders]
            lists = self._memo.alternates.changed(frozenset() if watcher is None else watcher.attended - ground.stirred)
            found_in = [*lists, *self._written.search(stores, ground.stirred, watcher)]
            holders.update((f"{store}/".partition("/.git/")[0], None) for store in found_in if "/.git/" in f"{store}/")
            self._forget(holders)
        self._leading.update(holders)
        # These are read in any case, and what the plan has read of them may be out of date.
        holders.update(dict.fromkeys(self._stirred(ground, but=frozenset(holders))))
        if not (holders or self._spots or ground.bare):
            return found
        found += self._look_at(covers, ground, holders, made)
        self._memo.alternates.settle(lists)
        self._leading = {holder: None for holder in self._leading if self._leads(holder)}
        return found

    def _leads(self, holder: str) -> bool:
        """Tell whether the index of a repository leads somewhere, as far as is known."""
        known = self._memo.indexes.get(f"{holder}/.git")
        return known is None or bool(known[1])

    def _look_at(self, covers: Covers, ground: Ground, holders: Iterable[str], made: tuple[str, ...]) -> list[Finding]:
        from stockade.filesystem.repository_inspection import RepositoryInspection
        from stockade.filesystem.spot import look_at_spot

        look = RepositoryInspection(
            covers,
            self._memo,
            configs=ground.configs,
            lifted=ground.lifted,
            spared=ground.spared,
            named=ground.named,
            since=ground.since,
            last=ground.last,
            made=made,
        )
        look.look_at((*holders, *self._spots))
        for spot in dict.fromkeys((*ground.bare, *self._spots)):
            # In a directory that was there before, what is older than the commands is not theirs.
            since = ground.since if ground.seen(spot) else 0
            look_at_spot(spot, look, ground.bare.get(spot), since=since, started=ground.since)
        return look.findings

    def _forget(self, holders: Iterable[str]) -> None:
        """Read files again that were read while commands ran.

        A store to a page that is mapped and dirty already changes no time of the file. Now nobody has one mapped.
        """
        self._memo.harmless.clear()
        for store in (*(f"{holder}/.git" for holder in holders), *self._memo.hasty):
            self._memo.indexes.pop(store, None)
        self._memo.hasty.clear()

    def _stirred(self, ground: Ground, but: frozenset[str]) -> Iterator[str]:
        """Yield the directories of known repositories whose index is another than it was, or leads somewhere.

        To ask for the times of 300 indexes takes a millisecond. Where all changes were told, only those are asked for
        that lead somewhere, for a repository at a gitlink may lie deeper than anything that is watched.
        """
        if not ground.settled or ground.holders != self._asked:
            self._asked = ground.holders
            self._leading.update(dict.fromkeys(self._led(ground, [one for one in ground.holders if one not in but])))
        yield from tuple(self._led(ground, [one for one in self._leading if one not in but]))

    def _led(self, ground: Ground, holders: Iterable[str]) -> Iterator[str]:
        for holder in holders:
            store = f"{holder}/.git"
            try:
                status = os.lstat(f"{store}/index")
            except FileNotFoundError:
                continue
            except OSError:
                yield holder  # its ``.git`` is a file, which leads elsewhere
                continue
            signature = signature_of(status)
            known = self._memo.indexes.get(store)
            if known is None or known[0] != signature:
                read = ground.links(f"{store}/index", signature[1:])
                known = None if read is None else (signature, read)
            if known is None or known[1]:
                yield holder
            else:
                self._memo.indexes[store] = known
                if not ground.last:
                    self._memo.hasty.add(store)

    # Finding what is new

    def _list(self, directory: str, covers: Covers, ground: Ground, *, whole: bool) -> list[Finding]:
        """Note what is in a directory, and below it in directories that are new, or in all; return if that was cut."""
        root = covers.root_of(directory)
        if root is None:
            return []
        if directory.rpartition("/")[2] in OBEYED:
            # Of these the entries count, and the directory that holds it knows which.
            directory = directory.rpartition("/")[0]
        todo = [(directory.rstrip("/"), directory.rstrip("/").count("/") - root.rstrip("/").count("/"))]
        listed = 0
        while todo and listed < _MOST:
            here, level = todo.pop()
            listed += 1
            for name in self._entries(here, covers, deeper=level < ground.depth):
                path = f"{here}/{name}"
                if whole or not (ground.seen(path) or path in self._walked):
                    self._walked.add(path)
                    todo.append((path, level + 1))
        if not todo or directory in self._cut:
            return []
        self._cut.add(directory)
        return [unseen(f'below "{escape(directory)}" there are more than {_MOST:,} directories')]

    def _entries(self, here: str, covers: Covers, *, deeper: bool) -> list[str]:
        """Note a directory if something in it is to be looked at; return the directories in it that are searched."""
        try:
            return self._listed(here, covers, deeper=deeper)
        except PermissionError:
            return self._opened(here, covers, deeper=deeper)
        except (OSError, ValueError):
            self._spots[here] = None  # who may pass a directory needs no list of it to find names that are known
            return []

    def _opened(self, here: str, covers: Covers, *, deeper: bool) -> list[str]:
        """List a directory that a command has closed, if it is ours to open for a while."""
        from stockade.filesystem.handle import Handle

        self._spots[here] = None
        handle = Handle.reach(here)
        if handle is None:
            return []
        try:
            with handle, handle.writable():
                return self._listed(here, covers, deeper=deeper)
        except (OSError, ValueError):
            return []

    def _listed(self, here: str, covers: Covers, *, deeper: bool) -> list[str]:
        below: list[str] = []
        hints = 0
        with os.scandir(here or "/") as listed:
            for entry in listed:
                if entry.name.casefold() in _NOTED:
                    if not covers.covers(here, entry.name):
                        hints = _ENOUGH
                elif entry.name in _BARE:
                    hints += 1
                if entry.is_symlink():
                    self._note_way(entry.path, covers)
                elif deeper and entry.name not in UNSEARCHED and entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
        if hints >= _ENOUGH:
            self._spots[here] = None
        return below

    def _note_way(self, link: str, covers: Covers) -> None:
        """Note where a link leads, if a repository is there or above: it may lie deeper than anything is searched."""
        place = os.path.realpath(link)
        while (root := covers.root_of(place)) is not None and len(place) > len(root):
            if any(os.path.lexists(f"{place}/{name}") for name in (".git", "HEAD")):
                self._spots[place] = None
            place = place.rpartition("/")[0]


def _has_state(root: str) -> bool:
    """Tell whether the repository of a root holds what git obeys beside its config: a rebase under way, old remotes."""
    store = f"{root}/.git"
    try:
        return any(os.path.lexists(f"{store}/{name}") for name in _STATE) or bool(os.listdir(f"{store}/branches"))
    except OSError:
        return False
