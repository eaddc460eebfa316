"""What mounts lie on: if the host puts something else in its place, the mount is gone, and no error says so.

Renaming a file over a mount point takes the mount away in every namespace. So a jail remembers which file or directory
each of its mounts lies on, and a path that something happened to is compared before the next command starts.

An inode number does not tell: file systems give that of a removed file to the next one at once, and a file whose name
was taken away may get it back without the mount. So a file is told by its last change too, and a directory, which
changes whenever something is made in it, by its birth (statx(2)).
"""

from __future__ import annotations

import ctypes
import os
import stat

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

Identity = tuple[bytes, bytes, bytes] | None

_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_WANTED: Final = 0xFFF  # STATX_BASIC_STATS and STATX_BTIME
_BIRTH: Final = 0x800
# Where struct statx has what is asked for.
_SIZE: Final = 256
_MASK: Final = slice(0, 4)
_MODE: Final = slice(28, 30)
_INODE: Final = slice(32, 40)
_BORN: Final = slice(80, 92)
_CHANGED: Final = slice(96, 108)
_DEVICE: Final = slice(136, 144)
#: So many beginnings are compared with a path sooner than its directories are listed: 0.2 microseconds against two.
_FEW: Final = 20
_libc: Final = ctypes.CDLL(None)


class Footing:
    """The files and directories under a jail's mounts, as they were before the mounts were laid."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Look at each path, without following a last link."""
        self._found: dict[str, Identity] = {path: identity(path) for path in paths}

    def holds(self, touched: set[str]) -> bool:
        """Tell whether, after something happened to these paths, every mount still lies on what it lay on."""
        return not touched or all(identity(path) == self._found[path] for path in self._on(touched))

    def _on(self, touched: set[str]) -> list[str]:
        """Return the paths that lead through these."""
        if "/" in touched:
            return list(self._found)
        if len(touched) > _FEW:
            return [path for path in self._found if not touched.isdisjoint(_ways(path))]
        beginnings = tuple(f"{path}/" for path in touched)
        return [path for path in self._found if path in touched or path.startswith(beginnings)]


def identity(path: str) -> Identity:
    """Return what tells a file from any other, ``None`` if nothing is there."""
    buffer = ctypes.create_string_buffer(_SIZE)
    if _libc.statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _WANTED, buffer) < 0:
        return None
    raw = buffer.raw
    born = stat.S_ISDIR(int.from_bytes(raw[_MODE], "little")) and int.from_bytes(raw[_MASK], "little") & _BIRTH
    return raw[_DEVICE], raw[_INODE], raw[_BORN if born else _CHANGED]


def _ways(path: str) -> list[str]:
    """Return a path and all directories above it."""
    ways = [path]
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        ways.append(path)
    return ways
