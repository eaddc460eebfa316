"""The kernel's own word on what changed in a directory (inotify(7)), through the C library.

Of a directory, only names that come, go or are renamed are watched. What is written into a file is watched where that
file is named.
"""

from __future__ import annotations

import ctypes
import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4
_CLOSE_WRITE: Final = 0x8
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_UNMOUNT: Final = 0x2000
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLY_DIRECTORY: Final = 0x0100_0000
_NO_FOLLOW: Final = 0x0200_0000
_DIRECTORY: Final = 0x4000_0000
_WATCHED: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
# When a name of a file goes, its attributes change (the number of links); it goes itself when it is closed.
# What is written into mapped memory is told when the last of those who have it open for writing is gone.
_WATCHED_IN_FILE: Final = _MODIFY | _ATTRIB | _CLOSE_WRITE | _DELETE_SELF | _MOVE_SELF
_HEADER: Final = 16
_READ: Final = 65536
_USUAL_QUEUE: Final = 16384
_QUEUE_LIMIT: Final = "/proc/sys/fs/inotify/max_queued_events"


class Event(Value):
    """Something happened to ``name`` in a directory, or to the directory itself if there is no name."""

    watch: int
    name: str
    directory: bool = False
    lost: bool = False
    overflow: bool = False


class Inotify:
    """One queue of events."""

    def __init__(self) -> None:
        """Open the queue; raise ``OSError`` where there is none to be had."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, path: str) -> int:
        """Watch a directory, not through a link; raise ``OSError`` if that cannot be."""
        return self._add(path, _WATCHED | _ONLY_DIRECTORY | _NO_FOLLOW)

    def add_file(self, path: str) -> int:
        """Watch what is written into a file, not through a link; raise ``OSError`` if that cannot be."""
        return self._add(path, _WATCHED_IN_FILE | _NO_FOLLOW)

    def remove(self, watch: int) -> None:
        """Watch a directory no more; one that is gone is no error."""
        self._libc.inotify_rm_watch(self._descriptor, watch)

    def read(self) -> list[Event]:
        """Return what has happened since, without waiting."""
        events: list[Event] = []
        longest = _USUAL_QUEUE
        while True:
            try:
                events += _events(os.read(self._descriptor, _READ))
            except BlockingIOError:
                return events
            # A queue has room for so many. What was in it when this was called is read then, and somebody may add
            # events for as long as we read.
            if len(events) >= longest and len(events) >= (longest := _longest_queue()):
                return events

    def close(self) -> None:
        """End it; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _add(self, path: str, mask: int) -> int:
        return self._checked(
            self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), ctypes.c_uint32(mask)), path
        )

    def _checked(self, result: int, path: str | None = None) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return result


def _longest_queue() -> int:
    try:
        with open(_QUEUE_LIMIT, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return _USUAL_QUEUE


def _events(data: bytes) -> Iterator[Event]:
    at = 0
    while at < len(data):
        watch, mask, _, length = (
            int.from_bytes(data[at + 4 * field : at + 4 * field + 4], "little", signed=field == 0) for field in range(4)
        )
        name = os.fsdecode(data[at + _HEADER : at + _HEADER + length].rstrip(b"\0"))
        at += _HEADER + length
        if mask & _IGNORED and not mask & _UNMOUNT:
            continue
        yield Event(
            watch,
            name,
            directory=bool(mask & _DIRECTORY),
            lost=bool(mask & (_DELETE_SELF | _MOVE_SELF | _UNMOUNT)),
            overflow=bool(mask & _OVERFLOW),
        )
