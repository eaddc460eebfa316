"""A directory held by a descriptor, and what may be done through it while strangers change the disk.

Commands may still run while the host looks at what they left, and swap a directory for a link at any moment. So every
step goes from a descriptor to one name below it and follows no link: whatever happens meanwhile, nothing above the
first directory is ever reached. The rules:

- A directory is opened by ``O_PATH``, as git needs only the right to pass it. Listing it opens it once more.
- A file is opened only if it is regular, without waiting, and read up to a bound.
- Something is set aside under a name that was reserved first by making it, so that nothing is ever overwritten.

Source of truth: open(2), rename(2), path_resolution(7).
"""

from __future__ import annotations

import errno
import os
import stat

from stockade.annotation import Final, Self
from stockade.placeholder import is_kept
from stockade.policy.git_judgement import ASIDE, LARGEST
from stockade.suppress import suppress

_DIRECTORY: Final = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_RESERVED: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS: Final = 100
_COUNTED: Final = 50
# It became something else meanwhile, or somebody put something into the name that was reserved.
_CHANGED: Final = frozenset((errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY))


class Handle:
    """One directory. Close it, or use it in a ``with``."""

    def __init__(self, path: str, descriptor: int) -> None:
        """Take a descriptor over; ``path`` is where it was found."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def reach(cls, path: str) -> Handle | None:
        """Open the directory at an absolute path without links, ``None`` if there is none, or a link on the way."""
        handle = cls("", os.open("/", _DIRECTORY))
        for name in path.split("/"):
            if name:
                with handle:
                    below = handle.below(name)
                if below is None:
                    return None
                handle = below
        return handle

    def fileno(self) -> int:
        """Return the descriptor; only its path may be asked of it."""
        return self._descriptor

    def below(self, name: str) -> Handle | None:
        """Open a directory in this one, ``None`` if it is none."""
        try:
            return Handle(f"{self.path}/{name}", os.open(name, _DIRECTORY, dir_fd=self._descriptor))
        except (OSError, ValueError):
            return None

    def status(self, name: str) -> os.stat_result | None:
        """Return what is known of an entry, a link being itself; ``None`` if there is none."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except (OSError, ValueError):
            return None

    def is_kept(self, name: str) -> bool:
        """Tell whether an entry is there only to keep its name from being made."""
        try:
            return is_kept(name, self._descriptor)
        except (OSError, ValueError):
            return False

    def is_link(self, name: str) -> bool:
        """Tell whether an entry is a link."""
        status = self.status(name)
        return status is not None and stat.S_ISLNK(status.st_mode)

    def leads_to_ref(self, name: str) -> bool:
        """Tell whether an entry is a link that git takes for a symbolic ref."""
        try:
            text = os.readlink(name, dir_fd=self._descriptor)
        except OSError:
            return False
        return text.startswith("refs/") and ".." not in text

    def changed(self) -> int:
        """Return when it was last changed or moved, in nanoseconds of the epoch."""
        return os.fstat(self._descriptor).st_ctime_ns

    def identity(self) -> tuple[int, int]:
        """Return device and inode."""
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino

    def content(self, name: str, limit: int = LARGEST) -> bytes | None:
        """Return what a regular file holds, ``None`` if it is none, is too long or cannot be read."""
        try:
            descriptor = os.open(name, _READ, dir_fd=self._descriptor)
        except (OSError, ValueError):
            return None
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
                return None
            return _all_of(descriptor, about.st_size, limit)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def names(self, most: int = 1000) -> tuple[str, ...] | None:
        """Return the names in it, ``None`` if it cannot be listed or has more than ``most``."""
        try:
            descriptor = os.open(".", _LISTED, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            with os.scandir(descriptor) as listed:
                found = tuple(entry.name for entry, _ in zip(listed, range(most + 1), strict=False))
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return found if len(found) <= most else None

    def kinds(self, most: int) -> tuple[list[str], list[str]] | None:
        """Return the names of what is neither file, directory nor socket, and those of the directories.

        ``None`` if it cannot be listed or has more than ``most`` entries. One that a command has closed is opened for
        a while: git only needs to pass it.
        """
        try:
            try:
                return _kinds(self._descriptor, most)
            except PermissionError:
                with self.writable():
                    return _kinds(self._descriptor, most)
        except OSError:
            return None

    def writable(self) -> _Writable:
        """Return what makes the directory writable to its owner for a while: a command may have closed it."""
        return _Writable(self._descriptor)

    def set_aside(self, name: str, end: str = "") -> str:
        """Give an entry a name that no program looks for, and return that; raise ``OSError`` if it cannot be.

        Where a command can have git look for any name but some, ``end`` makes it one of these.
        """
        for attempt in range(1, _ATTEMPTS):
            # A command may have taken the first names; the later ones nobody can guess.
            number = attempt if attempt <= _COUNTED else int.from_bytes(os.urandom(6), "big")
            aside = f"{name}{ASIDE}{number}{end}"
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
            directory = stat.S_ISDIR(status.st_mode)
            try:
                self._reserve(aside, directory=directory)
            except FileExistsError:
                continue
            try:
                os.rename(name, aside, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            except OSError as error:
                self._release(aside, directory=directory)
                if error.errno not in _CHANGED:
                    raise
            else:
                return aside
        message = "it changes too fast"
        raise OSError(message)

    def close(self) -> None:
        """Let go; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go."""
        self.close()

    def _reserve(self, name: str, *, directory: bool) -> None:
        if directory:
            os.mkdir(name, 0o700, dir_fd=self._descriptor)
        else:
            os.close(os.open(name, _RESERVED, 0o600, dir_fd=self._descriptor))

    def _release(self, name: str, *, directory: bool) -> None:
        with suppress(OSError):
            if directory:
                os.rmdir(name, dir_fd=self._descriptor)
            else:
                os.unlink(name, dir_fd=self._descriptor)


class _Writable:
    """Gives the owner of an open directory the right to change it, and takes it back."""

    def __init__(self, descriptor: int) -> None:
        self._path = f"/proc/self/fd/{descriptor}"
        self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)

    def __enter__(self) -> None:
        """Open it."""
        self._set(self._mode | stat.S_IRWXU)

    def __exit__(self, *_: object) -> None:
        """Close it again."""
        self._set(self._mode)

    def _set(self, mode: int) -> None:
        if self._mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(OSError):  # it is another user's: what is to be done in it will say so
                os.chmod(self._path, mode)


def _kinds(directory: int, most: int) -> tuple[list[str], list[str]] | None:
    strange: list[str] = []
    directories: list[str] = []
    listed = os.open(".", _LISTED, dir_fd=directory)
    try:
        with os.scandir(listed) as entries:
            for number, entry in enumerate(entries):
                if number >= most:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                elif not entry.is_file(follow_symlinks=False) and not _is_socket(entry):
                    strange.append(entry.name)
    finally:
        os.close(listed)
    return strange, directories


def _is_socket(entry: os.DirEntry[str]) -> bool:
    return not entry.is_symlink() and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


def _all_of(descriptor: int, size: int, limit: int) -> bytes | None:
    """Read a file to its end, which may move meanwhile."""
    parts = [os.read(descriptor, size + 1)]
    total = len(parts[0])
    while parts[-1]:
        if total > limit:
            return None
        parts.append(os.read(descriptor, size + 65536))
        total += len(parts[-1])
    return parts[0] if len(parts) <= 2 else b"".join(parts)  # noqa: PLR2004 (the last one is empty)
