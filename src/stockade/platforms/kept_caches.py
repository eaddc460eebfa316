"""The private caches that this user's projects have: found, measured, removed.

Rules: only what is this user's own counts; no link is followed. A cache is removed under an exclusive lock, so that no
running sandbox loses it, and under another name, so that a session that starts meanwhile makes a new one and a removal
that is cut short leaves no half cache. What such a removal left goes with the next one.
"""

from __future__ import annotations

import fcntl
import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.platforms.private_cache import (
    CACHE,
    FLAGS,
    caches_directory,
    folders,
    project_of,
    require,
    user_caches,
)
from stockade.platforms.temporary import is_still, remove_tree
from stockade.suppress import suppress
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_GONE: Final = ".gone-"
_BLOCK: Final = 512
#: Entries that are looked at to measure a cache.
MOST: Final = 200_000


class KeptCache(Value):
    """One cache: its directory, and the project that it belongs to, "" if it does not say."""

    folder: str
    project: str

    @property
    def path(self) -> str:
        """What commands see."""
        return f"{self.folder}/{CACHE}"

    @property
    def is_stale(self) -> bool:
        """Whether the project is gone."""
        return not os.path.lexists(self.project)


class Size(Value):
    """The room that a cache takes on the disk; not ``whole`` if there is more than was looked at."""

    bytes: int
    whole: bool = True

    def __str__(self) -> str:
        """Return it as people write it."""
        number, unit = float(self.bytes), "bytes"
        for unit in ("bytes", "KiB", "MiB", "GiB"):
            if number < 1024 or unit == "GiB":  # noqa: PLR2004 - what the units are made of
                break
            number /= 1024
        amount = f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        return amount if self.whole else f"at least {amount}"


def caches_of(home: str, environment: Mapping[str, str]) -> tuple[KeptCache, ...]:
    """Return all caches of this user, by name."""
    base = caches_directory(home, environment)
    return tuple(found for name in _names(base) if not name.startswith(".") and (found := _kept(f"{base}/{name}")))


def cache_of(project: str, home: str, environment: Mapping[str, str]) -> KeptCache | None:
    """Return the cache of one project, if there is one."""
    base = caches_directory(home, environment)
    for name in folders(project):
        found = _kept(f"{base}/{name}")
        if found is not None and found.project == project:
            return found
    return None


def obstacle(home: str, environment: Mapping[str, str]) -> str:
    """Return why no cache can be kept for this user, as far as that can be told without making one; "" if it can."""
    parent = os.path.realpath(user_caches(home, environment) or "/nonexistent")
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    try:
        require(parent)
    except (UnavailableError, OSError) as error:
        return str(getattr(error, "message", error))
    writable = os.access(parent, os.W_OK | os.X_OK)
    return "" if writable else f"no cache can be kept in {escape(parent)}: it cannot be written"


def size_of(cache: KeptCache, most: int = MOST) -> Size:
    """Measure a cache, looking at so many entries at most."""
    total, count, whole = 0, 0, True
    several: set[tuple[int, int]] = set()
    todo = [cache.path]
    while todo:
        folder = todo.pop()
        try:
            for status, path in _statuses(folder):
                count += 1
                if count > most:
                    return Size(total, whole=False)
                if stat.S_ISDIR(status.st_mode):
                    todo.append(path)
                elif status.st_nlink > 1:
                    if (status.st_dev, status.st_ino) in several:
                        continue
                    several.add((status.st_dev, status.st_ino))
                total += status.st_blocks * _BLOCK
        except OSError:
            whole = False  # commands choose modes and depth, and may be at work
    return Size(total, whole)


def remove(cache: KeptCache) -> bool:
    """Remove a cache; return whether it is gone, or was used by a running sandbox. Raises OSError if it cannot be."""
    try:
        descriptor = os.open(cache.folder, FLAGS)
    except FileNotFoundError:
        return True
    base = os.path.dirname(cache.folder)
    gone = f"{base}/{_GONE}{os.urandom(6).hex()}"
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_still(cache.folder, descriptor):
            os.rename(cache.folder, gone)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    remove_tree(gone)
    if os.path.lexists(gone):
        raise OSError(0, "something in it cannot be removed", gone)
    with suppress(OSError):  # there are others
        os.rmdir(base)
    return True


def sweep(home: str, environment: Mapping[str, str]) -> None:
    """Remove what removals that were cut short have left."""
    base = caches_directory(home, environment)
    for name in _names(base):
        if name.startswith(_GONE):
            remove_tree(f"{base}/{name}")


def _names(base: str) -> list[str]:
    try:
        if os.lstat(base).st_uid != os.geteuid():
            return []
        descriptor = os.open(base, FLAGS)
    except OSError:
        return []
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def _kept(folder: str) -> KeptCache | None:
    try:
        descriptor = os.open(folder, FLAGS)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return None
        return KeptCache(folder, project_of(descriptor) or "")
    finally:
        os.close(descriptor)


def _statuses(folder: str) -> Iterator[tuple[os.stat_result, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.stat(follow_symlinks=False), entry.path
