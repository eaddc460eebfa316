"""The session's own temporary directory: private, there before the first command, gone after the last.

It lies in the user's private directory, which holds nothing else. The owner holds a lock (flock) on it: one whose
lock can be had belongs to nobody any more, and whoever starts next removes it. So no list of directories is needed,
and no crash can lose one.

What commands left in it is removed without following links and without recursion, since they choose its depth.
"""

from __future__ import annotations

import fcntl
import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.platforms.runtime_directory import runtime_directory
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Where temporary files go if TMPDIR does not say.
PLACES: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - used with care, see runtime_directory
PREFIX: Final = "tmp-"
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 100


class TemporaryDirectory:
    """A directory that lives as long as somebody holds its lock."""

    def __init__(self, path: str, descriptor: int) -> None:
        """Own a directory that is locked already; see ``make``."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def make(cls, environment: Mapping[str, str]) -> TemporaryDirectory:
        """Make one in the host's own place for such things."""
        return cls.make_in(base_directory(environment))

    @classmethod
    def make_in(cls, base: str) -> TemporaryDirectory:
        """Make one in a private directory of this user."""
        for _ in range(_TRIES):
            path = f"{base}/{PREFIX}{os.urandom(6).hex()}"
            descriptor = _make_locked(path)
            if descriptor is not None:
                return cls(path, descriptor)
        message = f"cannot make a directory in {base}"
        raise UnavailableError(message, "try again")

    def remove(self, expected: Iterable[str] = ()) -> None:
        """Remove it with all that is in it; may be called again.

        It is quicker if nothing is in it but what is ``expected``, by names in an order in which they can go; those of
        directories end with a slash. Nobody else may have made any of it: links would be followed.
        """
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                for name in expected:
                    (os.rmdir if name.endswith("/") else os.unlink)(name, dir_fd=descriptor)
            _remove(self.path, descriptor)
            os.close(descriptor)


def sweep(base: str) -> None:
    """Remove the directories of sessions that are dead from a private directory of this user."""
    for path in _candidates(base):
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path, descriptor)
        except OSError:
            continue
        finally:
            os.close(descriptor)


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it, as far as that can be done. Whatever is in it: no link is followed."""
    with suppress(OSError):
        descriptor = os.open(path, _FLAGS)
        try:
            _remove(path, descriptor)
        finally:
            os.close(descriptor)


def base_directory(environment: Mapping[str, str]) -> str:
    """Return the private directory in the host's own place for temporary files."""
    chosen = environment.get("TMPDIR", "")
    if chosen.startswith("/"):
        with suppress(UnavailableError):
            return runtime_directory((os.path.realpath(chosen),))
    return runtime_directory(PLACES)


def _make_locked(path: str) -> int | None:
    """Make and lock a directory; ``None`` if somebody was faster with the name, or took it for a dead one."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return None
    except OSError as error:
        message = f"cannot make the temporary directory {path}: {error.strerror}"
        raise UnavailableError(message, "make room, or set TMPDIR to another directory") from error
    try:
        os.chmod(path, 0o700)  # whatever the umask took away
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        return None  # a sweep of somebody else's was quicker
    except OSError:
        with suppress(OSError):
            os.rmdir(path)
        raise
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_still(path, descriptor):
            return descriptor
    os.close(descriptor)
    return None


def is_still(path: str, descriptor: int) -> bool:
    """Tell whether a name still leads to a directory that is held open."""
    try:
        named, held = os.lstat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def _candidates(base: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            # The name first: a crowded /tmp is not asked about each file in it.
            if entry.name.startswith(PREFIX) and _is_ours(entry):
                yield entry.path


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _remove(path: str, top: int) -> None:
    """Empty the directory level by level, drawing each directory up to the top, then remove it."""
    number = 0
    with suppress(OSError):
        os.rmdir(path)  # most are empty, and this needs no descriptor
        return
    prefix = f".{os.urandom(6).hex()}-"  # commands chose the names that are there, and cannot have foreseen this one
    with suppress(OSError):
        while entries := _entries(top):
            for name, is_directory in entries:
                number = _remove_entry(top, name, prefix, number, is_directory=is_directory)
        os.rmdir(path)


def _remove_entry(top: int, name: str, prefix: str, number: int, *, is_directory: bool) -> int:
    """Remove a file, or a directory after its own directories were drawn up; return the next free number."""
    if not is_directory:
        os.unlink(name, dir_fd=top)
        return number
    if _is_removed(name, top):
        return number
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, _FLAGS, dir_fd=top)
    try:
        for inner, is_inner_directory in _entries(folder):
            if not is_inner_directory:
                os.unlink(inner, dir_fd=folder)
            elif not _is_removed(inner, folder):
                with suppress(OSError):
                    os.chmod(inner, 0o700, dir_fd=folder)  # a directory moves only if it can be written
                os.rename(inner, f"{prefix}{number}", src_dir_fd=folder, dst_dir_fd=top)
                number += 1
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return number


def _is_removed(name: str, folder: int) -> bool:
    """Remove a directory if it is empty: many are, and nothing else must be known of it then."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
