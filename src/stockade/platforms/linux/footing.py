"""What mounts lie on: if the host puts something else in its place, the mount is gone, and no error says so.

Renaming a file over a mount point takes the mount away in every namespace. So a jail remembers which file or directory
each of its mounts lies on, and a path that something happened to is compared before the next command starts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Identity = tuple[int, int] | None


class Footing:
    """The files and directories under a jail's mounts, as they were before the mounts were laid."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Look at each path, without following a last link."""
        self._found: dict[str, Identity] = {path: identity(path) for path in paths}
        self._ways = {way for path in self._found for way in _ways(path)}

    def holds(self, touched: set[str]) -> bool:
        """Tell whether, after something happened to these paths, every mount still lies on what it lay on."""
        if not touched or touched.isdisjoint(self._ways):
            return True
        return all(
            identity(path) == found for path, found in self._found.items() if not touched.isdisjoint(_ways(path))
        )


def identity(path: str) -> Identity:
    """Return what tells a file from any other, ``None`` if nothing is there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _ways(path: str) -> list[str]:
    """Return a path and all directories above it."""
    ways = [path]
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        ways.append(path)
    return ways
