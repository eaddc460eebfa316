"""When to look at what commands left, and at what: the inspection of one session.

``stockade.filesystem.inspection`` says what a look finds. Here stands what makes it cheap:

- Where the disk is watched, only directories with news are listed. Of each known repository the index is asked for
  its times, and read if they changed.
- For the only command of a program nothing was watched. At its end the times of the searched directories tell which of
  them changed: a command cannot set a ctime. The clock of the kernel is coarse, so a little earlier counts as well. If
  the clock was set meanwhile, or a disk's clock is not this machine's, every directory counts as changed.
- While commands run, a look follows every tenth of a second, or less often if looks take long. It needs no event, for
  there are writes that make none (to mapped memory). A command that runs on gets watches at the first of them.

Nothing here raises: a look that fails is a finding that says so.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.cover import Cover, Covers
from stockade.placeholder import is_kept
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.filesystem.finding import Finding
    from stockade.filesystem.inspection import Ground, Inspection
    from stockade.filesystem.memory import Memory
    from stockade.filesystem.plan import Plan
    from stockade.filesystem.terrain import Entries
    from stockade.policy.files import FileRules

#: Seconds between two looks while commands run.
INTERVAL: Final = 0.1
#: A look may take this part of the time, no more.
_SHARE: Final = 0.01
_COARSE: Final = 20_000_000


class _Moment(Value):
    """A moment by both clocks."""

    real: int
    steady: int

    @classmethod
    def now(cls) -> _Moment:
        return cls(time.time_ns(), time.monotonic_ns())

    def is_set_since(self) -> bool:
        """Tell whether somebody has set the clock since."""
        passed = time.time_ns() - self.real - (time.monotonic_ns() - self.steady)
        return abs(passed) > _COARSE // 2


class Inspector:
    """See the module. For one session."""

    def __init__(self) -> None:
        """Look at nothing yet."""
        self._inspection: Inspection | None = None
        self._covers: dict[int, Cover] = {}
        self._uncovered: set[str] = set()
        self._latest: Cover | None = None
        self._rules: FileRules | None = None
        self._memory: Memory | None = None
        #: The disk of which all is noted that the first command needs.
        self._ready: Memory | None = None
        #: Repositories in which something came or went where git writes, since the first of the commands started, and
        #: those in which directories did, since they were noted.
        self._stirred: set[str] = set()
        self._grown: set[str] = set()
        self._watched = False
        self._began = _Moment.now()
        self._trusted: dict[int, bool] = {}
        self._seen: frozenset[str] = frozenset()
        self._holders: tuple[str, ...] = ()
        self._bare: dict[str, tuple[int, int]] = {}
        self._spared: Callable[[str], bool] | None = None
        self._due: float | None = None
        self._awaited = False
        self._stale = False
        #: Whether there was a look since the first of the commands started.
        self.looked = False

    def prepare(self) -> None:
        """Note when a plan begins to be made: what happens from now on is not in it."""
        if not self._covers:
            self._began = _Moment.now()

    def get_ready(self, memory: Memory, *, watched: bool) -> None:
        """Note what is known before the first command, at a moment when this process has nothing else to do."""
        if self._memory is None:
            self._know(memory, watched=watched)
            self._ready = memory

    def begin(
        self, plan: Plan, rules: FileRules, memory: Memory, *, watched: bool, alone: bool, awaited: bool = False
    ) -> None:
        """Note that a command starts with this plan, or is ``awaited``; ``alone`` says that no other runs."""
        if alone and not (self._covers and self._awaited):
            self._covers.clear()
            self.looked = False
            if self._inspection is not None:
                self._inspection.begin()
            known = self._ready is memory or (watched and self._memory is memory)
            news = memory.take_news() if watched else None
            if not known or news or self._stale or self._has_other(rules):
                self._know(memory, watched=watched)
                self._stale = False
            if news is not None and (grown := self._grown | news.grown):
                self._looks().know_again(grown, memory)
                self._grown = set()
            self._stirred = set()
            self._memory, self._watched, self._ready = memory, watched, None
            if not watched:
                self._trusted = dict(self._clocks(plan))
        elif self._has_other(rules):
            self._know_more(memory)
        if self._rules is not rules:
            self._rules, self._spared = rules, None
        if self._latest is None or self._latest.plan is not plan:
            self._latest = Cover(plan)
        self._covers[id(plan)] = self._latest
        self._awaited = awaited
        if not awaited and self._due is None:
            self._due = time.monotonic() + INTERVAL

    @property
    def is_due(self) -> bool:
        """Whether a command may have left something since the last look."""
        return bool(self._covers)

    def left(self) -> float | None:
        """Return the seconds until the next look while commands run, or nothing if none is due."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def look(self, *, last: bool = False, made: Iterable[str] = ()) -> list[Finding]:
        """Look at what commands have left; with the ``last`` one of them, no further look is due.

        In the directories ``made`` there is a new repository.
        """
        if not self._covers or self._memory is None or self._rules is None:
            return []
        began = time.monotonic()
        try:
            return self._look(self._memory, self._rules, last=last, made=made)
        except Exception as error:  # noqa: BLE001 - whatever a hostile tree brings about must not end the session
            return [_failure(error)]
        finally:
            now = time.monotonic()
            self.looked = True
            self._due = None if last else now + max(INTERVAL, (now - began) / _SHARE)

    def keep(self, plans: Iterable[Plan]) -> None:
        """Forget all plans once no command runs: until then one may hold a descriptor of a command that has ended."""
        if not any(True for _ in plans):
            self._covers.clear()
            self._uncovered.clear()

    def uncover(self, paths: Iterable[str]) -> None:
        """Note that a protected place was missing for a while: a command may have made what is there now."""
        self._uncovered.update(paths)

    def watch(self, memory: Memory) -> None:
        """Go on with a disk that is watched; what was known when the command started stays."""
        memory.take_news()
        self._memory, self._watched = memory, True

    # What is known

    def _know(self, memory: Memory, *, watched: bool) -> None:
        """Note which directories and repositories are known when a command starts."""
        self._bare = {}
        seen, holders = self._known_in(memory.listed(), memory, watched=watched, more=False)
        self._seen = frozenset(seen)
        self._holders = tuple(holders)

    def _has_other(self, rules: FileRules) -> bool:
        """Tell whether commands ran under other rules than these: repositories may be known now that were not."""
        return self._rules is not None and self._rules is not rules

    def _know_more(self, memory: Memory) -> None:
        """Note what is known where other rules let commands write, while some run that could not: theirs stays."""
        roots = self._covers_now()
        listed = [(path, entries) for path, entries in memory.listed() if roots.root_of(path) is None]
        watched = self._watched and memory is self._memory
        new = [one for one in listed if one[0] not in self._seen]
        seen, holders = self._known_in(new, memory, watched=watched, more=True)
        self._seen = self._seen.union(seen)
        self._holders += tuple(holders)

    def _known_in(
        self, listed: Iterable[tuple[str, Entries]], memory: Memory, *, watched: bool, more: bool
    ) -> tuple[list[str], list[str]]:
        """Note what these directories hold, all of them or ``more``; return them, and those with a repository."""
        if self._inspection is not None:
            self._inspection.ask_again()
        seen: list[str] = []
        holders: list[str] = []
        stores: list[str] = []
        owned: list[str] = []
        for path, entries in listed:
            seen.append(path)
            kinds = dict(entries)
            if ".git" in kinds:
                holders.append(path)
                if kinds[".git"] == "directory":
                    owned.append(f"{path}/.git")
            if "objects" in kinds and "refs" in kinds:
                stores.append(path)
                if "/.git/" not in f"{path}/":
                    self._note_bare(path)
        watcher = memory if watched else None
        self._looks().know([*stores, *owned], owned, watcher, memory.known_entries, more=more)
        return seen, holders

    def _note_bare(self, path: str) -> None:
        try:
            status = os.lstat(path)
        except OSError:
            return
        self._bare[path] = status.st_dev, status.st_ino

    def _clocks(self, plan: Plan) -> Iterable[tuple[int, bool]]:
        """Tell of each disk whether its clock is ours: the placeholders were put into the roots a moment ago."""
        now = time.time_ns() + _COARSE
        for root in {placeholder.root for placeholder in plan.placeholders}:
            try:
                status = os.lstat(root)
            except OSError:
                continue
            yield status.st_dev, self._began.real - _COARSE <= status.st_ctime_ns <= now

    # Looking

    def _look(self, memory: Memory, rules: FileRules, *, last: bool, made: Iterable[str]) -> list[Finding]:
        settled = last and self._watched and memory.sees_all
        if self._watched:
            news = memory.take_news()
            self._stale |= bool(news)
            self._stirred |= news.stirred
            self._grown |= news.grown
            settled = settled and not news.lost
            changed: Iterable[str] = self._seen if news.lost else news.changed
            replaced: Iterable[str] = self._covers_now().roots if news.lost else news.replaced
        else:
            moved = self._moved()
            roots = set(self._covers_now().roots)
            changed = [path for path in moved if path in roots]
            replaced = [path for path in moved if path not in roots]
        changed = [*changed, *{path.rpartition("/")[0] or "/" for path in self._uncovered}]
        inspection = self._looks()
        if not self._watched:
            inspection.walk_again()
        ground = self._ground(rules, memory, settled=settled, last=last)
        return inspection.look(self._covers_now(), ground, changed, replaced, made)

    def _looks(self) -> Inspection:
        if self._inspection is None:
            from stockade.filesystem.inspection import Inspection

            self._inspection = Inspection()
        return self._inspection

    def _covers_now(self) -> Covers:
        return Covers([cover.without(self._uncovered) for cover in self._covers.values()])

    def _moved(self) -> list[str]:
        """Return the searched directories that have changed since the command started, by their times."""
        if self._began.is_set_since():
            return list(self._seen)
        since = self._began.real - _COARSE
        trusted = self._trusted
        found = []
        lstat = os.lstat
        for path in self._seen:
            try:
                status = lstat(path)
            except OSError:
                continue
            if status.st_ctime_ns >= since or not trusted.get(status.st_dev):
                found.append(path)
        return found

    def _ground(self, rules: FileRules, memory: Memory, *, settled: bool, last: bool) -> Ground:
        from stockade.filesystem.inspection import Ground
        from stockade.policy.protected_names import CONFIGS

        lifted = rules.lifted_names
        return Ground(
            depth=rules.search_depth,
            configs=lifted >= CONFIGS,
            lifted=lifted,
            spared=self._spares(rules),
            holders=self._holders + self._above(),
            bare=self._bare,
            seen=self._seen.__contains__,
            # Where the clock was set, nothing counts as old.
            since=0 if self._began.is_set_since() else self._began.real - _COARSE,
            named=lambda common, worktree: _named(common, worktree, rules.home),
            links=memory.known_gitlinks,
            settled=settled,
            last=last,
            again=last and self.looked,
            stirred=frozenset(self._stirred),
            watcher=memory if self._watched else None,
        )

    def _above(self) -> tuple[str, ...]:
        """Return the directories above the writable places that hold repositories: their indexes may lead into them."""
        found: dict[str, None] = {}
        for root in self._covers_now().roots:
            path = root
            while path:
                if path not in found and _is_held(path):
                    found[path] = None
                path = path.rpartition("/")[0]
        return tuple(found)

    def _spares(self, rules: FileRules) -> Callable[[str], bool]:
        """Return what tells whether the settings let commands leave something at a path."""
        if self._spared is None:
            if rules.left_allow:
                from stockade.policy.files import allowed_forms
                from stockade.policy.places import Disk

                forms = allowed_forms(rules.left_allow, rules, Disk())
                self._spared = lambda path: any(form.depth_on(path) is not None for form in forms)
            else:
                self._spared = _nothing
        return self._spared


def _is_held(directory: str) -> bool:
    """Tell whether a directory has a ``.git``, of whatever kind."""
    try:
        return not is_kept(f"{directory}/.git")
    except OSError:
        return False


def _named(common: str, worktree: str, home: str) -> Iterable[str]:
    """Yield what the user's configs, and that of a repository, name by a path that is relative to a work tree."""
    from stockade.policy.git_reference import references
    from stockade.policy.git_repository import user_configs
    from stockade.policy.places import Disk, follow

    disk = Disk()
    for config in (*user_configs(home), f"{common}/config"):
        for found in references(config, follow(config, disk).place, (worktree,), home, disk):
            if found.path.startswith(f"{worktree}/"):
                yield os.path.normpath(found.path)


def _nothing(_path: str) -> bool:
    return False


def _failure(error: Exception) -> Finding:
    from stockade.filesystem.finding import unseen

    return unseen(f"{type(error).__name__}: {error}"[:200])
