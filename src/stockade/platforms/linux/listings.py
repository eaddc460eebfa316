"""Directories listed for commands without the placeholders in them.

In a jail whose root directory holds nothing but placeholders (``bare_roots``), the supervisor is asked about every
``getdents``. If the caller's descriptor is such a directory, the supervisor takes a copy of it and lists it itself.
Both share one position, so that the caller goes on where this ends. The names of placeholders are left out, the rest is
put into the caller's memory. Every other directory is left to the kernel.

A name that leads to a directory is left out only as long as that is empty, as commands see it: ``.git`` is listed
after ``git init``. The ``.gitignore`` of a cover counts as nothing.

Rules: this is for the eye and no wall, so that whatever cannot be done is left to the kernel, which lists everything.
An error of the call itself is the caller's, and its position is where it was before. Nobody waits for long: one answer
is at most ``_ROOM`` bytes, whatever was asked for, and the directory is read once more at most for each name that is
left out.
Source of truth: getdents(2), pidfd_getfd(2), ``fs/readdir.c``.
"""

from __future__ import annotations

import ctypes
import os
from errno import EFAULT

from stockade.platforms.linux import glance, notification
from stockade.platforms.linux.calls import LISTS
from stockade.platforms.linux.connection import copy_of
from stockade.platforms.linux.memory_writer import write_bytes
from stockade.platforms.linux.notification import as_int
from stockade.suppress import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.notification import Notification
    from stockade.platforms.linux.syscalls import Arch

_LENGTH = 16  # behind a number and a position
#: So much is listed at once. Who reads a directory of thousands asks oftener, and others have their turn in between.
_ROOM = 4096
_FEW = 512  # the own names of a directory, and at least one more
_NOTHING = (b".", b"..", b".gitignore")  # the last is all that a cover in a repository holds
_PERHAPS_DIRECTORIES = (4, 0)  # DT_DIR, DT_UNKNOWN
_WORD = 0xFFFF_FFFF
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Reads that show whether a directory is empty: what counts as nothing may come name by name, and then the end.
_READS = 4

_libc = ctypes.CDLL(None, use_errno=True)
# By the C library's syscall(3), with its types said once: that takes half the time.
_call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long, use_errno=True)(
    ctypes.cast(_libc.syscall, ctypes.c_void_p).value or 0
)
_buffer = ctypes.create_string_buffer(_ROOM)
_buffer_at = ctypes.addressof(_buffer)


class _Place:
    """One directory, open to be named, and what is not listed in it."""

    __slots__ = ("descriptor", "names")

    def __init__(self, descriptor: int, names: list[bytes]) -> None:
        self.descriptor = descriptor
        self.names = frozenset(names)


