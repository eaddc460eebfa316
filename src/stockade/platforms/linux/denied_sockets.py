"""Which unix sockets no command may connect to, asked about the very file that a ``connect`` means.

A rule is about a place, and a file may have more names than one: by a mount of the host, by a hard link, or because a
command has moved it within a place that it may write. So a file is refused

1. by its path, or by the path as the caller wrote it;
2. if it is what a denied path leads to now, whatever it is called here;
3. if its server has bound it to a denied path: the kernel remembers that name, and nobody can change it;
4. if a rule reaches into places that commands can write, the file lies in such a place, and it is not called as its
   server called it: then a command may have moved it there.

What the session itself listens on is the session's own by whatever other name: for it, only the first two count.

Rules: it takes no time that others must wait for: a denied path is looked up in one call, and walked only where no
command can put links; a path that leads nowhere is not the file; what cannot be told is refused.
Source of truth: unix(7), sock_diag(7), openat2(2).
"""

from __future__ import annotations

import os
from errno import ELOOP

from stockade.platforms.linux import glance
from stockade.platforms.linux.walk import DearPathError, walk
from stockade.policy.path_pattern import PathPattern, is_at_or_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class DeniedSockets:
    """The rules, and the host's root from which denied paths are looked up."""

    def __init__(self, texts: Iterable[bytes], writable: Iterable[bytes], root: int) -> None:
        """Take the patterns, the places that commands can write, and the host's root, which stays the caller's."""
        self._patterns = [PathPattern.parse(os.fsdecode(text), cwd="/", home="/") for text in texts]
        self._root = root
        places = [os.fsdecode(place) for place in writable]
        #: Denied paths, and whether links on the way are nobody's but the host's.
        self._literals = {
            os.fsencode(pattern.path): not any(is_at_or_below(pattern.path, place) for place in places)
            for pattern in self._patterns
            if not pattern.is_glob
        }
        starts = [pattern.static_prefix for pattern in self._patterns]
        #: Whether a command may be able to move a denied socket.
        self.reach_writable = any(
            is_at_or_below(start, place) or is_at_or_below(place, start) for start in starts for place in places
        )

    def cover(self, path: bytes) -> bool:
        """Tell whether a rule is about a path, which is absolute; ``.`` and ``..`` in it are taken as text."""
        # Two slashes at the beginning are one to the kernel, and two to normpath.
        text = os.path.normpath("/" + os.fsdecode(path).lstrip("/"))
        return any(pattern.depth_on(text) is not None for pattern in self._patterns)

    def refusal(self, thread: int, written: bytes, path: bytes, about: os.stat_result) -> bytes:
        """Return the denied path that a caller means, empty if it means none.

        ``written`` is the path in its words, made absolute; ``path`` where that leads, empty if the file has no name
        any more; ``about`` what is known of the file.
        """
        if path and self.cover(path):
            return path
        # After a link, ".." is not what it is as text. By its place the file is judged anyway.
        if written != path and b"/../" not in written and self.cover(written):
            return written
        for literal, still in self._literals.items():
            there = self._look_up(literal, thread, follow=still)
            if there is not None and (there.st_dev, there.st_ino) == (about.st_dev, about.st_ino):
                return literal
        return b""

    def disguise(self, thread: int, names: set[bytes], path: bytes, place: bytes, *, still: bool = False) -> bytes:
        """Return the path by which a server of the host is to be refused, empty if it is not.

        ``names`` are those that it was bound to, as far as they are known; ``path`` was judged by itself; ``place``
        leads to the file; ``still``: no command can have moved it.
        """
        for name in names - {path}:
            if name[:1] == b"/" and (self.cover(name) or self.cover(self._resolved(name, thread))):
                return name
        if self.reach_writable and path not in names and not (still or _is_still(place)):
            return path
        return b""

    def _look_up(self, path: bytes, thread: int, *, follow: bool) -> os.stat_result | None:
        """Return what is at a path of the host now; where there are links to follow, in the view of the caller."""
        found = glance.find(self._root, path.lstrip(b"/") or b".")
        if found < 0:
            return _walked(path, thread)[1] if follow and found == -ELOOP else None
        try:
            return os.fstat(found)
        finally:
            os.close(found)

    def _resolved(self, name: bytes, thread: int) -> bytes:
        """Return a name without links in what is above it."""
        above, _, last = name.rpartition(b"/")
        found = glance.find(self._root, above.lstrip(b"/") or b".")
        if found >= 0:
            os.close(found)
        if found != -ELOOP:
            return name
        return _walked(above, thread)[0] + b"/" + last


def _is_still(place: bytes) -> bool:
    """Tell whether a file lies on a read-only mount, so that no command can have moved it."""
    try:
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _walked(path: bytes, thread: int) -> tuple[bytes, os.stat_result | None]:
    """Walk a path of a thread; return where it ends, and what is there."""
    try:
        with walk(thread, b"cwd", path) as found:
            if found.error:
                return path, None
            place = glance.real_path(b"%d/fd/%d" % (os.getpid(), found.target))
            return place or path, os.fstat(found.target)
    except DearPathError:
        return path, None
