"""A project's private cache: what package managers inside keep from one session to the next.

In the user's cache directory lies ``stockade-projects``, and in it one directory for each project that commands ran in:

- ``<name>-<hash>``, of the project's path. Every sandbox of the project holds a shared lock (flock) on it; who removes
  it needs an exclusive one. So nothing is taken away from a command that runs, and no crash leaves a lock.
- ``project`` in it holds the path, so that two paths with one hash get two caches.
- ``cache`` in it is what commands see and write. All else below ``stockade-projects`` is hidden from them.

Rules: the user's cache directory may be reached by a link that the user made, and is this user's own; below it no link
is followed and everything is this user's, open to nobody else. Where that cannot be had, nothing is made. A cache in
which nothing was put is removed with the last session, and so is the user's cache directory if that session made it
and it is empty.
Source of truth: the XDG Base Directory Specification, flock(2).
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.platforms.temporary import is_still
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "stockade-projects"
CACHE: Final = "cache"
PROJECT: Final = "project"
FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PRIVATE: Final = 0o700
_LONGEST: Final = 65536
_SUFFIXES: Final = ("", "-1", "-2", "-3")
_TRIES: Final = 200
_AGAIN: Final = 20
_PAUSE: Final = 0.005
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_LONGEST_NAME: Final = 40


class PrivateCache:
    """A cache that this process holds; ``path`` is for commands, ``base`` is to be hidden from them."""

    def __init__(self, base: str, folder: str, descriptor: int, *, made: bool = False) -> None:
        """Own a directory that is locked already; see ``hold``. The user's cache directory may be ``made`` for it."""
        self.base = base
        self._made = made
        self.path = f"{base}/{folder}/{CACHE}"
        self._folder = f"{base}/{folder}"
        self._descriptor = descriptor

    @classmethod
    def hold(cls, project: str, home: str, environment: Mapping[str, str]) -> PrivateCache:
        """Return the cache of a project, made if there is none. Raises UnavailableError if it cannot be had."""
        parent = user_caches(home, environment)
        if not parent:
            message = "there is no home directory to keep a cache in"
            raise UnavailableError(message, "set HOME, or XDG_CACHE_HOME")
        base, made = "", False
        for left in reversed(range(_AGAIN)):
            try:
                base, new = _base(parent)
                made = made or new
                for folder in folders(project):
                    descriptor = _locked(f"{base}/{folder}", project)
                    if descriptor is not None:
                        return cls(base, folder, descriptor, made=made)
                break
            except OSError as error:
                if left and isinstance(error, FileNotFoundError):
                    continue  # another session ends, and has removed what was empty
                message = f"no cache can be kept in {escape(base or parent)}: {error.strerror}"
                raise UnavailableError(message, "make room, or set XDG_CACHE_HOME to a directory of yours") from error
        message = f"no cache can be kept in {escape(base)}: other projects have its name"
        raise UnavailableError(message, "run: stockade clean --all")

    def release(self) -> None:
        """Let go of it; one that is empty is removed. May be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        with suppress(OSError):  # another sandbox holds it, or something is in it
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(CACHE, dir_fd=descriptor)
            os.unlink(PROJECT, dir_fd=descriptor)
            os.rmdir(self._folder)
            os.rmdir(self.base)
            if self._made:
                os.rmdir(os.path.dirname(self.base))
        os.close(descriptor)


def user_caches(home: str, environment: Mapping[str, str]) -> str:
    """Return the directory where this user's programs keep their caches; "" if there is no home."""
    chosen = environment.get("XDG_CACHE_HOME", "")
    if chosen.startswith("/"):
        return chosen
    if not home.startswith("/"):
        return ""
    return f"{home}/Library/Caches" if sys.platform == "darwin" else f"{home.rstrip('/')}/.cache"


def caches_directory(home: str, environment: Mapping[str, str]) -> str:
    """Return the directory of all private caches of this user, by its real path; "" if there is no home."""
    parent = user_caches(home, environment)
    return f"{os.path.realpath(parent)}/{NAME}" if parent else ""


