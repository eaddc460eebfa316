"""A ``.git`` *file* at the root of a writable tree: where its repository is, if it may be believed.

In a linked worktree or a submodule ``.git`` is a file that names a directory elsewhere. Commits write there, so that
directory (the *store*) is opened together with the tree, save what is protected in it (``stockade.policy.protected``).
The file may come from a stranger, so it is believed only where the other side confirms it:

- a worktree: ``gitdir: <store>/worktrees/NAME``; the file ``gitdir`` there names this very ``.git`` file, the file
  ``commondir`` leads to that same store and nowhere else, and the store holds ``HEAD``, ``objects`` and ``refs``;
- a submodule: ``gitdir: .../.git/.../modules/NAME``, which is such a store itself; its ``config`` sets
  ``core.worktree`` to a path that leads back to this tree.

Every file that is read must be a regular file of this user, so nobody else can confirm anything.
Source of truth: gitrepository-layout(5), git-worktree(1), git-config(1).
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.errors import InvalidTextError
from stockade.policy.path_pattern import joined, names_of
from stockade.policy.places import follow
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.places import Places


class GitLink(Value):
    """A ``.git`` file. ``store`` is the repository to open; empty if the file is not followed, and ``why`` says why."""

    file: str
    store: str = ""
    why: str = ""


def git_link_at(root: str, places: Places) -> GitLink | None:
    """Read the ``.git`` file at the place ``root``; ``None`` if there is none, or another kind of thing."""
    file = _below(root, ".git")
    written = places.text(file)
    if written is None:
        return None
    prefix, colon, target = written.partition(":")
    if prefix != "gitdir" or not colon or not target.strip():
        return GitLink(file, why="it does not say where the repository is")
    directory = _led(root, target, places)
    if directory is None:
        return GitLink(file, why="the path in it leads nowhere")
    names = names_of(directory)
    if names[-2:-1] == ["worktrees"]:
        return _worktree(file, directory, places)
    if "modules" in names[:-1] and ".git" in names[: names.index("modules")]:
        return _submodule(file, root, directory, places)
    return GitLink(file, why="it leads neither into the worktrees nor into the modules of a repository")


def _worktree(file: str, directory: str, places: Places) -> GitLink:
    store = joined(names_of(directory)[:-2])
    back = places.text(_below(directory, "gitdir"))
    common = places.text(_below(directory, "commondir"))
    if back is None or _led(directory, back, places) != file:
        return GitLink(file, why="the worktree that it names does not point back to it")
    if common is None or _led(directory, common, places) != store or not _is_store(store, places):
        return GitLink(file, why="the worktree that it names belongs to no repository")
    return GitLink(file, store)


def _submodule(file: str, root: str, directory: str, places: Places) -> GitLink:
    if not _is_store(directory, places):
        return GitLink(file, why="the directory that it names is no repository")
    config = places.text(_below(directory, "config"))
    tree = None if config is None else _worktree_setting(config)
    if tree is None or _led(directory, tree, places) != root:
        return GitLink(file, why="the repository that it names does not point back to it")
    return GitLink(file, directory)


def _is_store(directory: str, places: Places) -> bool:
    holds = all(places.is_directory(_below(directory, name)) for name in ("objects", "refs"))
    return holds and places.text(_below(directory, "HEAD")) is not None


def _led(base: str, written: str, places: Places) -> str | None:
    """Return the place of a path that a file in ``base`` holds, ``None`` if it has none."""
    path = written.strip("\r\n").strip(" ")
    if not path or "\n" in path or "\0" in path:
        return None
    trail = follow(path if path.startswith("/") else f"{base}/{path}", places)
    return None if trail.looped else trail.place


def _worktree_setting(config: str) -> str | None:
    """Return ``core.worktree``, the last one of several; ``None`` if there is none, or git refuses the file."""
    from stockade.policy.git_config import read

    try:
        settings = read(os.fsencode(config))
    except InvalidTextError:
        return None
    return next((setting.value for setting in reversed(settings) if setting.name == "core.worktree"), None)


def _below(directory: str, name: str) -> str:
    return joined([*names_of(directory), name])
