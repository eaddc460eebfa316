"""A disk as the planner asks it: the questions of ``Places``, and directories listed with the kinds of their entries.

One listing tells the kinds as well (``d_type``, readdir(3)), so that a walk needs no question per entry.
Where a sandbox only keeps a name from being made (``stockade.placeholder``), nothing is there for any plan, or a plan
would rest on what the other sandbox takes away when it ends.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import Final, Literal, Protocol, TypeAlias
from stockade.placeholder import is_kept, is_marked, is_placeholder, may_be_placeholder
from stockade.policy.places import Disk, Places
from stockade.value import Value

Kind: TypeAlias = Literal["directory", "link", "other"]
#: Names in a directory, sorted, each with its kind.
Entries: TypeAlias = tuple[tuple[str, Kind], ...]


class Interest(Value):
    """What somebody who lists a directory wants to know: some (folded) names, all directories, or everything."""

    names: frozenset[str] = frozenset()
    directories: bool = False
    everything: bool = False

    def covers(self, name: str, directory: bool) -> bool:  # noqa: FBT001 - asked for every entry of a directory
        """Tell whether an entry matters."""
        return self.everything or (directory and self.directories) or name.casefold() in self.names

    def __hash__(self) -> int:
        """Hash by the names alone: listings are looked up with it, thousands for one plan."""
        return hash(self.names)


EVERYTHING: Final = Interest(everything=True)


class Terrain(Places, Protocol):
    """What the planner asks of a disk."""

    def entries(self, path: str, interest: Interest) -> Entries:
        """Return what is of interest in a directory (not a link to one), nothing if it cannot be listed."""


class Land(Disk):
    """The real disk, as it is at each question, placeholders apart.

    ``kept`` are the directories among these that were met since somebody took them from it. Who remembers answers must
    look after them: whatever is put into one makes another thing of it, and its name does not change.
    """

    def __init__(self) -> None:
        """Have met nothing yet."""
        self.kept: set[str] = set()

    def exists(self, path: str) -> bool:
        """Tell whether something is there, be it a link that leads nowhere."""
        try:
            return not self._is_kept(path, os.lstat(path))
        except (OSError, ValueError):
            return False

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory itself, not a link to one."""
        try:
            status = os.lstat(path)
            return stat.S_ISDIR(status.st_mode) and not self._is_kept(path, status)
        except (OSError, ValueError):
            return False

    def look(self, path: str) -> tuple[Kind | None, str | None]:
        """Return what is there, and the text of a link; ``None`` if nothing is."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                return "link", os.readlink(path)
            if self._is_kept(path, status):
                return None, None
        except (OSError, ValueError):
            return None, None
        return "directory" if stat.S_ISDIR(status.st_mode) else "other", None

    def _is_kept(self, path: str, status: os.stat_result) -> bool:
        name = path.rpartition("/")[2]
        if not is_marked(status, name):
            return is_placeholder(status, name)
        if not is_kept(path):
            return False
        self.kept.add(path)
        return True

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be listed."""
        return tuple(name for name, _ in self.entries(path, EVERYTHING))

    def entries(self, path: str, interest: Interest) -> Entries:
        """Return what is of interest in a directory, nothing if it cannot be listed."""
        found: list[tuple[str, Kind]] = []
        try:
            with os.scandir(path) as listed:
                for entry in listed:
                    name, directory = entry.name, entry.is_dir(follow_symlinks=False)
                    if not interest.covers(name, directory):
                        continue
                    kind: Kind = "directory" if directory else "link" if entry.is_symlink() else "other"
                    if kind != "link" and self._keeps(entry, name, directory):
                        continue
                    found.append((name, kind))
        except (OSError, ValueError):
            return ()
        return tuple(sorted(found))

    def _keeps(self, entry: os.DirEntry[str], name: str, directory: bool) -> bool:  # noqa: FBT001 - known already
        # The kinds are known from the listing; what is left is rare enough to be asked about.
        if not may_be_placeholder(name, directory) and (directory or entry.is_file(follow_symlinks=False)):
            return False
        try:
            return self._is_kept(entry.path, entry.stat(follow_symlinks=False))
        except OSError:
            return True