def folders(project: str) -> tuple[str, ...]:
    """Return the names that a project's directory may have, the usual one first."""
    plain = "".join(char if char in _LETTERS else "_" for char in os.path.basename(project))[:_LONGEST_NAME]
    whole = f"{plain.lstrip('.') or 'root'}-{_hash(os.fsencode(project)):016x}"
    return tuple(f"{whole}{suffix}" for suffix in _SUFFIXES)


def _hash(text: bytes) -> int:
    """Return FNV-1a, 64 bits: hashlib takes milliseconds to import, and ``project`` tells equal ones apart."""
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _base(parent: str) -> tuple[str, bool]:
    """Return the directory of all caches by its real path, and whether the one around it was made for it, too."""
    place, made = os.path.realpath(parent), False
    with suppress(FileExistsError):
        if not os.path.exists(place):
            require(os.path.dirname(place))
            os.mkdir(place, _PRIVATE)
            made = True
    require(place)
    base = f"{place}/{NAME}"
    try:
        status = os.lstat(base)
    except FileNotFoundError:
        _make(base)
        status = os.lstat(base)
    if not _is_private(status):
        message = f"no cache can be kept in {escape(base)}: it is no directory that belongs to you alone"
        raise UnavailableError(message, "remove it, or chmod it to 700")
    return base, made


def require(place: str) -> None:
    """Refuse a directory of somebody else, or one that others may write."""
    status = os.stat(place)
    # Where each user has a group of the same number, nobody else is in it.
    others = stat.S_IWOTH if status.st_gid == status.st_uid else stat.S_IWOTH | stat.S_IWGRP
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & others:
        message = f"no cache can be kept in {escape(place)}: it is not yours, or others may write it"
        raise UnavailableError(message, "set HOME or XDG_CACHE_HOME to a directory of yours, and chmod go-w it")


def _make(path: str) -> None:
    with suppress(FileExistsError):  # by another process of ours, just now
        os.mkdir(path, _PRIVATE)
        os.chmod(path, _PRIVATE)  # whatever the umask took away


def _is_private(status: os.stat_result) -> bool:
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return mine and stat.S_IMODE(status.st_mode) & 0o777 == _PRIVATE


def _locked(path: str, project: str) -> int | None:
    """Return a descriptor that holds a shared lock on the project's directory; ``None`` if it is another's."""
    for _ in range(_TRIES):
        _make(path)
        try:
            descriptor = os.open(path, FLAGS)
        except FileNotFoundError:
            continue  # somebody removes it, or has
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if is_still(path, descriptor):
                if _is_private(os.fstat(descriptor)) and _is_of(descriptor, project):
                    return descriptor
                os.close(descriptor)
                return None
        except BlockingIOError:
            time.sleep(_PAUSE)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _is_of(directory: int, project: str) -> bool:
    """Tell whether a directory is this project's, and has what it needs then."""
    known = project_of(directory)
    if known is None:
        # The name is written before anything can be put into the cache.
        with suppress(FileNotFoundError):
            os.stat(CACHE, dir_fd=directory, follow_symlinks=False)
            return False
        _write_project(directory, project)
    elif known != project:
        return False
    with suppress(FileExistsError):
        os.mkdir(CACHE, _PRIVATE, dir_fd=directory)
        os.chmod(CACHE, _PRIVATE, dir_fd=directory)
    status = os.stat(CACHE, dir_fd=directory, follow_symlinks=False)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def project_of(directory: int) -> str | None:
    """Return the project whose directory this is, if it says."""
    try:
        file = os.open(PROJECT, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        return os.fsdecode(os.read(file, _LONGEST))
    finally:
        os.close(file)


def _write_project(directory: int, project: str) -> None:
    temporary = f".{os.urandom(6).hex()}"
    file = os.open(temporary, _NEW, 0o600, dir_fd=directory)
    try:
        with open(file, "wb") as stream:
            stream.write(os.fsencode(project))
        os.rename(temporary, PROJECT, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
