"""What no setting opens for writing: files that a program on the host would obey the next time it starts.

The rules, for a place that lies in a writable tree:

- Names are compared without case, because some disks do. A protected name covers all below it.
- A name counts at the *level* of the directory that holds it: the root of the writable tree is level 0; ``.git/hooks``
  counts at the level of the directory that holds ``.git``. The deepest writable root above a place is its root.
- At level 0 a name is protected whether it exists or not. Missing directories on the way to it are protected too, for
  whoever makes ``.git`` makes ``.git/hooks``: so no command can ``git init`` in the root of a writable tree (in a
  directory below it can).
- Some names (``UNKEPT``) are protected at level 0 as below it: where they exist.
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
  missing is protected (``HEAD`` last, for git finds a file of that name confusing). If none is missing, the entries
  of ``.git`` are protected there.
- A *store* is a repository outside the tree that a ``.git`` file leads to (``stockade.policy.git_link``). In it the
  entries of ``.git`` are protected as at the root of a tree, and no other name is.

Renaming a directory above a protected place is the matter of the walls (they pin it), not of these names.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.path_pattern import is_at_or_below, joined, names_of
from stockade.policy.places import first_missing, follow
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.policy.places import Places

_SHELL: Final = "a shell on the host runs it at its start"
_EDITOR: Final = "an editor on the host runs what it names"
_GIT: Final = "git on the host obeys it and can be made to run programs by it"
_AGENT: Final = "an agent on the host obeys it"
_WALLS: Final = "it holds what a project denies to commands"
_OPENED: Final = "an editor on the host that opens this directory runs programs that it names"
_STARTED: Final = "an agent on the host that starts in this directory obeys it"
_ELSEWHERE: Final = "git on the host takes hooks and config from where it leads"
_BARE: Final = "with it the directory would be a repository itself, whose config git on the host obeys"

#: Why each single name is protected.
NAMES: Final[Mapping[str, str]] = {
    ".gitconfig": _GIT,
    ".gitmodules": _GIT,
    ".bashrc": _SHELL,
    ".bash_profile": _SHELL,
    ".zshrc": _SHELL,
    ".zprofile": _SHELL,
    ".profile": _SHELL,
    ".ripgreprc": "ripgrep on the host can be made to run programs by it",
    ".mcp.json": "an agent on the host starts the servers that it names",
    ".vscode": _EDITOR,
    ".idea": _EDITOR,
    ".zed": _EDITOR,
    ".helix": _EDITOR,
}
#: Directories of which only some entries are protected, and why.
INNER: Final[Mapping[str, Mapping[str, str]]] = {
    ".claude": {
        "commands": _AGENT,
        "agents": _AGENT,
        "hooks": "an agent on the host runs what is in it",
        "settings.json": _AGENT,
        "settings.local.json": _AGENT,
    },
    ".stockade": {"settings.json": _WALLS, "settings.local.json": _WALLS},
    ".cursor": {"mcp.json": _AGENT, "hooks.json": _AGENT},
    ".gemini": {"settings.json": _AGENT},
    ".codex": {"config.toml": _AGENT},
    ".git": {
        "hooks": "git on the host runs what is in it",
        "config": _GIT,
        "config.worktree": _GIT,
        "commondir": _ELSEWHERE,
    },
}
#: Names that may be made at the root of a writable tree, too: to keep each of them from being made would fill the
#: directory with placeholders. What a command makes there is set aside, as it is below the root; but not settings of
#: ours, for what nobody has trusted in them can only tighten.
UNKEPT: Final = frozenset({".zed", ".helix", ".cursor", ".gemini", ".codex", ".stockade"})
#: Names that programs of the host obey in whatever directory they are opened in, with why; made below the root of a
#: writable tree, they are set aside (``stockade.filesystem.inspection``). Of a directory with entries only those count.
#: Any setting of an editor may be an extension's that names a program, so its settings count whatever they say. Left
#: out are names that are obeyed in a home only (shell start-up files, ``.gitconfig``, ``.ripgreprc``), and
#: ``.gitmodules``, which is data of every repository with submodules: git takes no command from it.
OBEYED: Final[Mapping[str, Mapping[str, str]]] = {
    ".mcp.json": {"": "an agent on the host that starts in this directory starts the servers that it names"},
    ".idea": {"": _OPENED},
    ".vscode": {"settings.json": _OPENED, "tasks.json": _OPENED, "launch.json": _OPENED, "mcp.json": _OPENED},
    ".claude": {
        "commands": _STARTED,
        "agents": _STARTED,
        "hooks": _STARTED,
        "settings.json": _STARTED,
        "settings.local.json": _STARTED,
    },
    ".zed": {"": _OPENED},
    ".helix": {"": _OPENED},
    ".cursor": {"mcp.json": _STARTED, "hooks.json": _STARTED},
    ".gemini": {"settings.json": _STARTED},
    ".codex": {"config.toml": _STARTED},
}
#: Every (folded) name at which something is protected.
HELD: Final = frozenset((*NAMES, *INNER))
#: What ``sandbox.filesystem.allowGitConfig`` lifts.
CONFIGS: Final = frozenset({"config", "config.worktree"})
#: What a linked worktree keeps for itself, of all these.
_OF_A_WORKTREE: Final = (["config.worktree"], ["commondir"])
#: What git would obey in a repository below the root of a tree, and what must not be made there.
_OF_A_REPOSITORY: Final = ("hooks", "config", "config.worktree")
#: What makes a directory a repository.
_REPOSITORY: Final = ("refs", "objects", "HEAD")
#: Directories below which nothing is searched.
UNSEARCHED: Final = frozenset({"node_modules", ".git"})
_GIT_FILE: Final = "git on the host takes its repository from it"


class Search(Value):
    """How far protected names are looked for, and whether the configs of git are among them."""

    depth: int
    allow_git_config: bool = False

    def inner(self, name: str) -> Mapping[str, str]:
        """Return the protected entries of the directory with this (folded) name."""
        entries = INNER.get(name, {})
        if name == ".git" and self.allow_git_config:
            return {entry: why for entry, why in entries.items() if entry not in CONFIGS}
        return entries


class Protection(Value):
    """What protects a place: the name, where it is, what it leads to, and why it matters.

    ``path`` is the name's own path, or the highest missing directory on the way to it; ``place`` is where that leads.
    ``lifted_by`` names the setting that would lift it, if there is one.
    """

    name: str
    path: str
    place: str
    why: str
    lifted_by: str = ""


def protected_by(place: str, root: str, search: Search, places: Places) -> Protection | None:
    """Return what protects a place in the writable tree at ``root``, ``None`` if nothing does.

    Both are places (no links in them). Protected names that are links, and what those lead to, are found by ``find``.
    """
    names = names_of(place)
    top = len(names_of(root))
    own = _as_repository(root, names[top:], search, places)
    if own is not None:
        return own
    for depth in range(min(len(names), top + search.depth + 1)):
        if not UNSEARCHED.isdisjoint(name.casefold() for name in names[top:depth]):
            return None
        protection = _held(names[:depth], names[depth:], search, places, at_root=depth <= top)
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
        for found in _around(joined(names[:depth]), name.casefold(), search, places):
            if is_at_or_below(root, found.path):
                yield found.but(path=root, place=root)
            elif is_at_or_below(found.path, root):
                yield found
    if not _is_in_git(root) and _is_repository(root, places):
        yield from find_in_store(root, search, places)


def _as_repository(root: str, names: list[str], search: Search, places: Places) -> Protection | None:
    """Judge ``names`` as a path in a writable tree that is a repository itself, or would become one."""
    if _is_in_git(root):
        return None
    missing = _unmade(root, places)
    if missing is None:
        return _within(".git", root, names, search, places, at_root=True)
    return missing if missing.path == joined([*names_of(root), *names[:1]]) else None


def _unmade(root: str, places: Places) -> Protection | None:
    """Return what must not be made, or the directory ``root`` would be a repository; ``None`` if it is one."""
    for name in _REPOSITORY:
        path = _below(root, name)
        if not places.exists(path):
            return Protection(name, path, path, _BARE)
    return None


def _is_repository(directory: str, places: Places) -> bool:
    """Tell whether a directory is a repository. One that git is making becomes one last, after its hooks and config."""
    return _unmade(directory, places) is None


def _is_in_git(root: str) -> bool:
    return any(name.casefold() == ".git" for name in names_of(root))


def _around(path: str, folded: str, search: Search, places: Places) -> Iterator[Protection]:
    if folded in NAMES:
        yield Protection(folded, path, path, NAMES[folded])
    elif folded in INNER and places.is_directory(path):
        if folded not in UNKEPT:
            yield from _absent_entries(folded, path, search, places)
        yield from _entries(folded, path, [], search, places)
    elif folded == ".git" and places.exists(path):
        yield Protection(".git", path, path, _GIT_FILE)


def protected_in_store(place: str, store: str, search: Search, places: Places) -> Protection | None:
    """Return what protects a place in the repository ``store`` (both without links), ``None`` if nothing does."""
    return _within(".git", store, names_of(place)[len(names_of(store)) :], search, places, at_root=True)


def find_in_store(store: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield every protection in the repository ``store``: the missing ones too."""
    yield from _absent_entries(".git", store, search, places)
    yield from _entries(".git", store, [], search, places)


