"""The record of the placeholders in one directory: a file that is both a lock and a journal.

As a lock: whoever relies on the placeholders holds it shared (flock(2)), so a process that dies lets go of it. Who
gets it exclusively is alone, may remove what the journal names, and then removes the record. A lock is only
worth something while the record still has its name; who locks one without a name opens it anew.

As a journal: what is about to be made is appended before it is made. Entries stand between zero bytes, so that one
that was cut short spoils no other: ``P`` and the path of the directory, ``T`` and a temporary name, ``D`` and the
names of directories that are about to be made, ``N`` and an inode number with the names that it gets, each after a
slash. What is not an entry is skipped. The journal is not flushed: it must survive the death of processes, not of the
machine.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPORARY: Final = ".stockade-"
PATIENCE: Final = 10.0
_HEX: Final = frozenset("0123456789abcdef")
_TEMPORARY_DIGITS: Final = 16
_INODE_DIGITS: Final = 20
_NO_NAMES: Final = frozenset({"", ".", ".."})
_LIMIT: Final = 1 << 20
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCKLESS: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class Journal(Value):
    """What a journal says: paths that the directory had, temporary names, and nodes as (inode number, name).

    ``intended`` are names of directories whose inode number nobody knew yet.
    """

    paths: tuple[str, ...] = ()
    temporaries: tuple[str, ...] = ()
    nodes: frozenset[tuple[int, str]] = frozenset()
    intended: frozenset[str] = frozenset()


def path_entry(path: str) -> bytes:
    """Write the path of the directory."""
    return b"\0P%b\0" % os.fsencode(path)


def temporary_entry(name: str) -> bytes:
    """Write a temporary name."""
    return b"\0T%b\0" % os.fsencode(name)


def intended_entry(names: Iterable[str]) -> bytes:
    """Write the names at which directories are about to be made."""
    return b"\0D%b\0" % os.fsencode("/".join(names))


def nodes_entry(inode: int, names: Iterable[str]) -> bytes:
    """Write the names that one inode is about to get."""
    return b"\0N%b\0" % os.fsencode("/".join((str(inode), *names)))


def new_temporary() -> str:
    """Return a name that nothing else has."""
    return TEMPORARY + os.urandom(_TEMPORARY_DIGITS // 2).hex()


def read(data: bytes) -> Journal:
    """Read what is there; skip what is no entry."""
    if not data:
        return Journal()
    paths: dict[str, None] = {}
    temporaries: dict[str, None] = {}
    intended: set[str] = set()
    nodes: set[tuple[int, str]] = set()
    for entry in os.fsdecode(data).split("\0"):
        kind, text = entry[:1], entry[1:]
        if kind == "P" and text.startswith("/"):
            paths[text] = None
        elif kind == "T" and _is_temporary(text):
            temporaries[text] = None
        elif kind == "D":
            intended.update(name for name in text.split("/") if name not in _NO_NAMES)
        elif kind == "N":
            number, *names = text.split("/")
            if _is_number(number):
                inode = int(number)
                nodes.update((inode, name) for name in names if name not in _NO_NAMES)
    return Journal(tuple(paths), tuple(temporaries), frozenset(nodes), frozenset(intended))


def _is_number(text: str) -> bool:
    return 0 < len(text) <= _INODE_DIGITS and text.isascii() and text.isdigit()


def _is_temporary(text: str) -> bool:
    start, digits = text[: len(TEMPORARY)], text[len(TEMPORARY) :]
    return start == TEMPORARY and len(digits) == _TEMPORARY_DIGITS and _HEX.issuperset(digits)


def record_name(device: int, inode: int) -> str:
    """Return the file name of the record of a directory."""
    return f"{device:x}-{inode:x}"


def inode_of(name: str) -> int | None:
    """Return the inode number of the directory that a record is about; ``None`` if this is no record's name."""
    device, _, inode = name.partition("-")
    if not (device and inode and _HEX.issuperset(device + inode)):
        return None
    return int(inode, 16)


def lock(descriptor: int, operation: int, patience: float) -> bool | None:
    """Lock an open file, waiting no longer than that; ``None`` where there are no locks."""
    deadline, pause = 0.0, 0.0002
    while True:
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            deadline = deadline or now + patience
            if now >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.01)
        except OSError as error:
            if error.errno in _LOCKLESS:
                return None
            raise
        else:
            return True


class Record:
    """A record that is open, and locked by this process."""

    __slots__ = ("descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        """Take over an open file; see ``shared`` and ``exclusive``."""
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def shared(cls, path: str, patience: float = PATIENCE) -> Record:
        """Open or make a record and hold it together with others."""
        deadline = time.monotonic() + patience
        while True:
            record = cls(path, os.open(path, _FLAGS | os.O_CREAT, 0o600))
            try:
                locked = lock(record.descriptor, fcntl.LOCK_SH, max(0, deadline - time.monotonic()))
                if locked and record.is_linked():
                    return record
            except BaseException:
                record.close()
                raise
            record.close()
            if not locked or time.monotonic() >= deadline:
                message = f"{path} cannot be locked"
                raise UnavailableError(message, "End the process that holds it (see /proc/locks), then try again.")

    @classmethod
    def exclusive(cls, path: str) -> Record | None:
        """Open a record that nobody holds; ``None`` if somebody does, or it is gone, or no plain file."""
        try:
            record = cls(path, os.open(path, _FLAGS))
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(record.descriptor).st_mode) and record.is_alone():
            return record
        record.close()
        return None

    def is_linked(self) -> bool:
        """Tell whether the record still has its name."""
        return os.fstat(self.descriptor).st_nlink > 0

    def is_alone(self) -> bool:
        """Try to hold the record exclusively; if that fails it is not held at all any more."""
        return lock(self.descriptor, fcntl.LOCK_EX, 0) is True and self.is_linked()

    def read(self) -> Journal:
        """Read the journal as it is now."""
        return read(os.pread(self.descriptor, _LIMIT, 0))

    def append(self, entries: bytes) -> None:
        """Add entries, all or none of them as far as others can see."""
        written = os.write(self.descriptor, entries)
        if written != len(entries):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def remove(self) -> None:
        """Take the record's name away; only for who holds it exclusively."""
        os.unlink(self.path)

    def close(self, *, unlock: bool = True) -> None:
        """Close it, and let go of the lock even if a forked process has a copy of the descriptor."""
        if unlock:
            lock(self.descriptor, fcntl.LOCK_UN, 0)
        os.close(self.descriptor)
