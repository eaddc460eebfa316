"""A pattern with wildcards becomes the places that match it now.

Mounts need places, so a pattern is expanded when a command starts; what appears later is covered from the next
command on. Rules:

- For a deny, links are followed, for a rule on a link is about the link and about what it leads to: a match that is
  a link yields both. What ``**`` finds behind links to directories is looked at last and within a smaller bound; beyond
  it there is a note, not a refusal, or a command could stop all later ones by a link to ``/``. All links have their
  turns, so that one to a large tree does not keep the others from being searched. For the same reason links back to
  the directory in which the pattern starts, or above it, are not followed: they would close everything.
- For an allow, links are not followed: a command could have put them there.
- Nothing is matched in /proc, /dev and /sys.
- What matches too much, or would need a walk over the whole disk, is a problem, never a shorter answer.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.terrain import EVERYTHING
from stockade.policy.name_glob import DEEP
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.places import follow
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.filesystem.terrain import Kind, Terrain
    from stockade.policy.path_pattern import Part, PathPattern

#: The kernel's own directories.
SPECIAL: Final = ("/proc", "/dev", "/sys")
MOST_MATCHES: Final = 10_000
MOST_DIRECTORIES: Final = 50_000
MOST_BEYOND_LINKS: Final = 5_000
_MOST_NOTES: Final = 5


class Expansion(Value):
    """The places that a pattern matches (of a link that leads nowhere: a missing one), and the links that led there."""

    places: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


def expand(pattern: PathPattern, terrain: Terrain, *, through_links: bool, nested: bool) -> Expansion:
    """Return what a glob matches, its static prefix being a place. ``nested`` looks for matches below matches too."""
    if pattern.static_prefix == "/" and pattern.glob_parts[0] == DEEP:
        return Expansion(problem="it would need a search of the whole disk; start it with a directory")
    walk = _Walk(pattern.glob_parts, terrain, through_links=through_links, nested=nested)
    try:
        walk.run(pattern.static_prefix)
    except _TooMuchError as error:
        return Expansion(problem=str(error))
    return Expansion(tuple(dict.fromkeys(walk.places)), tuple(dict.fromkeys(walk.links)), tuple(walk.notes))


class _TooMuchError(Exception):
    """The walk has gone on for too long."""


class _Walk:
    """A walk along the parts of one pattern. Directories on its lists are places."""

    def __init__(self, parts: tuple[Part, ...], terrain: Terrain, *, through_links: bool, nested: bool) -> None:
        self.places: list[str] = []
        self.links: list[str] = []
        self.notes: list[str] = []
        self._parts = parts
        self._terrain = terrain
        self._through_links = through_links
        self._nested = nested
        self._todo: list[tuple[str, int]] = []
        self._beyond: list[tuple[str, int, str]] = []
        self._seen: set[tuple[str, int]] = set()
        self._matched: set[str] = set()
        self._start = "/"

    def run(self, start: str) -> None:
        if not self._terrain.is_directory(start):
            return
        self._start = start
        self._push(start, 0)
        while self._todo:
            if len(self._seen) > MOST_DIRECTORIES:
                message = f"it would need a search of more than {MOST_DIRECTORIES} directories"
                raise _TooMuchError(message)
            self._visit(*self._todo.pop())
        self._search_beyond()

    def _search_beyond(self) -> None:
        """Look behind the links: at one directory behind each, then at the next one behind each, and so on."""
        searches: list[tuple[str, list[tuple[str, int]]]] = []
        for _ in range(MOST_BEYOND_LINKS + 1):
            for directory, part, link in self._beyond:
                self._todo = []
                self._push(directory, part)
                searches.append((link, self._todo))
            self._beyond = []
            while searches and not searches[0][1]:
                searches.pop(0)
            if not searches:
                return
            link, self._todo = search = searches.pop(0)
            searches.append(search)
            before = len(self.places)
            self._visit(*self._todo.pop(0))
            if len(self.places) > before:
                self.links += (step.link for step in follow(link, self._terrain).steps)
        left = dict.fromkeys(link for link, todo in searches if todo)
        self.notes += (
            f'not searched to the end behind the link "{escape(link)}": too many directories'
            for link in tuple(left)[:_MOST_NOTES]
        )

    def _push(self, directory: str, part: int) -> None:
        if (directory, part) in self._seen or any(is_at_or_below(directory, special) for special in SPECIAL):
            return
        self._seen.add((directory, part))
        self._todo.append((directory, part))

    def _visit(self, directory: str, at: int) -> None:
        part = self._parts[at]
        if part == DEEP:
            self._seen.add((directory, at + 1))
            self._visit(directory, at + 1)
            self._descend(directory, at)
        elif isinstance(part, str):
            path = _below(directory, part)
            if self._terrain.exists(path):
                self._step(path, at, "link" if self._terrain.link(path) is not None else "other")
        else:
            for name, kind in self._terrain.entries(directory, EVERYTHING):
                if part.matches(name):
                    self._step(_below(directory, name), at, kind)

    def _descend(self, directory: str, at: int) -> None:
        for name, kind in self._terrain.entries(directory, EVERYTHING):
            path = _below(directory, name)
            if kind == "directory" and (self._nested or path not in self._matched):
                self._push(path, at)
            elif kind == "link" and self._through_links:
                place = follow(path, self._terrain).place
                if self._terrain.is_directory(place) and not is_at_or_below(self._start, place):
                    self._beyond.append((place, at, path))

    def _step(self, path: str, at: int, kind: Kind) -> None:
        last = at + 1 == len(self._parts)
        place = self._linked(path, last=last) if kind == "link" else path
        if place is None:
            return
        if not last:
            if self._terrain.is_directory(place):
                self._push(place, at + 1)
        elif not any(is_at_or_below(place, special) for special in SPECIAL):
            self.places.append(place)
            self._matched.add(place)
            if len(self.places) > MOST_MATCHES:
                message = f"it matches more than {MOST_MATCHES} places"
                raise _TooMuchError(message)

    def _linked(self, path: str, *, last: bool) -> str | None:
        """Return what a link leads to, ``None`` if it is not to be followed; keep the link if it matters."""
        if not self._through_links:
            self.links += [path] if last else []
            return None
        trail = follow(path, self._terrain)
        back = is_at_or_below(self._start, trail.place)
        if last or (self._terrain.is_directory(trail.place) and not back):
            self.links += (step.link for step in trail.steps)
        if trail.looped:
            return None
        if back:
            if last:
                self.notes.append(
                    f'the link "{escape(path)}" matches, but not what it leads to: that is above the rule'
                )
            return None
        return trail.place


def _below(directory: str, name: str) -> str:
    return f"/{name}" if directory == "/" else f"{directory}/{name}"
