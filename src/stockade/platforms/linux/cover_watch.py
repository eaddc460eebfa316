"""Notices while commands run that the host replaced what a cover lies on, and has the cover laid again.

Git, editors and package managers save a file by renaming a new one over it. That takes the mount on the old file away
in every other namespace, and the commands of the jail could write the new one. The launcher therefore watches the
directories that hold covered places, and all above them. A cover that it lays again in the jail's own tree appears in
every copy of it.

Rules: the watch begins when a command has run for a moment, so that short commands never pay for it; where the kernel
gives no watch, the covers are looked at ten times a second instead; an event says when to look, and which names were
gone for a moment, but never what to cover.
Source of truth: inotify(7), ``mount_namespaces(7)`` on propagation.
"""

from __future__ import annotations

from time import monotonic

from stockade.platforms.linux import fallen, kernel, tree

#: Seconds that a command runs before its covers are watched, and between two looks without a watch.
_BEFORE_WATCH = 0.02
_BETWEEN_LOOKS = 0.1
_MILLISECONDS = 1000
_LOOKS = 5
_HEADER = 16  # struct inotify_event: watch, mask, cookie and length of the name, four bytes each
_MASK, _LENGTH = slice(4, 8), slice(12, 16)


class CoverWatch:
    """The covers of one jail."""

    __slots__ = (
        "begun",
        "blind",
        "descriptor",
        "directories",
        "fresh",
        "gone",
        "names",
        "next_look",
        "places",
        "watches",
    )

    def __init__(self, places: list[tree.Place]) -> None:
        """Take the mounts of a jail; watch nothing yet."""
        self.places = [place for place in places if place.restricts()]
        above = {parent: None for place in self.places for parent in tree.parents(place.target)}
        self.directories = sorted(above)
        self.names = {path.rpartition(b"/")[2] + b"\0" for path in (*above, *(each.target for each in self.places))}
        self.names.discard(b"\0")
        self.descriptor = -1
        self.watches: dict[int, bytes] = {}
        self.gone: set[bytes] = set()
        #: Files that were covered again a moment ago, and how often each is still to be looked at.
        self.fresh: dict[bytes, int] = {}
        self.begun = False
        self.blind = False
        self.next_look: float | None = None

    def patience(self, *, busy: bool) -> int | None:
        """Return how many milliseconds may pass before ``look``; ``None`` if only an event calls for it."""
        if not busy or not self.places or (self.begun and not self.blind and not self.fresh):
            self.next_look = None
            return None
        if self.next_look is None:
            self.next_look = monotonic() + (_BETWEEN_LOOKS if self.begun else _BEFORE_WATCH)
        return max(0, int((self.next_look - monotonic()) * _MILLISECONDS) + 1)

    def is_due(self) -> bool:
        """Tell whether it is time to look without an event."""
        return self.next_look is not None and monotonic() >= self.next_look

    def hear(self) -> bool:
        """Take some of the events that came; tell whether one is about a covered name, or one above it."""
        data = kernel.read_events(self.descriptor)
        if not any(name in data for name in self.names) and b"\xff\xff\xff\xff" not in data:
            return False
        heard = False
        at = 0
        while at < len(data):
            mask = int.from_bytes(data[at:][_MASK], "little")
            length = int.from_bytes(data[at:][_LENGTH], "little")
            name = data[at + _HEADER : at + _HEADER + length].rstrip(b"\0")
            if name + b"\0" in self.names or mask & kernel.IN_OVERFLOW:
                heard = True
                if mask & kernel.IN_GOES:
                    directory = self.watches.get(int.from_bytes(data[at : at + 4], "little", signed=True), b"")
                    self.gone.add(b"%b/%b" % (directory.rstrip(b"/"), name))
            at += _HEADER + length
        return heard

    def look(self) -> fallen.Relaid:
        """Lay again what fell, and return it; the first look begins the watch.

        ``missing`` are also those that were gone for a moment: something else came in their place.
        """
        self.next_look = None
        if not self.begun:
            self.begun = True
            self.descriptor = kernel.new_watch()
        self.watch()
        relaid = fallen.lay_again(self.places)
        gone, self.gone = self.gone, set()
        self.look_at_fresh(relaid)
        relaid.missing += [target for target in relaid.laid if not gone.isdisjoint((target, *tree.parents(target)))]
        return relaid

    def look_at_fresh(self, relaid: fallen.Relaid) -> None:
        """Look again at files that were covered: a call that was under way then may have opened or linked one since."""
        for target in tuple(self.fresh):
            self.fresh[target] -= 1
            if not self.fresh[target]:
                del self.fresh[target]
            if fallen.is_within_reach(target):
                relaid.hopeless.append(target)
        self.fresh.update(dict.fromkeys(relaid.files, _LOOKS))

    def watch(self) -> None:
        """Watch every directory, before it is looked at, so that nothing is missed.

        And again each time: a directory that was replaced is another one now.
        """
        self.blind = self.descriptor < 0
        for directory in () if self.blind else self.directories:
            try:
                self.watches[kernel.watch_directory(self.descriptor, directory)] = directory
            except (FileNotFoundError, NotADirectoryError):
                continue  # the watch above tells when it is there again
            except OSError:
                self.blind = True  # it may not be read, or the user has no watch left
