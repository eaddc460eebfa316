"""What no setting opens for writing: files that a program on the host would obey the next time it starts.

The rules, for a place that lies in a writable tree:

- Names are compared without case, because some disks do. A protected name covers all below it.
- A name counts at the *level* of the directory that holds it: the root of the writable tree is level 0; ``.git/hooks``
  counts at the level of the directory that holds ``.git``. The deepest writable root above a place is its root.
- At level 0 a name is protected whether it exists or not. Missing directories on the way to it are protected too, for
  whoever makes ``.claude`` makes ``.claude/hooks``.
- A missing ``.git`` at level 0 may be made on Linux: the walls show commands a stage in its place, and the repository
  becomes the host's when they have ended and it was looked at (``stockade.platforms.linux.staging``).
- A missing directory of which a setting lifts something may be made, too; what else is protected in it stays closed
  (``stockade.policy.promised``).
- Some names (``UNKEPT``) are protected at level 0 as below it: where they exist. Most of them are obeyed in a home
  directory only. In the user's home a longer list counts (``stockade.policy.home_names``), in every writable tree that
  holds the home, is it, or lies in it above the name.
- From level 1 to the search depth a name is protected if it exists. Below ``node_modules`` and inside ``.git`` nothing
  is searched, unless the root itself lies there.
- In a repository below the root (a ``.git`` with ``refs``, ``objects`` and ``HEAD``) ``hooks`` and ``config`` are
  protected whether they exist or not. So is ``config.worktree`` where the config speaks of
  ``extensions.worktreeConfig``; else git does not read it. A missing ``commondir`` is left to the inspection of what a
  command leaves: to keep it from being made in 300 repositories takes 600 descriptors and doubles the first launch.
- Names above the root count as level 0: a setting that opens ``.git/hooks/pre-commit`` itself opens nothing.
- Submodules may have any name, slashes included: ``hooks`` and the configs at any depth in ``.git/modules`` are
  protected where they exist. So a branch called ``hooks`` in a submodule cannot be written: the safe side.
- ``.git/commondir`` is protected like the configs: git takes hooks and config from the directory that it names, so
  that whoever writes it needs neither (gitrepository-layout(5)).
- In a submodule's repository (``.git/modules``) the entries of ``.git`` are protected as at the root of a tree, and in
  ``.git/worktrees/NAME`` its ``config.worktree`` is, whether they exist or not: git obeys whatever appears there.
- A directory that holds ``refs``, ``objects`` and ``HEAD`` is a repository itself as soon as its ``.git`` is missing or
  spoilt, and git on the host obeys the config in it. So at the root of a writable tree the first of these that is
  missing is protected (``HEAD`` last, for git finds a file of that name confusing), unless the user's git is set to
  take no such directory (``safe.bareRepository``). If none is missing, the entries of ``.git`` are protected there.
- A *store* is a repository outside the tree that a ``.git`` file leads to (``stockade.policy.git_link``). In it the
  entries of ``.git`` are protected as at the root of a tree, and no other name is.
- ``sandbox.filesystem.allowProtected`` lifts a name everywhere, or all that is protected at a path and below it. What
  is found (``find`` and the like) is found all the same, since it shows where repositories are: ``lifted`` leaves it
  out. What ``protected_by`` and ``protected_in_store`` return is not lifted.

Renaming a directory above a protected place is the matter of the walls (they pin it), not of these names.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.placeholder import STAGE
from stockade.policy.path_pattern import is_at_or_below, joined, names_of
from stockade.policy.places import first_missing, follow
from stockade.policy.protected_names import BARE, HELD, INNER, NAMES, OWN, REPOSITORY, UNKEPT, UNSEARCHED
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Places

#: What a linked worktree keeps for itself, of all these.
_OF_A_WORKTREE: Final = (["config.worktree"], ["commondir"])
#: What git would obey in a repository below the root of a tree, and what must not be made there.
_OF_A_REPOSITORY: Final = ("hooks", "config", "config.worktree")
#: Where names of a home begin that are no hidden ones.
_PLAIN_TOPS: Final = frozenset({"bin", "go", "library", "miniconda3", "anaconda3", "miniforge3"})
_GIT_FILE: Final = "git on the host takes its repository from it"


class Search(Value):
    """How far protected names are looked for, and what of them does not count.

    ``lifted`` are names that the settings lift everywhere, ``spared`` the places where they lift all. ``homes`` are the
    places of the user's home. ``bare``: git on the host takes a directory for a repository that looks like one.
    ``said`` is what allows name before any wildcard; without it every writable tree counts as named. ``staged``: the
    walls have stages, so that a missing ``.git`` may be made at the root of a writable tree.
    """

    depth: int
    lifted: frozenset[str] = frozenset()
    homes: tuple[str, ...] = ()
    bare: bool = True
    spared: tuple[PathPattern, ...] = ()
    said: tuple[str, ...] = ()
    staged: bool = True

    def says(self, path: str) -> bool:
        """Tell whether somebody named a path, or something in it, to be opened; a wildcard names nothing."""
        return not self.said or any(is_at_or_below(word, path) for word in self.said)

    def inner(self, name: str) -> Mapping[str, str]:
        """Return the protected entries of the directory with this (folded) name."""
        entries = INNER.get(name, {})
        if not self.lifted:
            return entries
        return {entry: why for entry, why in entries.items() if f"{name}/{entry}" not in self.lifted}

    def lifts(self, protection: Protection) -> bool:
        """Tell whether the settings lift a protection."""
        if protection.name in self.lifted:
            return True
        if not self.spared or protection.name.startswith(f"{OWN}/"):
            return False
        return any(form.depth_on(protection.place) is not None for form in self.spared)


class Protection(Value):
    """What protects a place: the name, where it is, what it leads to, and why it matters.

    ``path`` is the name's own path, or the highest missing directory on the way to it; ``place`` is where that leads.
    ``lifted_by`` is the entry of ``allowProtected`` that lifts it, if that is not the name.
    """

    name: str
    path: str
    place: str
    why: str
    lifted_by: str = ""


def lifted(found: Iterable[Protection], search: Search) -> Iterable[Protection]:
    """Return protections without those that the settings lift."""
    if not search.lifted and not search.spared:
        return found
    return (protection for protection in found if not search.lifts(protection))


def place_meant(protection: Protection) -> str:
    """Return the place that is protected, also where a missing directory on the way to it stands for it."""
    names = [name.casefold() for name in protection.name.split("/")]
    last = protection.place.rpartition("/")[2].casefold()
    rest = names[names.index(last) + 1 :] if last in names else []
    return joined([*names_of(protection.place), *rest])


def meant(protection: Protection, place: str) -> Protection:
    """Return what protects a place itself, if a missing directory above it does in its stead."""
    above = names_of(protection.place)
    first, rest = above[-1].casefold() if above else "", names_of(place)[len(above) :]
    if protection.path != protection.place or not rest or rest[0].casefold() not in INNER.get(first, {}):
        return protection
    return _inner(first, rest[0].casefold(), joined([*above, rest[0]]))


def protected_by(place: str, root: str, search: Search, places: Places) -> Protection | None:
    """Return what protects a place in the writable tree at ``root``, ``None`` if nothing does.

    Both are places (no links in them). Protected names that are links, and what those lead to, are found by ``find``.
    """
    names = names_of(place)
    top = len(names_of(root))
    for home in search.homes:
        if is_at_or_below(place, home) and reaches(root, home):
            from stockade.policy.home_names import protected_in_home

            own = protected_in_home(place, root, home, search, places)
            if own is not None:
                return own
    own = _as_repository(root, names[top:], search, places)
    if own is not None:
        return own
    for depth in range(min(len(names), top + search.depth + 1)):
        if not UNSEARCHED.isdisjoint(name.casefold() for name in names[top:depth]):
            return None
        # A name that the root itself bears, or that stands above it, counts in any case.
        first = names[depth].casefold()
        at_root = (depth < top and first in NAMES) or (depth <= top and first not in UNKEPT)
        protection = _held(names[:depth], names[depth:], search, places, at_root=at_root)
        if protection is not None:
            return protection
    return None


def find(root: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield every protection in the writable tree at the place ``root``: the missing ones too where they count."""
    yield from around(root, search, places)
    yield from absent(root, search, places)
    yield from _find(root, 0, search, places)


