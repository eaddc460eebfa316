"""A disk that remembers its answers and knows when they are out of date.

Every answer is about the names in some directory, and that directory is watched before it is looked at. So as long as
the kernel reports nothing about those names, all answers stand, and a plan made of them too: to know that nothing
changed costs one read that does not wait. Rules:

- What cannot be watched (no permission, no watches left) is asked again at each ``refresh``.
- An empty directory that only keeps its name is watched, too: what is put into it makes it one that is there.
- So are the small texts in which tools keep a path. The configs and indexes of git are watched as files
  (``stockade.filesystem.readings``).
- An owner can have directories watched that no plan asks about. The news of them name the owner, and nothing is
  forgotten because of them (``stockade.filesystem.written``).
- Where events were lost, everything is forgotten.
- A mount that somebody puts over a directory meanwhile is not noticed; a sandbox's own mounts are out of its sight.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, cast
from stockade.filesystem.readings import Readings
from stockade.filesystem.terrain import EVERYTHING, Entries, Interest, Kind, Land

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView

    from stockade.filesystem.inotify import Event, Inotify


class News:
    """Directories in which names came or went, those that are others now, and whether some of it was lost.

    ``stirred`` are the owners of directories beside these (``Memory.attend``) in which names came or went; ``grown``
    are those for whom directories were among them.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.changed: set[str] = set()
        self.replaced: set[str] = set()
        self.stirred: set[str] = set()
        self.grown: set[str] = set()
        self.lost = False

    def __bool__(self) -> bool:
        """Whether there are any that a plan may rest on."""
        return bool(self.changed or self.replaced or self.lost)