def _held(above: list[str], names: list[str], search: Search, places: Places, *, at_root: bool) -> Protection | None:
    """Judge the first of ``names`` as an entry of the directory ``above``."""
    first = names[0].casefold()
    path = joined([*above, names[0]])
    at_root = at_root and first not in UNKEPT
    if first in NAMES:
        return Protection(first, path, path, NAMES[first]) if at_root or places.exists(path) else None
    if first not in INNER:
        return None
    if at_root and not places.exists(path):
        return _inner(first, next(iter(INNER[first])), path)
    if first == ".git" and places.exists(path) and not places.is_directory(path):
        return Protection(".git", path, path, _GIT_FILE)
    return _within(first, path, names[1:], search, places, at_root=at_root)


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
            return _inner(first, folded[length - 1], found)
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
    lifted_by = "sandbox.filesystem.allowGitConfig" if first == ".git" and name in CONFIGS else ""
    return Protection(f"{first}/{name}", path, place or path, INNER[first][name], lifted_by)


def _absent_entries(first: str, directory: str, search: Search, places: Places) -> Iterator[Protection]:
    for name in search.inner(first):
        path = joined([*names_of(directory), name])
        if not places.exists(path):
            yield _inner(first, name, path)


def absent(root: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield what is protected at the root of a writable tree although it does not exist."""
    for name, why in NAMES.items():
        path = joined([*names_of(root), name])
        if name not in UNKEPT and not places.exists(path):
            yield Protection(name, path, path, why)
    unmade = None if _is_in_git(root) else _unmade(root, places)
    if unmade is not None:
        yield unmade
    for first in (name for name in INNER if name not in UNKEPT):
        for name in search.inner(first):
            path = joined([*names_of(root), first, name])
            trail = follow(path, places)
            missing = None if trail.looped else first_missing(trail.place, places)
            if missing is not None:
                # Where the root itself is missing, it is not the root that is protected.
                yield _inner(
                    first, name, joined([*names_of(root), first]) if is_at_or_below(root, missing) else missing
                )


def _find(directory: str, level: int, search: Search, places: Places) -> Iterator[Protection]:
    for name in places.names(directory):
        path, folded = joined([*names_of(directory), name]), name.casefold()
        if folded in HELD:
            yield from held_at(path, folded, search, places)
        if folded not in UNSEARCHED and level < search.depth and places.is_directory(path):
            yield from _find(path, level + 1, search, places)


def held_at(path: str, folded: str, search: Search, places: Places) -> Iterator[Protection]:
    """Yield the protections at one existing entry of a searched directory; ``folded`` is its name, one of ``HELD``."""
    if folded in NAMES:
        yield Protection(folded, path, _place(path, places), NAMES[folded])
    else:
        yield from _find_inner(folded, path, search, places)


def _find_inner(first: str, path: str, search: Search, places: Places) -> Iterator[Protection]:
    place = _place(path, places)
    if first == ".git" and not places.is_directory(path):
        # The link itself; what it leads to is searched below, if it is a repository.
        yield Protection(".git", path, path, _GIT_FILE)
        if not places.is_directory(place):
            yield Protection(".git", path, place, _GIT_FILE)
            return
    yield from _entries(first, place, [], search, places)
    if first == ".git":
        listed = places.names(place)
        for name in search.inner(first):
            if name not in listed and _is_missed(name, place, places):
                yield _inner(first, name, _below(place, name))


def _entries(first: str, directory: str, above: list[str], search: Search, places: Places) -> Iterator[Protection]:
    listed = places.names(directory)
    if above:
        spelled = {name.casefold() for name in listed}
        for name in search.inner(first):
            if name not in spelled and _is_kept([*above, name], directory, places):
                yield _inner(first, name, _below(directory, name))
    entries = search.inner(first)
    for name in listed:
        path, names = _below(directory, name), [*above, name.casefold()]
        if _is_inner(first, names, entries):
            yield _inner(first, names[-1], path, _place(path, places))
        elif first == ".git" and names[0] in ("modules", "worktrees") and places.is_directory(path):
            yield from _entries(first, path, names, search, places)


def _place(path: str, places: Places) -> str:
    """Return where an entry of a directory leads; nothing above it is a link."""
    return path if places.link(path) is None else follow(path, places).place


def _below(directory: str, name: str) -> str:
    return f"{'' if directory == '/' else directory}/{name}"
