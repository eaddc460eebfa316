"""Notices while commands run that the host replaced what a cover lies on, and has the cover laid again.

Git, editors and package managers save a file by renaming a new one over it. That takes the mount on the old file away
in every other namespace, and the commands of the jail could write the new one. The launcher therefore watches the
directories that hold covered places. A cover that it lays again in the jail's own tree appears in every copy of it.

Rules: the watch begins when a command has run for a moment, so that short commands never pay for it; where the kernel
gives no watch, the covers are looked at ten times a second instead; an event only says when to look, never at what.
Source of truth: inotify(7), ``mount_namespaces(7)`` on propagation.
"""

from __future__ import annotations

from time import monotonic

from stockade.platforms.linux import kernel, tree

#: Seconds that a command runs before its covers are watched, and between two looks without a watch.
_BEFORE_WATCH = 0.02
_BETWEEN_LOOKS = 0.1
_MILLISECONDS = 1000
_OVERFLOW = b"\xff\xff\xff\xff\x00\x40\x00\x00"  # the watch -1 and IN_Q_OVERFLOW, as struct inotify_event begins


class CoverWatch:
    """The covers of one jail."""

    __slots__ = ("begun", "descriptor", "directories", "names", "next_look", "places")

    def __init__(self, places: list[tree.Place]) -> None:
        """Take the mounts of a jail; watch nothing yet."""
        self.places = [place for place in places if place.restricts()]
        above = (place.target.rpartition(b"/") for place in self.places)
        parts = [(directory or b"/", name) for directory, _, name in above]
        self.directories = list(dict.fromkeys(directory for directory, _ in parts))
        self.names = {name + b"\0" for _, name in parts}
        self.descriptor = -1
        self.begun = False
        self.next_look: float | None = None

    def patience(self, *, busy: bool) -> int | None:
        """Return how many milliseconds may pass before ``look``; ``None`` if only an event calls for it."""
        if not busy or not self.places or self.descriptor >= 0:
            self.next_look = None
            return None
        if self.next_look is None:
            self.next_look = monotonic() + (_BETWEEN_LOOKS if self.begun else _BEFORE_WATCH)
        return max(0, int((self.next_look - monotonic()) * _MILLISECONDS) + 1)

    def is_due(self) -> bool:
        """Tell whether it is time to look without an event."""
        return self.next_look is not None and monotonic() >= self.next_look

    def hear(self) -> bool:
        """Take the events that came; tell whether one is about a covered name."""
        data = kernel.read_events(self.descriptor)
        return any(name in data for name in self.names) or _OVERFLOW in data

    def look(self) -> list[bytes]:
        """Lay again what fell, and return it; the first look begins the watch."""
        self.next_look = None
        if not self.begun:
            self.begun = True
            self.descriptor = kernel.new_watch()
        if self.descriptor >= 0:
            # Watched before it is looked at, so that nothing is missed; and again each time, for a directory that was
            # replaced is another one now. One that may not be read cannot be watched: events of others make us look.
            for directory in self.directories:
                kernel.watch_directory(self.descriptor, directory)
        return tree.lay_again(self.places)