class Memory:
    """The real disk, remembered; a ``Terrain``."""

    def __init__(self, *, watch: bool = True) -> None:
        """Start with nothing known. Who makes one plan only need not ``watch``; then each ``refresh`` asks again."""
        self._land = Land()
        self._queue = _queue() if watch else None
        self._watches: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        self._kinds: dict[str, tuple[Kind | None, str | None]] = {}
        self._lists: dict[tuple[str, Interest], Entries] = {}
        self._interests: dict[str, set[Interest]] = {}
        self._texts: dict[str, str | None] = {}
        self._readings = Readings(self._queue)
        self._unwatched: set[str] = set()
        self._kept: set[str] = set()
        self._touched: set[str] = set()
        self._news = News()
        #: The watches beside those, by owner, and the owners by watch.
        self._attended: dict[str, set[int]] = {}
        self._owners: dict[int, set[str]] = {}

    # The questions of a Terrain

    def link(self, path: str) -> str | None:
        """Return the text that the link holds, ``None`` if the path is no link."""
        return self._known(path)[1]

    def exists(self, path: str) -> bool:
        """Tell whether something is there, be it a link that leads nowhere."""
        return self._known(path)[0] is not None

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory itself, not a link to one."""
        return self._known(path)[0] == "directory"

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be listed."""
        return tuple(name for name, _ in self.entries(path, EVERYTHING))

    def text(self, path: str) -> str | None:
        """Return what a small file says, ``None`` unless it is a regular file of this very user."""
        if path not in self._texts:
            self._texts[path] = self._land.text(path)
        return self._texts[path]

    def config(self, path: str) -> bytes | None:
        """Return the content of a config of git, ``None`` unless it is a regular file of whomever."""
        self._known(path)  # so that its directory is watched
        return cast("bytes | None", self._readings.ask(path, "config", lambda: self._land.config(path)))

    def gitlinks(self, path: str, hash_size: int) -> tuple[str, ...]:
        """Return the gitlinks in an index of git, none if it cannot be read."""
        self._known(path)
        found = self._readings.ask(path, f"links {hash_size}", lambda: self._land.links(path, hash_size))
        return cast("tuple[str, ...] | None", found) or ()

    def known_gitlinks(self, path: str, signature: tuple[int, int, int, int]) -> tuple[str, ...] | None:
        """Return the gitlinks that were read from a file of this inode, size and times; ``None`` if none were read."""
        found = self._readings.answers(path, signature)
        return found[0] if len(found) == 1 and isinstance(found[0], tuple) else None

    def entries(self, path: str, interest: Interest) -> Entries:
        """Return what is of interest in a directory, nothing if it cannot be listed."""
        known = self._lists.get((path, interest))
        if known is None:
            if self._known(path)[0] == "directory":
                self._watch(path)
                known = self._listing(path, interest)
                above = "" if path == "/" else path
                self._kinds.update((f"{above}/{name}", (kind, None)) for name, kind in known if kind != "link")
            else:
                known = ()
            self._lists[path, interest] = known
            self._interests.setdefault(path, set()).add(interest)
        return known

    def known_entries(self, path: str) -> Entries:
        """Return all that is in a directory, if everything was of interest when it was listed; otherwise nothing."""
        return self._lists.get((path, EVERYTHING), ())

    def refresh(self) -> bool:
        """Forget what is no longer so; tell whether anything was."""
        events = [] if self._queue is None else self._queue.read()
        if not events and not self._unwatched:
            return self._readings.check(set()) | self._check_texts()
        if any(event.overflow for event in events):
            self._forget_all()
            self._touched.add("/")
            self._news.lost = True
            return True
        self._note_owners(events)
        replaced, touched = self._sorted(events)
        named = {f"{'' if place == '/' else place}/{name}" for place, names in touched.items() for name in names}
        self._news.changed.update(touched)
        self._news.replaced |= replaced
        self._touched |= replaced | named
        changed = self._forget_below(replaced)
        for directory, names in touched.items():
            changed |= self._check(directory, names)
        for directory in tuple(self._unwatched):
            changed |= self._check_all(directory)
        written = {path for event in events for path in self._readings.written(event.watch)}
        self._news.changed |= {_parent(path) for path in written}
        return changed | self._readings.check(named | written) | self._check_texts()

    def take_touched(self) -> set[str]:
        """Return the paths that something happened to since this was asked last; ``/`` stands for any."""
        touched, self._touched = self._touched, set()
        return touched if self._queue is not None and not self._unwatched else {"/"}

    def take_news(self) -> News:
        """Return what has changed, as of the last ``refresh``, since this was asked last."""
        news, self._news = self._news, News()
        news.changed |= self._unwatched
        return news

    @property
    def sees_all(self) -> bool:
        """Whether every change is told, once nobody has a file open any more."""
        return self._queue is not None and not self._unwatched and self._readings.sees_all

    def attend(self, owner: str, directory: str) -> bool:
        """Tell from now on by the name of an owner if names come or go in a directory; return whether that can be."""
        watch = self._watch_of(directory)
        if watch is None:
            return False
        self._attended.setdefault(owner, set()).add(watch)
        self._owners.setdefault(watch, set()).add(owner)
        return True

    @property
    def attended(self) -> KeysView[str]:
        """The owners for whom something is watched."""
        return self._attended.keys()

    def leave(self, owner: str) -> None:
        """Watch nothing for an owner any more."""
        for watch in self._attended.pop(owner, ()):
            self._owners[watch].discard(owner)
            if not self._owners[watch]:
                del self._owners[watch]
                if watch not in self._paths:
                    self._unwatch(watch)

    def listed(self) -> Iterable[tuple[str, Entries]]:
        """Return the directories that were listed, each with what was of interest there."""
        yield from ((path, entries) for (path, _), entries in self._lists.items())
        yield from ((path, ()) for path in self._kept)

    def close(self) -> None:
        """End the watch; may be called again."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    @property
    def watched(self) -> int:
        """How many directories are watched."""
        return len(self._watches)

    # What is known

    def _known(self, path: str) -> tuple[Kind | None, str | None]:
        known = self._kinds.get(path)
        if known is None:
            parent = _parent(path)
            if path != "/":
                if self._known(parent)[0] is None:
                    known = (None, None)
                else:
                    self._watch(parent)
            if known is None:
                known = self._asked(path)
            self._kinds[path] = known
        return known

    def _asked(self, path: str) -> tuple[Kind | None, str | None]:
        found = self._land.look(path)
        # What was put into a directory before it was watched is not known.
        return self._land.look(path) if self._land.kept and self._watch_kept() else found

    def _listing(self, path: str, interest: Interest) -> Entries:
        found = self._land.entries(path, interest)
        # What was put into a directory before it was watched is not in the list.
        return self._land.entries(path, interest) if self._land.kept and self._watch_kept() else found

    def _watch_kept(self) -> bool:
        """Watch the directories that were met and only keep their names; tell whether any of them is new."""
        met, self._land.kept = self._land.kept, set()
        new = met - self._kept
        for path in new:
            self._kept.add(path)
            self._watch(path)
        return bool(new)

    def _watch(self, directory: str) -> None:
        if directory in self._watches or directory in self._unwatched:
            return
        watch = self._watch_of(directory)
        if watch is None:
            self._unwatched.add(directory)
            return
        # Of a directory that was renamed the watch is the old one: it goes by the new path from now on.
        self._watches.pop(self._paths.get(watch, ""), None)
        self._watches[directory] = watch
        self._paths[watch] = directory

    def _watch_of(self, directory: str) -> int | None:
        try:
            return None if self._queue is None else self._queue.add(directory)
        except OSError:
            return None

    def _unwatch(self, watch: int) -> None:
        if self._queue is not None and watch not in self._owners:
            self._queue.remove(watch)

    # What has changed

    def _note_owners(self, events: Iterable[Event]) -> None:
        for event in events:
            owners = self._owners.get(event.watch)
            if owners is not None:
                self._news.stirred |= owners
                if event.directory or event.lost:
                    self._news.grown |= owners

    def _sorted(self, events: Iterable[Event]) -> tuple[set[str], dict[str, set[str]]]:
        """Return the directories that are others now, and the names that something happened to, by directory."""
        replaced: set[str] = set()
        touched: dict[str, set[str]] = {}
        for event in events:
            directory = self._paths.get(event.watch)
            if directory is None:
                continue
            if directory in self._kept:
                # It is gone, or more than a name now.
                self._forget_kept(directory)
                touched.setdefault(_parent(directory), set()).add(directory.rpartition("/")[2])
                continue
            if event.lost:
                replaced.add(directory)
                continue
            touched.setdefault(directory, set()).add(event.name)
            path = f"{'' if directory == '/' else directory}/{event.name}"
            if event.directory and (path in self._kinds or path in self._watches) and not self._is_nothing(path):
                replaced.add(path)
        return replaced, touched

    def _is_nothing(self, path: str) -> bool:
        """Tell whether a path was known to be missing, and there is still nothing but perhaps a name that is kept."""
        return self._kinds.get(path) == (None, None) == self._asked(path)

    def _forget_kept(self, path: str) -> None:
        self._kept.discard(path)
        self._unwatched.discard(path)
        watch = self._watches.pop(path, None)
        if watch is not None:
            self._paths.pop(watch, None)
            self._unwatch(watch)

    def _forget_below(self, roots: set[str]) -> bool:
        """Forget everything at or below these paths."""
        if not roots:
            return False

        def stale(path: str) -> bool:
            while path not in roots:
                if path == "/":
                    return False
                path = _parent(path)
            return True

        gone = [path for path in self._kinds if stale(path)]
        for path in gone:
            del self._kinds[path]
        for key in [key for key in self._lists if stale(key[0])]:
            del self._lists[key]
            self._interests.pop(key[0], None)
        for path in [path for path in self._watches if stale(path)]:
            watch = self._watches.pop(path)
            self._paths.pop(watch, None)
            self._unwatch(watch)
        self._unwatched = {path for path in self._unwatched if not stale(path)}
        self._kept = {path for path in self._kept if not stale(path)}
        self._readings.forget(stale)
        return bool(gone)

    def _check(self, directory: str, names: Iterable[str]) -> bool:
        """Ask again about names in a directory, and about its listings; forget what is out of date."""
        changed = False
        above = "" if directory == "/" else directory
        for name in names:
            path = f"{above}/{name}"
            known = self._kinds.get(path)
            if known is not None and known != self._asked(path):
                # With what a path is, all that was known below it goes as well.
                changed |= self._forget_below({path})
        for interest in self._interests.get(directory, ()):
            now_listed = self._listing(directory, interest)
            if self._lists.get((directory, interest)) != now_listed:
                self._lists[directory, interest] = now_listed
                changed = True
        return changed

    def _check_all(self, directory: str) -> bool:
        if directory in self._kept:
            self._forget_kept(directory)
            return self._check(_parent(directory), [directory.rpartition("/")[2]])
        above = "" if directory == "/" else directory
        names = [path[len(above) + 1 :] for path in self._kinds if path != "/" and _parent(path) == directory]
        return self._check(directory, names)

    def _check_texts(self) -> bool:
        stale = [path for path, known in self._texts.items() if self._land.text(path) != known]
        for path in stale:
            del self._texts[path]
        return bool(stale)

    def _forget_all(self) -> None:
        watched = self._queue is not None
        self.close()
        self._queue = _queue() if watched else None
        for known in (self._watches, self._paths, self._kinds, self._lists, self._interests, self._texts):
            known.clear()
        self._attended.clear()
        self._owners.clear()
        self._unwatched.clear()
        self._kept.clear()
        self._readings = Readings(self._queue)


def _queue() -> Inotify | None:
    try:
        from stockade.filesystem.inotify import Inotify

        return Inotify()
    except (OSError, ImportError, AttributeError):
        return None


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
