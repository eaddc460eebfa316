"""What the disk says about paths, kept behind one small protocol so that decisions stay functions of values.

A *place* is a path without links in it. ``follow`` walks a path as the kernel does (links first, then ``..``) and
remembers every link on the way, because a rule may be about a link as well as about what it leads to.
What does not exist is taken as written. More links than the kernel follows make the path a loop: it leads nowhere.
What cannot be looked at (no permission) counts as no link and as not there: a command cannot look at it either.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import Final, Protocol
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.path_pattern import names_of, spelled
from stockade.value import Value

#: As in Linux, path_resolution(7); macOS gives up earlier.
MOST_LINKS: Final = 40
#: A file that is larger is not one of those small ones in which tools keep a path.
LARGEST_TEXT: Final = 65536
#: Git's configs and indexes may be larger; what is larger still is taken for unreadable.
LARGEST_CONFIG: Final = 1 << 20
LARGEST_INDEX: Final = 1 << 28
# Opening must neither follow a link nor wait for the other end of a FIFO.
_LOOK: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Places(Protocol):
    """What is asked of a disk. No method raises for any path that ``spelled`` has passed; none follows a last link."""

    def link(self, path: str) -> str | None:
        """Return the text that the link holds, ``None`` if the path is no link."""

    def exists(self, path: str) -> bool:
        """Tell whether something is there, be it a link that leads nowhere."""

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory itself, not a link to one."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be listed."""

    def text(self, path: str) -> str | None:
        """Return what a small file says, ``None`` unless it is a regular file of this very user."""

    def config(self, path: str) -> bytes | None:
        """Return the content of a config of git, ``None`` unless it is a regular file of whomever."""

    def gitlinks(self, path: str, hash_size: int) -> tuple[str, ...]:
        """Return the gitlinks in an index of git, none if it cannot be read."""


class Disk:
    """The real disk, as it is at each question."""

    def link(self, path: str) -> str | None:
        """Return the text that the link holds, ``None`` if the path is no link."""
        try:
            return os.readlink(path)
        except (OSError, ValueError):
            return None

    def exists(self, path: str) -> bool:
        """Tell whether something is there, be it a link that leads nowhere."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory itself, not a link to one."""
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (OSError, ValueError):
            return False

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(path)))
        except (OSError, ValueError):
            return ()

    def text(self, path: str) -> str | None:
        """Return what a small file says, ``None`` unless it is a regular file of this very user."""
        found = _content(path, LARGEST_TEXT, own=True)
        return None if found is None else os.fsdecode(found)

    def config(self, path: str) -> bytes | None:
        """Return the content of a config of git, ``None`` unless it is a regular file of whomever."""
        return _content(path, LARGEST_CONFIG)

    def gitlinks(self, path: str, hash_size: int) -> tuple[str, ...]:
        """Return the gitlinks in an index of git, none if it cannot be read."""
        return self.links(path, hash_size) or ()

    def links(self, path: str, hash_size: int) -> tuple[str, ...] | None:
        """Return the gitlinks in an index of git, ``None`` if it cannot be read."""
        data = _content(path, LARGEST_INDEX)
        if data is None:
            return None
        from stockade.policy.git_index import GitIndexError, gitlinks

        directory = path.rpartition("/")[0]
        try:
            return gitlinks(data, hash_size, lambda name: _content(f"{directory}/{name}", LARGEST_INDEX))
        except GitIndexError:
            return None


class Step(Value):
    """One link that was followed.

    ``link`` is where it lies (no links above it), ``spelling`` the whole path at that moment, up to the next ``..``;
    ``last`` says that nothing came after the link: the path was the link itself.
    """

    link: str
    spelling: str
    last: bool


class Trail(Value):
    """Where a path leads, and by which links. Of a loop, ``place`` is the link at which the walk gave up."""

    steps: tuple[Step, ...]
    place: str
    looped: bool = False


def follow(path: str, places: Places) -> Trail:
    """Walk an absolute path to its place."""
    done = ""
    todo = _reversed_names(spelled(path))
    steps: list[Step] = []
    while todo:
        name = todo.pop()
        if name == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{name}"
        target = places.link(here)
        if target is None:
            done = here
            continue
        steps.append(Step(here, _spelling(here, todo), not todo))
        if len(steps) > MOST_LINKS:
            return Trail(tuple(steps), here, looped=True)
        if target.startswith("/"):
            done = ""
        todo.extend(_reversed_names(target))
    return Trail(tuple(steps), done or "/")


def resolve(path: str, places: Places) -> str:
    """Return the place of an absolute path, or raise ``InvalidTextError`` if its links run in a circle."""
    trail = follow(path, places)
    if trail.looped:
        message = f'"{escape(path)}" leads nowhere: its links run in a circle'
        raise InvalidTextError(message, f'Remove the link "{escape(trail.place)}", or name the place that is meant.')
    return trail.place


def first_missing(place: str, places: Places) -> str | None:
    """Return the highest directory on the way to a place (or the place) that does not exist, ``None`` if all do."""
    above = ""
    for name in names_of(place):
        above = f"{above}/{name}"
        if not places.exists(above):
            return above
    return None


def _content(path: str, limit: int, *, own: bool = False) -> bytes | None:
    """Return what a regular file below a size holds, else ``None``; if it must be ``own``, only one of this user."""
    try:
        descriptor = os.open(path, _LOOK)
    except (OSError, ValueError):
        return None
    try:
        about = os.fstat(descriptor)
        fits = stat.S_ISREG(about.st_mode) and about.st_size < limit and (not own or about.st_uid == os.geteuid())
        # One read is enough for a file that nobody writes meanwhile; after a change it is read again.
        return os.read(descriptor, about.st_size + 1) if fits else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _reversed_names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _spelling(here: str, todo: list[str]) -> str:
    rest = todo[::-1]
    known = rest[: rest.index("..")] if ".." in rest else rest
    return "/".join([here, *known])