def around(root: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield what names above the writable tree at ``root``, or its own name, protect at it or in it."""
    names = names_of(root)
    for depth, name in enumerate(names, start=1):
        for found in _around(joined(names[:depth]), name.casefold(), places):
            if is_at_or_below(root, found.path):
                yield found.but(path=root, place=root)
            elif is_at_or_below(found.path, root):
                yield found
    for home in search.homes:
        if reaches(root, home):
            from stockade.policy.home_names import find_in_home

            yield from find_in_home(home, root, places, search)
    if not _is_in_git(root) and _is_repository(root, places):
        yield from find_in_store(root, places)


def reaches(root: str, home: str) -> bool:
    """Tell whether a writable tree may hold names of a home; a project in it does not."""
    if is_at_or_below(home, root):
        return True
    if not is_at_or_below(root, home):
        return False
    first = names_of(root)[len(names_of(home))]
    return first.startswith(".") or first.casefold() in _PLAIN_TOPS


def _as_repository(root: str, names: list[str], search: Search, places: Places) -> Protection | None:
    """Judge ``names`` as a path in a writable tree that is a repository itself, or would become one."""
    if _is_in_git(root):
        return None
    missing = _unmade(root, places)
    if missing is None:
        return _within(".git", root, names, search, places, at_root=True)
    if not search.bare or search.lifts(missing):
        return None
    return missing if missing.path == joined([*names_of(root), *names[:1]]) else None


def _unmade(root: str, places: Places) -> Protection | None:
    """Return what must not be made, or the directory ``root`` would be a repository; ``None`` if it is one."""
    for name in REPOSITORY:
        path = _below(root, name)
        if not places.exists(path):
            return Protection(name, path, path, BARE)
    return None


def _is_repository(directory: str, places: Places) -> bool:
    """Tell whether a directory is a repository. One that git is making becomes one last, after its hooks and config."""
    return _unmade(directory, places) is None


def _is_in_git(root: str) -> bool:
    return any(name.casefold() == ".git" for name in names_of(root))


def _around(path: str, folded: str, places: Places) -> Iterator[Protection]:
    if folded in NAMES:
        yield Protection(folded, path, path, NAMES[folded])
    elif folded in INNER and places.is_directory(path):
        if folded not in UNKEPT:
            yield from _absent_entries(folded, path, places)
        yield from _entries(folded, path, [], places)
    elif folded == ".git" and places.exists(path):
        yield _git_file(path, path)


def protected_in_store(place: str, store: str, search: Search, places: Places) -> Protection | None:
    """Return what protects a place in the repository ``store`` (both without links), ``None`` if nothing does."""
    return _within(".git", store, names_of(place)[len(names_of(store)) :], search, places, at_root=True)


def find_in_store(store: str, places: Places) -> Iterator[Protection]:
    """Yield every protection in the repository ``store``: the missing ones too."""
    yield from _absent_entries(".git", store, places)
    yield from _entries(".git", store, [], places)


def _held(above: list[str], names: list[str], search: Search, places: Places, *, at_root: bool) -> Protection | None:
    """Judge the first of ``names`` as an entry of the directory ``above``."""
    first = names[0].casefold()
    path = joined([*above, names[0]])
    found: Protection | None = None
    if first in NAMES:
        found = Protection(first, path, path, NAMES[first]) if at_root or places.exists(path) else None
    elif first in INNER:
        if at_root and first == ".git" and search.staged and _is_unborn(path, places):
            return None
        if at_root and not places.exists(path):
            # Who may make all that is protected in it may make it.
            found = next((_inner(first, name, path) for name in search.inner(first)), None)
        elif first == ".git" and places.exists(path) and not places.is_directory(path):
            found = _git_file(path, path)
        else:
            return _within(first, path, names[1:], search, places, at_root=at_root)
    return None if found is None or search.lifts(found) else found


def _within(
    first: str, path: str, names: list[str], search: Search, places: Places, *, at_root: bool
) -> Protection | None:
    """Judge ``names`` as a path inside the ``.git`` or ``.claude`` (so ``first`` says) at ``path``."""
    folded = [name.casefold() for name in names]
    for length in range(1, len(names) + 1):
        if not _is_inner(first, folded[:length], search.inner(first)):
            continue
        found = joined([*names_of(path), *names[:length]])
        above = joined([*names_of(path), *names[: length - 1]])
        kept = at_root if length == 1 else _is_kept(folded[:length], above, places)
        if kept or places.exists(found) or (length == 1 and first == ".git" and _is_missed(folded[0], path, places)):
            protection = _inner(first, folded[length - 1], found)
            if not search.lifts(protection):
                return protection
    return None


def _is_inner(first: str, names: list[str], entries: Mapping[str, str]) -> bool:
    """Tell whether these folded names lead from ``.git`` or ``.claude`` to a protected entry."""
    if names[-1] not in entries:
        return False
    if len(names) == 1:
        return True
    if first != ".git" or len(names) < len(("modules", "name", "hooks")):
        return False
    return names[0] == "modules" or (names[0] == "worktrees" and names[2:] in _OF_A_WORKTREE)


def _is_kept(names: list[str], directory: str, places: Places) -> bool:
    """Tell whether an entry deep in ``.git``, by its folded names and the place that holds it, must not be made."""
    if names[0] == "worktrees":
        return names[2:] in _OF_A_WORKTREE and places.is_directory(directory)
    return names[0] == "modules" and _is_repository(directory, places)


def _is_missed(name: str, directory: str, places: Places) -> bool:
    """Tell whether an entry of a ``.git`` below the root of a tree must not be made."""
    if name not in _OF_A_REPOSITORY or not _is_repository(directory, places):
        return False
    return name != "config.worktree" or _has_worktree_config(directory, places)


def _has_worktree_config(directory: str, places: Places) -> bool:
    # Where the word stands does not matter: no syntax of git's hides it, and to protect too much does no harm here.
    config = places.config(_place(_below(directory, "config"), places))
    return config is not None and b"worktreeconfig" in config.lower()


def _inner(first: str, name: str, path: str, place: str = "") -> Protection:
    return Protection(f"{first}/{name}", path, place or path, INNER[first][name])


def _git_file(path: str, place: str) -> Protection:
    return Protection(".git", path, place, _GIT_FILE, place)


def _absent_entries(first: str, directory: str, places: Places) -> Iterator[Protection]:
    for name in INNER[first]:
        path = joined([*names_of(directory), name])
        if not places.exists(path):
            yield _inner(first, name, path)


def absent(root: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield what is protected at the root of a writable tree although it does not exist."""
    for name, why in NAMES.items():
        path = joined([*names_of(root), name])
        if name not in UNKEPT and not places.exists(path):
            yield Protection(name, path, path, why)
    unmade = None if _is_in_git(root) or not search.bare else _unmade(root, places)
    if unmade is not None:
        yield unmade
    for first in (name for name in INNER if name not in UNKEPT):
        for name in INNER[first]:
            path = joined([*names_of(root), first, name])
            if first == ".git" and is_staged(root, search, places):
                continue
            trail = follow(path, places)
            missing = None if trail.looped else first_missing(trail.place, places)
            if missing is not None:
                # Where the root itself is missing, it is not the root that is protected.
                yield _inner(
                    first, name, joined([*names_of(root), first]) if is_at_or_below(root, missing) else missing
                )


def is_staged(root: str, search: Search, places: Places) -> bool:
    """Tell whether a repository that commands make at the root of a writable tree is looked at before it counts."""
    if not search.staged or _is_in_git(root):
        return False
    return places.is_directory(root) and _is_unborn(_below(root, ".git"), places)


def _is_unborn(path: str, places: Places) -> bool:
    """Tell whether a ``.git`` is missing, or an empty directory, which is no repository; a stage may be in it."""
    return not places.exists(path) or (places.is_directory(path) and set(places.names(path)) <= {STAGE})


def _find(directory: str, level: int, search: Search, places: Places) -> Iterator[Protection]:
    for name in places.names(directory):
        path, folded = joined([*names_of(directory), name]), name.casefold()
        if folded in HELD:
            yield from held_at(path, folded, places)
        if folded not in UNSEARCHED and level < search.depth and places.is_directory(path):
            yield from _find(path, level + 1, search, places)


def held_at(path: str, folded: str, places: Places) -> Iterator[Protection]:
    """Yield the protections at one existing entry of a searched directory; ``folded`` is its name, one of ``HELD``."""
    if folded in NAMES:
        yield Protection(folded, path, _place(path, places), NAMES[folded])
    else:
        yield from _find_inner(folded, path, places)


def _find_inner(first: str, path: str, places: Places) -> Iterator[Protection]:
    place = _place(path, places)
    if first == ".git" and not places.is_directory(path):
        # The link itself; what it leads to is searched below, if it is a repository.
        yield _git_file(path, path)
        if not places.is_directory(place):
            yield _git_file(path, place)
            return
    yield from _entries(first, place, [], places)
    if first == ".git":
        listed = places.names(place)
        for name in INNER[first]:
            if name not in listed and _is_missed(name, place, places):
                yield _inner(first, name, _below(place, name))


def _entries(first: str, directory: str, above: list[str], places: Places) -> Iterator[Protection]:
    listed = places.names(directory)
    if above:
        spelled = {name.casefold() for name in listed}
        for name in INNER[first]:
            if name not in spelled and _is_kept([*above, name], directory, places):
                yield _inner(first, name, _below(directory, name))
    entries = INNER[first]
    for name in listed:
        path, names = _below(directory, name), [*above, name.casefold()]
        if _is_inner(first, names, entries):
            yield _inner(first, names[-1], path, _place(path, places))
        elif first == ".git" and names[0] in ("modules", "worktrees") and places.is_directory(path):
            yield from _entries(first, path, names, places)


def _place(path: str, places: Places) -> str:
    """Return where an entry of a directory leads; nothing above it is a link."""
    return path if places.link(path) is None else follow(path, places).place


def _below(directory: str, name: str) -> str:
    return f"{'' if directory == '/' else directory}/{name}"
