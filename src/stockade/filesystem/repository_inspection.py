"""One look at the repositories that commands left: what git on the host would obey is set aside.

A repository is looked at with its config, its hooks and what its ``.git`` file or ``commondir`` leads to, then the
repositories at the gitlinks of its index, and so on. The rules:

- What a mount covered for every command that ran (``stockade.filesystem.cover``) was not theirs to change, and is left.
- Every step follows no link (``stockade.filesystem.handle``), and nothing outside the writable places is touched.
- Each repository is visited once in a look, so a circle ends. Of more than ``_MOST`` those that commands made lose
  their ``HEAD``, and of more than ``_MOST_LINKS`` gitlinks an index goes: a flood ends, and nothing passes in it.
- A file that was found harmless is not read again as long as its inode, size and times stay (ctime cannot be set).
- Nothing raises: what cannot be looked at is told or left, as git on the host could not use it either.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.filesystem.alternates import reach_of
from stockade.filesystem.finding import Finding
from stockade.filesystem.handle import Handle
from stockade.filesystem.repository_links import look_at_objects, look_at_written
from stockade.filesystem.signature import signature_of
from stockade.policy.git_config import read
from stockade.policy.git_index import GitIndexError, gitlinks
from stockade.policy.git_judgement import (
    alternates,
    common_directory,
    common_fault,
    is_aside,
    is_hook,
    judge_config,
    leading_to,
    linked_directory,
    worktree_of,
)
from stockade.policy.places import Disk, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.filesystem.cover import Covers
    from stockade.filesystem.finding import Memo

_MOST: Final = 10_000
_MOST_HOOKS: Final = 40
_LEGACY: Final = ("remotes", "branches")
#: So many gitlinks of one index are followed, and so many in one look.
_MOST_LINKS: Final = 2_000
_MOST_LINKS_OF_ALL: Final = 200_000
#: The prompt that comes with git shows these numbers, and bash runs what is in them.
_STEPS: Final = {"rebase-merge": ("msgnum", "end"), "rebase-apply": ("next", "last")}
#: What a repository has of its own: no submodule is in there.
_OWN_PARTS: Final = frozenset({"objects", "refs", "hooks", "info", "logs", "worktrees", "modules", "lfs"})
_LARGEST_INDEX: Final = 1 << 28
_DEEPEST_MODULE: Final = 32
_MOST_MODULES: Final = 100_000
_DEEPEST_CHAIN: Final = 8
_TOO_MANY: Final = "there are more repositories than can be looked at"
_TOO_LARGE: Final = "it is larger than an index of any use"
_ELSEWHERE: Final = "git on the host would take objects from where commands may not write"
_SHA1: Final = 20
_SHA256: Final = 32


class RepositoryInspection:
    """One look."""

    def __init__(  # noqa: PLR0913 - what a look must know, all named
        self,
        covers: Covers,
        memo: Memo,
        *,
        configs: bool,
        spared: Callable[[str], bool],
        named: Callable[[str, str], Iterable[str]] = lambda _common, _worktree: (),
        since: int = 0,
        last: bool = True,
        lifted: frozenset[str] = frozenset(),
        made: Iterable[str] = (),
    ) -> None:
        """Take what commands could not change; ``configs`` may be left alone, and so is what is ``spared``.

        ``lifted`` are other protected names that may be left alone.
        ``named`` tells which files in a work tree configs of the user name for its repository: git would run them.
        ``since`` is when the first command started; ``last``: none of them runs any more. In the directories ``made``
        there is a repository that becomes the host's only now, whenever it was made.
        """
        self._made = frozenset(made)
        self._named_by_user = named
        self._since = since
        self._last = last
        self._covers = covers
        self._memo = memo
        self._configs = configs
        self.lifted = lifted
        self._spared = spared
        self._visited: set[str] = set()
        self._stores: set[tuple[str, str]] = set()
        self._disk = Disk()
        self._depth = 0
        self._followed = 0
        self._todo: list[str] = []
        self.findings: list[Finding] = []

    def look_at(self, holders: Iterable[str]) -> None:
        """Look at the repositories of these directories (where ``.git`` is), and at all that their indexes lead to."""
        self._todo += holders
        while self._todo:
            holder = self._todo.pop()
            if holder in self._visited:
                continue
            self._visited.add(holder)
            handle = Handle.reach(holder)
            if handle is not None:
                with handle:
                    self._holder(handle)

    def look_at_bare(self, directory: str, since: int) -> None:
        """Look at a directory that is a repository itself; what is older than ``since`` in it is not a command's."""
        handle = Handle.reach(directory)
        if handle is not None:
            with handle:
                self._repository(handle, "", since=since)
        self.look_at(())

    def offend(self, handle: Handle, name: str, why: str, since: int = 0, end: str = "") -> bool:
        """Set an entry aside, unless a command could not have made it; tell whether it was one that counts.

        Its new name has this ``end``.
        """
        path = f"{handle.path}/{name}"
        status = handle.status(name)
        # A file with content may look like a placeholder; what it says was judged before.
        if status is None or status.st_ctime_ns < since:
            return False
        if not (stat.S_ISREG(status.st_mode) and status.st_size) and handle.is_kept(name):
            return False
        if self._covers.root_of(path) is None or self._spared(path):
            return False
        signature = signature_of(status)
        if (path, signature) in self._memo.told:
            return True
        try:
            with handle.writable():
                kept = handle.set_aside(name, end)
        except OSError as error:
            self._memo.told.add((path, signature))
            self.findings.append(Finding(path, "", why, error.strerror or str(error)))
            return True
        self.findings.append(Finding(path, f"{handle.path}/{kept}", why))
        return True

    # One repository

    def _holder(self, handle: Handle) -> None:
        """Look at the ``.git`` of a directory."""
        status = handle.status(".git")
        if status is None or handle.is_kept(".git"):
            return
        if stat.S_ISDIR(status.st_mode):
            below = handle.below(".git")
            if below is not None:
                with below:
                    self._repository(below, handle.path)
        elif stat.S_ISLNK(status.st_mode):
            self.offend(handle, ".git", "git on the host follows this link to a repository")
        elif stat.S_ISREG(status.st_mode):
            self._linked(handle)

    def _linked(self, handle: Handle) -> None:
        directory = linked_directory(handle.content(".git"), handle.path)
        if directory is None:
            return
        if not directory:
            self.offend(handle, ".git", "git on the host would take its repository from where nobody can tell")
            return
        straight = self._straight(directory)
        if not straight:
            self.offend(handle, ".git", "git on the host would be led through links to a repository")
            return
        common = common_directory(straight)
        if self._covers.root_of(f"{common}/hooks") is None and not self._leads_back(straight, handle.path):
            self.offend(handle, ".git", "git on the host would use your repository with the files in here", self._since)
            return
        below = Handle.reach(straight)
        if below is not None:
            with below:
                self._repository(below, handle.path)

    @staticmethod
    def _leads_back(directory: str, holder: str) -> bool:
        """Tell whether a repository says itself that its files are in ``holder``.

        To any other one, paths in its config mean files here then.
        """
        store = Handle.reach(directory)
        if store is None:
            return True  # nothing is there
        with store:
            if common_directory(directory) != directory:
                text = store.content("gitdir")
                return text is not None and leading_to(os.fsdecode(text.rstrip(b"\r\n")), directory) == f"{holder}/.git"
            return worktree_of(store.content("config"), directory) == holder

    def _straight(self, path: str) -> str:
        """Return a path with the links on its way followed, empty if a command could have made one of them."""
        trail = follow(path, self._disk)
        if trail.looped or any(self._covers.root_of(step.link) is not None for step in trail.steps):
            return ""
        return trail.place

    def _repository(self, handle: Handle, worktree: str, *, above: str = "", since: int = 0) -> None:
        """Look at a repository's own files, and note the directories at the gitlinks of its index."""
        if (handle.path, worktree) in self._stores:
            return
        self._stores.add((handle.path, worktree))
        # Without a HEAD git takes it for no repository. What is older than the commands is looked at in any case.
        if len(self._stores) > _MOST and self.offend(handle, "HEAD", _TOO_MANY, max(since, self._since)):
            return
        self._depth += 1
        if self._depth > _DEEPEST_CHAIN:
            self.offend(handle, "commondir", "one repository leads to the next, without an end")
        else:
            self._common(handle, worktree, since)
        self._depth -= 1
        led: list[str] = []
        for name in () if self._configs else ("config", "config.worktree"):
            led += self._config(handle, name, worktree, above, since)
        self._hooks(handle, since)
        for path in led:
            straight = self._straight(path)
            if not straight:
                self.offend(handle, "config", "git on the host would be led through links to another repository", since)
            self._named(straight or path)
        # Of a repository that became the host's just now, nothing is older than the commands.
        started = 0 if (worktree or above) in self._made else self._since
        for directory in _LEGACY:
            self._remotes(handle, directory, started)
        self._modules(handle, worktree or above)
        self._objects(handle, since, started)
        self._steps(handle, since)
        look_at_written(handle, self.offend, max(since, started))
        if worktree:
            self._programs(handle, worktree)
            self._todo += self._links(handle, worktree)

    def _common(self, handle: Handle, worktree: str, since: int) -> None:
        if handle.status("commondir") is None:
            return
        fault = common_fault(handle.content("commondir"), handle.path)
        if fault and ".git/commondir" not in self.lifted:
            self.offend(handle, "commondir", fault, since)
            return
        common = common_directory(handle.path)
        if common != handle.path:
            other = Handle.reach(common)
            if other is not None:
                with other:
                    own = common.removesuffix("/.git") if common.endswith("/.git") else worktree
                    self._repository(other, own, since=since)

    def _config(self, handle: Handle, name: str, worktree: str, above: str, since: int) -> list[str]:
        path = f"{handle.path}/{name}"
        if self._covers.root_of(path) is None:
            return []
        status = handle.status(name)
        if status is None or status.st_ctime_ns < since:
            return []
        signature = signature_of(status)
        known = self._memo.harmless.get(path)
        if known is not None and known[0] == signature:
            return list(known[1])
        if not stat.S_ISREG(status.st_mode):
            self.offend(handle, name, "git on the host reads its config there, and it is no ordinary file")
            return []
        verdict = judge_config(handle.content(name), handle.path, worktree, above)
        if verdict.fault:
            self.offend(handle, name, f"git on the host obeys it: {verdict.fault}")
            return []
        self._memo.harmless[path] = signature, verdict.paths
        return list(verdict.paths)

    def _hooks(self, handle: Handle, since: int) -> None:
        path = f"{handle.path}/hooks"
        status = None if ".git/hooks" in self.lifted else handle.status("hooks")
        if status is None or self._covers.root_of(path) is None:
            return
        if stat.S_ISLNK(status.st_mode):
            self.offend(handle, "hooks", "git on the host runs the programs that this link leads to", since)
        if not stat.S_ISDIR(status.st_mode):
            return
        hooks = handle.below("hooks")
        if hooks is None:
            return
        with hooks:
            names = hooks.names()
            found = None if names is None else [name for name in names if is_hook(name) and _is_runnable(hooks, name)]
            if found is not None and len(found) <= _MOST_HOOKS:
                # A directory that was moved here brings files that are older than the move.
                oldest = 0 if status.st_ctime_ns >= since else since
                for name in found:
                    self.offend(hooks, name, f"git on the host runs it as its {escape(name, 60)} hook", oldest)
                return
        self.offend(handle, "hooks", "git on the host runs the programs in it", since)

    def _remotes(self, handle: Handle, directory: str, since: int) -> None:
        """Look at remotes as git kept them before it had a config: what is new there, a command made."""
        why = "git on the host takes a remote from it"
        below = handle.below(directory)
        if below is None:
            if handle.is_link(directory):
                self.offend(handle, directory, why, since)
            return
        with below:
            names = below.names()
            if names is None:
                self.offend(handle, directory, why, since)
                return
            # A directory that was moved here brings files that are older than the move.
            oldest = 0 if below.changed() >= since else since
            for name in names:
                self.offend(below, name, why, oldest)

    def _named(self, path: str) -> None:
        """Look at a repository that a remote names by its path: git on the host runs its hooks when it pushes there."""
        if self._covers.root_of(path) is None or path in self._visited:
            return
        handle = Handle.reach(path)
        if handle is None:
            return
        with handle:
            if is_bare(handle):
                self._repository(handle, "")
        self._todo.append(path)

    def _objects(self, handle: Handle, since: int, started: int) -> None:
        """Look at where a repository takes objects from: by a list of others, or by a link.

        A ref may name any object there. Git on the host reads what the walls may hide, and a push would send it away.
        """
        since = max(since, started)
        if handle.is_link("objects"):
            self.offend(handle, "objects", _ELSEWHERE, since)
            return
        objects = handle.below("objects")
        if objects is None:
            return
        with objects:
            look_at_objects(objects, self.offend, _ELSEWHERE, since)
            info = objects.below("info")
            if info is None:
                return
            with info:
                status = info.status("alternates")
                if status is None:
                    return
                if self._memo.alternates.is_another(objects.path, status):
                    # It was moved here with its directory, and may be older than that.
                    moved = max(info.changed(), objects.changed())
                    since = 0 if moved >= since else since
                reach = reach_of(objects.path)
                if self._memo.alternates.leads_elsewhere(objects.path, reach):
                    since = 0  # the list is older than what it leads through now
                others = alternates(info.content("alternates"), objects.path)
                if others is None or not all(map(self._straight, others)) or self._is_beyond(reach):
                    self.offend(info, "alternates", _ELSEWHERE, since)

    def _is_beyond(self, places: Iterable[str]) -> bool:
        return any(self._covers.root_of(place) is None for place in places)

    def _modules(self, handle: Handle, worktree: str) -> None:
        """Look at the repositories of submodules, which git on the host takes as soon as a submodule is checked out."""
        modules = handle.below("modules")
        if modules is None:
            if handle.is_link("modules"):
                self.offend(handle, "modules", "git on the host follows this link to repositories of submodules")
            return
        with modules:
            names = modules.names(_MOST_MODULES)
            if names is None:
                self.offend(handle, "modules", "it has more entries than can be looked at")
            self._walk_modules(modules, names or (), worktree, depth=0)

    def _walk_modules(
        self, modules: Handle, names: Iterable[str], worktree: str, *, depth: int, own: bool = False
    ) -> None:
        """Look at the entries of a directory below ``modules``: a submodule's name may hold slashes."""
        for name in names:
            if modules.is_link(name) and not is_aside(name):
                self.offend(modules, name, "git on the host follows this link to the repository of a submodule")
            # These are a repository's own only in a repository; elsewhere a submodule may have such a name.
            below = None if own and name in _OWN_PARTS else modules.below(name)
            if below is None:
                continue
            with below:
                if bare := is_bare(below):
                    self._repository(below, "", above=worktree)
                deeper = below.names(_MOST_MODULES)
                if depth >= _DEEPEST_MODULE:
                    self.offend(modules, name, "it lies deeper than the repository of any submodule")
                elif deeper is None:
                    self.offend(modules, name, "it has more entries than can be looked at")
                else:
                    self._walk_modules(below, deeper, worktree, depth=depth + 1, own=bare)

    def _programs(self, handle: Handle, worktree: str) -> None:
        """Look at what the user's own configs name by a path that is relative to the work tree."""
        for path in self._named_by_user(common_directory(handle.path), worktree):
            above, _, name = path.rpartition("/")
            holder = Handle.reach(above)
            if holder is not None:
                with holder:
                    self.offend(holder, name, "git on the host runs it, as a config of yours says")

    def _steps(self, handle: Handle, since: int) -> None:
        """Look at the numbers of a rebase under way."""
        for directory, names in _STEPS.items():
            below = handle.below(directory)
            if below is not None:
                with below:
                    for name in names:
                        text = below.content(name)
                        if below.status(name) is not None and not (text or b"x").strip().isdigit():
                            self.offend(below, name, "a shell on the host runs what is in it, in a prompt", since)

    # Gitlinks

    def _links(self, handle: Handle, worktree: str) -> list[str]:
        status = handle.status("index")
        if status is None or not stat.S_ISREG(status.st_mode):
            if status is not None and stat.S_ISLNK(status.st_mode):
                self.offend(handle, "index", "git on the host would be led through a link to its index")
            return []
        signature = signature_of(status)
        known = self._memo.indexes.get(handle.path)
        if known is None or known[0] != signature:
            try:
                known = signature, self._read_links(handle)
            except GitIndexError as error:
                # While commands run, somebody may be writing it, in several steps.
                if self._last:
                    self.offend(handle, "index", f"git on the host could be led elsewhere by it: {error.message}")
                return []
            self._memo.indexes[handle.path] = known
            if not self._last:
                self._memo.hasty.add(handle.path)
        self._followed += len(known[1])
        if len(known[1]) > _MOST_LINKS or self._followed > _MOST_LINKS_OF_ALL:
            self.offend(handle, "index", "it has more gitlinks than can be looked at")
            return []
        if any(path.endswith("/") and os.path.lexists(f"{worktree}/{path}") for path in known[1]):
            self.offend(handle, "index", "it leaves out a directory that is there, and git would look into that")
            return []
        paths = (f"{worktree}/{path}" for path in known[1])
        return [path for path in paths if self._covers.root_of(path) is not None]

    def _read_links(self, handle: Handle) -> tuple[str, ...]:
        data = handle.content("index", _LARGEST_INDEX)
        if data is None:
            status = handle.status("index")
            if status is not None and status.st_size > _LARGEST_INDEX:
                raise GitIndexError(_TOO_LARGE)
            return ()  # what cannot be read here, git on the host cannot read either
        return gitlinks(data, _hash_size(handle), lambda name: handle.content(name, _LARGEST_INDEX))


def _hash_size(handle: Handle) -> int:
    """Return the length of hashes in a repository, which its config tells."""
    common = Handle.reach(common_directory(handle.path))
    if common is None:
        return _SHA1
    with common:
        try:
            settings = read(common.content("config") or b"")
        except InvalidTextError:
            return _SHA1
    formats = [setting.value or "" for setting in settings if setting.name == "extensions.objectformat"]
    return _SHA256 if formats and formats[-1].casefold() == "sha256" else _SHA1


def is_bare(handle: Handle) -> bool:
    """Tell whether git takes a directory for a repository by itself (``is_git_directory`` in git's ``setup.c``)."""
    if handle.status("HEAD") is None:
        return False
    if handle.status("commondir") is not None:
        return True
    return handle.status("objects") is not None and handle.status("refs") is not None


def _is_runnable(handle: Handle, name: str) -> bool:
    status = handle.status(name)
    return status is not None and not stat.S_ISDIR(status.st_mode) and not handle.is_kept(name)