class Listings:
    """Lists for callers."""

    def __init__(self, unlisted: list[list[bytes]], arch: Arch) -> None:
        """Take lists of a directory and of the names in it that are not listed; ``open`` finds them."""
        self._unlisted = unlisted
        numbers = arch.numbers()
        #: Where in an entry its name begins, for each call that lists.
        self.calls = {numbers[name]: start for name, start in LISTS.items() if name in numbers}
        self._emptiness = numbers["getdents64"]
        self._places: dict[bytes, _Place] = {}

    def open(self) -> None:
        """Find the directories as they are now in the mounts of this process, which must be those of the commands."""
        own = os.getpid()
        for directory, *names in self._unlisted:
            with suppress(OSError):  # then it is listed as it is
                # Held open: no other directory can get its number.
                descriptor = os.open(directory, os.O_PATH | _DIRECTORY)
                self._places[glance.identity(b"%d/fd/%d" % (own, descriptor))] = _Place(descriptor, names)
        self._places.pop(b"", None)

    def answer(self, listener: int, asked: Notification) -> None:
        """List for a caller what is one of the directories, and let the kernel list any other."""
        thread, number = asked[notification.THREAD], as_int(asked[notification.ARGUMENTS])
        try:
            if glance.identity(b"%d/fd/%d" % (thread, number)) in self._places:
                descriptor = copy_of(thread, number)
                try:
                    # The number may stand for another file by now.
                    place = self._places.get(glance.identity(b"%d/fd/%d" % (os.getpid(), descriptor)))
                    if place is not None and notification.is_valid(listener, asked[notification.ID]):
                        self._answer(listener, asked, descriptor, place)
                        return
                finally:
                    os.close(descriptor)
        except (OSError, ValueError, LookupError):
            pass  # the caller is gone, or has nothing open by that number: then the kernel says so
        notification.let_go(listener, asked[notification.ID])

    def _answer(self, listener: int, asked: Notification, descriptor: int, place: _Place) -> None:
        """Put the next entries into the caller's memory, or answer why not. Raises if the caller cannot be reached."""
        identity, thread = asked[notification.ID], asked[notification.THREAD]
        _, address, count, *_ = asked[notification.ARGUMENTS :]
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        heard, refused = False, 0
        try:
            try:
                listed = self._list(asked[notification.NUMBER], descriptor, count & _WORD, place)
            except OSError as error:
                refused = error.errno or EFAULT
            else:
                refused = _put(thread, address, listed)
                heard = not refused and notification.give(listener, identity, len(listed))
        finally:
            if not heard:
                # It hears an error, or was interrupted and asks again.
                with suppress(OSError):
                    os.lseek(descriptor, before, os.SEEK_SET)
        if refused:
            notification.answer(listener, identity, refused)

    def _list(self, call: int, descriptor: int, count: int, place: _Place) -> bytes:
        """Return the next entries, nothing at the end."""
        found = b""
        for _ in range(len(place.names) + 1):
            found = _entries(call, descriptor, min(count, _ROOM))
            listed = self._without(place, found, self.calls[call])
            if listed or not found:
                return listed
        return found  # somebody moves the position back all the time

    def _without(self, place: _Place, entries: bytes, start: int) -> bytes:
        """Return entries without those that are not listed."""
        if not any(name in entries for name in place.names):
            return entries
        return b"".join(
            entry
            for entry in _split(entries)
            if (name := _name(entry, start)) not in place.names
            or (_kind(entry, start) in _PERHAPS_DIRECTORIES and self._holds_something(place, name))
        )

    def _holds_something(self, place: _Place, name: bytes) -> bool:
        """Tell whether a name is a directory with anything in it; nothing else that has such a name does."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=place.descriptor)
        except OSError:
            return False
        try:
            for _ in range(_READS):
                found = _entries(self._emptiness, descriptor, _FEW)
                if any(_name(entry, LISTS["getdents64"]) not in _NOTHING for entry in _split(found)):
                    return True
                if not found:
                    return False
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False


def _entries(call: int, descriptor: int, room: int) -> bytes:
    """Return the next entries of a directory, as many as there is room for. Raises what the kernel answers."""
    length = int(_call(call, descriptor, _buffer_at, room))
    if length < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return _buffer.raw[:length]


def _put(thread: int, address: int, content: bytes) -> int:
    """Put bytes into a caller's memory; return the error if there is no room. Raises if it cannot be reached at all."""
    try:
        write_bytes(thread, address, content)
    except OSError as error:
        if error.errno != EFAULT:
            raise
        return EFAULT
    return 0


def _split(entries: bytes) -> list[bytes]:
    """Return entries one by one."""
    found, at = [], 0
    while at < len(entries):
        length = int.from_bytes(entries[at + _LENGTH : at + _LENGTH + 2], "little")
        found.append(entries[at : at + length])
        at += length
    return found


def _name(entry: bytes, start: int) -> bytes:
    return entry[start : entry.index(b"\0", start)]


def _kind(entry: bytes, start: int) -> int:
    """Return the kind of what an entry names. A mount over it is a directory if and only if that is one."""
    return entry[start - 1] if start == LISTS["getdents64"] else entry[-1]
