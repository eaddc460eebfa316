"""A disk as the planner asks it: the questions of ``Places``, and directories listed with the kinds of their entries.

One listing tells the kinds as well (``d_type``, readdir(3)), so that a walk needs no question per entry.
Where a sandbox only keeps a name from being made (``stockade.placeholder``), nothing is there for any plan, or a plan
would rest on what the other sandbox takes away when it ends.
"""

from __future__ import annotations

import os

from stockade.annotation import Final, Literal, Protocol, TypeAlias
from stockade.placeholder import CONTENTS, is_placeholder
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

    def covers(self, name: str, *, directory: bool) -> bool:
        """Tell whether an entry matters."""
        return self.everything or (directory and self.directories) or name.casefold() in self.names


EVERYTHING: Final = Interest(everything=True)


class Terrain(Places, Protocol):
    """What the planner asks of a disk."""

    def entries(self, path: str, interest: Interest) -> Entries:
        """Return what is of interest in a directory (not a link to one), nothing if it cannot be listed."""


class Land(Disk):
    """The real disk, as it is at each question, placeholders apart."""

    def exists(self, path: str) -> bool:
        """Tell whether something is there, be it a link that leads nowhere."""
        try:
            return not is_placeholder(os.lstat(path), path.rpartition("/")[2])
        except (OSError, ValueError):
            return False

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be listed."""
        return tuple(name for name, _ in self.entries(path, EVERYTHING))

    def entries(self, path: str, interest: Interest) -> Entries:
        """Return what is of interest in a directory, nothing if it cannot be listed."""
        found: list[tuple[str, Kind]] = []
        try:
            with os.scandir(path) as listed:
                for entry in listed:
                    directory = entry.is_dir(follow_symlinks=False)
                    if interest.covers(entry.name, directory=directory) and not _is_placeholder(entry):
                        kind: Kind = "directory" if directory else "link" if entry.is_symlink() else "other"
                        found.append((entry.name, kind))
        except (OSError, ValueError):
            return ()
        return tuple(sorted(found))


def _is_placeholder(entry: os.DirEntry[str]) -> bool:
    # The three kinds are known from the listing; what is left is rare enough to be asked about.
    if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
        return False
    if entry.is_file(follow_symlinks=False) and entry.name not in CONTENTS:
        return False
    try:
        return is_placeholder(entry.stat(follow_symlinks=False), entry.name)
    except OSError:
        return True
