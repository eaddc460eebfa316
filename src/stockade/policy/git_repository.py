"""The repositories that are known before a command runs, and what they lead to beyond their own files.

Known are: a repository at or above a writable root, one that the search for protected names found, one that a working
tree belongs to, and those that the index of a known one names by a *gitlink*, at any depth. Git on the host descends
into a gitlink unasked (``git status``), so the files of git there are protected as in a repository that was searched.

Of each, what its configs name is protected (``stockade.policy.git_reference``). The user's own configs count for every
repository, because a relative path in them is relative to each work tree. They also say whether git takes a directory
for a repository that only looks like one (``takes_bare``).
Source of truth: gitrepository-layout(5), gitsubmodules(7), git-config(1) "FILES".
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.git_reference import references, settings_of
from stockade.policy.path_pattern import joined, names_of
from stockade.policy.places import first_missing, follow
from stockade.policy.protected import Protection, held_at
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.policy.places import Places
    from stockade.policy.protected import Search

#: A command can name any number of gitlinks, and a plan must end: of one index so many are followed.
MOST_GITLINKS: Final = 1000
#: The name that lifts the protection of further configs as well.
CONFIG: Final = ".git/config"
_SHA1, _SHA256 = 20, 32


class GitRepository(Value):
    """Where a repository is: its index in ``directory``, its config in ``common``; ``tops`` are its work trees."""

    directory: str
    common: str
    tops: tuple[str, ...]


def led_to(
    roots: Iterable[str], found: Iterable[Protection], search: Search, home: str, places: Places
) -> Iterator[Protection]:
    """Yield what known repositories lead to. ``found`` are the protections in the writable trees at ``roots``."""
    todo = [*_around(roots, places), *_holding(found, places)]
    seen: set[GitRepository] = set()
    tops: dict[str, None] = {}
    while todo:
        repository = todo.pop()
        if repository in seen:
            continue
        seen.add(repository)
        tops.update(dict.fromkeys(repository.tops))
        yield from _named_by(_configs(repository, places), repository.tops, search, home, places)
        linked = list(_linked(repository, places))
        yield from linked
        todo += _holding(linked, places)
    own = ((config, follow(config, places).place) for config in user_configs(home))
    yield from _named_by(own, tuple(tops), search, home, places)


def user_configs(home: str) -> tuple[str, ...]:
    """Return where the configs of the user and of the machine are."""
    beside = os.environ.get("XDG_CONFIG_HOME", "")
    named = os.environ.get("GIT_CONFIG_GLOBAL", "")
    others = (named, beside and f"{beside}/git/config")
    usual = (f"{home}/.gitconfig", f"{home}/.config/git/config", "/etc/gitconfig")
    return (*usual, *(path for path in others if path.startswith("/") and path not in usual))


def takes_bare(homes: Iterable[str], places: Places) -> bool:
    """Tell whether git on the host takes a directory with ``refs``, ``objects`` and ``HEAD`` for a repository.

    It does unless ``safe.bareRepository`` is ``explicit`` in the last of its own configs that speaks of it. A further
    file that is included behind that could say otherwise, so that it does not count then.
    """
    return not all(_is_explicit(home, places) for home in homes)


def _is_explicit(home: str, places: Places) -> bool:
    beside = os.environ.get("XDG_CONFIG_HOME", "")
    folder = beside if beside.startswith("/") else f"{home}/.config"
    last = ""
    for config in ("/etc/gitconfig", f"{folder}/git/config", f"{home}/.gitconfig"):
        trail = follow(config, places)
        for setting in settings_of(
            None if trail.looped else places.config(trail.place), (b"barerepository", b"[include")
        ):
            if setting.section in ("include", "includeif"):
                last = ""
            elif setting.name == "safe.barerepository":
                last = setting.value or ""
    return last == "explicit"


def _around(roots: Iterable[str], places: Places) -> Iterator[GitRepository]:
    """Yield the repositories above the writable trees; what is in a tree is found by the search."""
    ways = (names_of(root)[:depth] for root in roots for depth in range(len(names_of(root))))
    for above in dict.fromkeys(map(joined, ways)):
        yield from _at(_below(above, ".git"), places)


def _holding(found: Iterable[Protection], places: Places) -> Iterator[GitRepository]:
    """Yield the repositories in which something was found to protect."""
    for protection in found:
        if protection.name == ".git/hooks":
            above, _, name = protection.path.rpartition("/")
            if name.casefold() == "hooks":
                holder, _, name = above.rpartition("/")
                yield _repository(above, (holder or "/",) if name.casefold() == ".git" else (), places)
        elif protection.name == ".git" and protection.path == protection.place:
            yield from _at(protection.path, places)


def _at(entry: str, places: Places) -> Iterator[GitRepository]:
    """Yield the repository of a ``.git``, be it a directory, a file or a link."""
    if not places.exists(entry):
        return
    place = _led(entry, places)
    if places.is_directory(place):
        yield _repository(place, (_parent(entry),), places)
    elif directory := _written(place, "gitdir:", _parent(place), places):
        yield _repository(directory, (_parent(entry),), places)


def _repository(directory: str, tops: tuple[str, ...], places: Places) -> GitRepository:
    common = _written(_below(directory, "commondir"), "", directory, places) or directory
    written = _setting(common, "core.worktree", places)
    trail = follow(written if written.startswith("/") else f"{directory}/{written}", places) if written else None
    elsewhere = () if trail is None or trail.looped or trail.place in tops else (trail.place,)
    return GitRepository(directory, common, (*tops, *elsewhere))


def _written(file: str, prefix: str, base: str, places: Places) -> str:
    """Return the place that a small file names behind a prefix; empty if it names none."""
    content = places.config(file) if _is_listed(file, places) else None
    path = "" if content is None else os.fsdecode(content).rstrip("\r\n")
    if not path.startswith(prefix) or "\0" in path:
        return ""
    path = path.removeprefix(prefix).strip(" ")
    trail = follow(path if path.startswith("/") else f"{base}/{path}", places) if path else None
    return "" if trail is None or trail.looped else trail.place


def _setting(common: str, name: str, places: Places) -> str:
    """Return the last value of a setting in the config of a repository; empty if there is none."""
    content = places.config(_led(_below(common, "config"), places))
    settings = settings_of(content, (name.rpartition(".")[2].encode(),))
    return next((setting.value or "" for setting in reversed(settings) if setting.name == name), "")


def _configs(repository: GitRepository, places: Places) -> Iterator[tuple[str, str]]:
    """Yield path and place of each config."""
    shared, own = _below(repository.common, "config"), _below(repository.directory, "config.worktree")
    yield shared, _led(shared, places)
    if _is_listed(own, places):
        yield own, _led(own, places)


def _named_by(
    configs: Iterable[tuple[str, str]], tops: tuple[str, ...], search: Search, home: str, places: Places
) -> Iterator[Protection]:
    for config, place in configs:
        for named in references(config, place, tops, home, places):
            if named.is_config and CONFIG in search.lifted:
                continue
            trail = follow(named.path, places)
            if not trail.looped:
                # Whoever makes the first missing directory on the way can make the rest.
                kept = first_missing(trail.place, places) or trail.place
                lifted_by = CONFIG if named.is_config else kept
                yield Protection(named.name, joined(names_of(named.path)), kept, named.why, lifted_by)


def _linked(repository: GitRepository, places: Places) -> Iterator[Protection]:
    """Yield what is protected in the repositories that an index names by gitlinks."""
    index = _below(repository.directory, "index")
    if not repository.tops or not _is_listed(index, places):
        return
    size = _SHA256 if _setting(repository.common, "extensions.objectformat", places) == "sha256" else _SHA1
    for link in places.gitlinks(index, size)[:MOST_GITLINKS]:
        for top in repository.tops:
            entry = joined([*names_of(top), *names_of(link), ".git"])
            # Git descends through no link on the way.
            if not follow(_parent(entry), places).steps and places.exists(entry):
                yield from held_at(entry, ".git", places)


def _is_listed(file: str, places: Places) -> bool:
    """Tell whether something is there; its directory has been listed for other names of git already."""
    directory, _, name = file.rpartition("/")
    return name in places.names(directory or "/")


def _led(path: str, places: Places) -> str:
    """Return where an entry of a directory leads; nothing above it is a link."""
    return path if places.link(path) is None else follow(path, places).place


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _below(directory: str, name: str) -> str:
    return f"{'' if directory == '/' else directory}/{name}"
