"""Rules and a disk become a plan. Nothing here changes anything.

The plan means what ``stockade.policy.files`` says, place by place. Where a mount cannot say it exactly, the plan is
the stricter one, and says so in a note:

- An allow on what does not exist opens nothing until it exists; a glob opens what exists now.
- A deny by a glob on a link also covers what the link leads to, by every name; and links that a deny or a protected
  name leads through are pinned, so that no command can choose where the rule leads next time.
- Where a protected link leads nowhere, the first missing directory on the way must stay missing.

Looser than the verdicts in three ways, each until the next command starts: what a glob denies is covered only if
it exists; so is a protected name in a writable tree that a command makes; and of a protected name that is missing only
the usual spelling is kept from being made, not those in capitals. And in one more way: walls know places, not the ways
to them, so that what is opened again behind a link which a deny names can be read through that link.

/proc and /dev are the sandbox's own and /sys is never writable, whatever the rules say.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.expansion import SPECIAL, expand
from stockade.filesystem.marks import Mark, Marks
from stockade.filesystem.plan import Mount, Operation, Placeholder, Plan
from stockade.filesystem.search import find_protected
from stockade.placeholder import CONTENTS, SETTINGS, shape_of
from stockade.policy.files import own_protections, survey, with_git_links
from stockade.policy.git_repository import led_to
from stockade.policy.path_pattern import is_at_or_below, names_of
from stockade.policy.places import first_missing, follow
from stockade.policy.protected import around, find_in_store, is_staged, lifted, place_meant, protected_by
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.filesystem.terrain import Terrain
    from stockade.placeholder import Shape
    from stockade.policy.files import FileRules, Ground, Reach
    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.protected import Protection
    from stockade.settings.layer import Sourced

_OWN: Final = ("/proc", "/dev")
#: Each directory with a placeholder takes two descriptors of the owner's. In so many directories below the roots the
#: missing names of git are kept; elsewhere it is left to the inspection after a command.
MOST_KEPT: Final = 100


_MADE: Final = "a repository that commands make here is looked at before git on the host sees it"


def make_plan(rules: FileRules, terrain: Terrain, twins: Iterable[tuple[str, str]] = ()) -> Plan:
    """Return the plan for these rules on this disk.

    ``twins`` are pairs of a file in a writable place and a denied or protected one that is the same file by a hard
    link (``stockade.filesystem.hard_link``); the first is then treated as the second.
    """
    ground = with_git_links(survey(rules, terrain, search=False), terrain)
    draft = _Draft(ground, ground.over(terrain))
    draft.mark_all()
    for twin, original in twins:
        draft.mark_twin(twin, original)
    return draft.plan()


class _Draft:
    """A plan in the making: first all marks, then the mounts that they amount to."""

    def __init__(self, ground: Ground, terrain: Terrain) -> None:
        self._ground = ground
        self._terrain = terrain
        self._marks = Marks()
        self._links: dict[str, str] = {}
        self._missing: dict[str, tuple[str, str]] = {}
        self._staged: list[str] = []
        self._unread: set[str] = set()
        self._notes: list[str] = [ground.rules.closed] if ground.rules.closed else []
        self._refusals: list[str] = []

    # Marking

    def mark_all(self) -> None:
        roots = list(dict.fromkeys(self._mark_allows()))
        if self._ground.private:
            self._marks.add(self._ground.private, Mark.COPIES, "writing is private to the session")
        for reach in self._ground.write_deny:
            self._mark_deny(reach, Mark.BARS, f"writing is denied by {_rule(reach.rule)}")
        for reach in self._ground.read_deny:
            mark = Mark.HIDES_BY_POLICY if _is_policy(reach) else Mark.HIDES
            self._mark_deny(reach, mark, f"reading is denied by {_rule(reach.rule)}")
        for reach in self._ground.read_allow:
            self._mark_shown(reach)
        for protection in own_protections(self._ground):
            self._mark_protection(protection)
        search, home = self._ground.search, self._ground.rules.home
        found = [*self._protections(roots)]
        self._note_idle_lifts(found)
        holders = {*roots, *(f"{root.rstrip('/')}/.git" for root in roots), *self._ground.stores}
        led = [*led_to(roots, found, search, home, self._terrain)]
        for protection in (
            *self._kept(lifted(found, search), holders, ".git/"),
            *self._kept(lifted(led, search), holders, ""),
        ):
            self._mark_protection(protection)
        self._staged = [f"{root.rstrip('/')}/.git" for root in roots if is_staged(root, search, self._terrain)]

    def _note_idle_lifts(self, found: Iterable[Protection]) -> None:
        """Say of paths that lift nothing what would: no part can be lifted of what is protected as a whole."""
        search = self._ground.search
        for form in search.spared:
            for protection in found:
                path = place_meant(protection)
                if path != form.path and is_at_or_below(form.path, path) and not search.lifts(protection):
                    name = protection.lifted_by or protection.name
                    why = f"{escape(protection.name)} is protected as a whole; name {escape(name)} instead"
                    self._notes.append(f'"{escape(form.path)}" in allowProtected lifts nothing: {why}')
                    break

    def _kept(self, found: Iterable[Protection], holders: set[str], prefix: str) -> Iterator[Protection]:
        """Yield the protections, without missing ones (by ``prefix``) in more directories than can be held open."""
        nested: dict[str, bool] = {}
        for protection in found:
            above = _parent(protection.place)
            bounded = protection.name.startswith(prefix) and above not in holders
            missing = bounded and not self._terrain.exists(protection.place)
            if not missing or nested.setdefault(above, len(nested) < MOST_KEPT):
                yield protection
        left = sum(not kept for kept in nested.values())
        if left:
            why = f"what git would obey is kept from being made in {MOST_KEPT} directories"
            self._notes.append(f"{why}; in {left} more it is missing, and a command can make it there")

    def _protections(self, roots: list[str]) -> Iterator[Protection]:
        search = self._ground.search
        for root in roots:
            # In a file nothing can be made, and it must stay replaceable: many programs write by renaming.
            find = find_protected if self._terrain.is_directory(root) else around
            yield from find(root, search, self._terrain)
        for link in self._ground.git_links:
            if not link.store:
                self._notes.append(f'commits may fail: "{escape(link.file)}" is not followed, for {link.why}')
                continue
            self._marks.add(link.store, Mark.OPENS, f'the repository of "{escape(link.file)}"')
            yield from find_in_store(link.store, self._terrain)

    def mark_twin(self, twin: str, original: str) -> None:
        state = self._marks.state_at(original)
        mark = Mark.HIDES_BY_POLICY if state.mode is Operation.HIDDEN else Mark.BARS
        why = state.reason or "it cannot be written"
        self._marks.add(twin, mark, f'the same file as "{escape(original)}" by a hard link: {why}')

    def _mark_allows(self) -> Iterator[str]:
        for reach in self._ground.write_allow:
            if not reach.forms:
                self._notes.append(f"{_rule(reach.rule)} opens nothing: a link that a command may change leads there")
            for form in reach.forms:
                yield from self._mark_allow(reach, form)

    def _mark_allow(self, reach: Reach, form: PathPattern) -> Iterator[str]:
        for path in self._expanded(reach, form):
            special = next((special for special in SPECIAL if is_at_or_below(path, special)), None)
            if special is not None:
                self._notes.append(f"{_rule(reach.rule)} opens nothing: {special} is never opened")
            elif self._terrain.link(path) is None and self._terrain.exists(path):
                self._marks.add(path, Mark.OPENS, f"writing is allowed by {_rule(reach.rule)}")
                yield path
            elif not self._terrain.exists(path):
                self._mark_missing_root(path)
                self._notes.append(f'{_rule(reach.rule)} opens nothing: "{escape(path)}" does not exist; make it first')

    def _mark_missing_root(self, path: str) -> None:
        """Keep a protected name from being made that an allow names: as a root of its own it counts at any depth."""
        protection = protected_by(path, path, self._ground.search, self._terrain)
        if protection is not None and first_missing(path, self._terrain) == path:
            self._mark_protection(protection.but(path=path, place=path))

    def _expanded(self, reach: Reach, form: PathPattern) -> tuple[str, ...]:
        """Return what an allow is about; links among it are not followed."""
        if not form.is_glob:
            return (form.path,)
        found = expand(form, self._terrain, through_links=False, nested=True)
        self._note(reach, found.problem, found.notes)
        if not found.problem:
            many = f"{len(found.places)} places that exist now"
            self._notes.append(f"{_rule(reach.rule)} is about the {many}, not about later ones")
        return (*found.places, *found.links)

    def _mark_shown(self, reach: Reach) -> None:
        mark = Mark.SHOWS_BY_POLICY if _is_policy(reach) else Mark.SHOWS
        for path in (path for form in reach.forms for path in self._expanded(reach, form)):
            if self._terrain.exists(path):
                self._marks.add(path, mark, f"opened again by {_rule(reach.rule)}")
            else:
                self._notes.append(f'{_rule(reach.rule)} shows nothing: "{escape(path)}" does not exist')

    def _mark_deny(self, reach: Reach, mark: Mark, reason: str) -> None:
        pattern = reach.rule.value
        trail = follow(pattern.static_prefix, self._terrain)
        self._pin_links([step.link for step in trail.steps], reason)
        if not pattern.is_glob:
            for form in reach.forms:
                self._mark_denied(form.path, mark, reason, reach)
            return
        # Below a re-allow a deny may match again, and then it counts.
        nested = mark is not Mark.BARS and bool(self._ground.read_allow)
        for form in reach.forms:
            found = expand(form, self._terrain, through_links=True, nested=nested)
            self._note(reach, found.problem, found.notes)
            self._pin_links(found.links, reason)
            for path in (*found.places, *found.links):
                self._mark_denied(path, mark, reason, reach)

    def _mark_denied(self, path: str, mark: Mark, reason: str, reach: Reach) -> None:
        if mark is not Mark.BARS and (path == "/" or any(is_at_or_below(path, own) for own in _OWN)):
            why = "no command could start without it" if path == "/" else "/proc and /dev are the sandbox's own"
            self._refusals.append(
                f'{_rule(reach.rule)} cannot be enforced: "{escape(path)}" cannot be hidden, for {why}'
            )
            return
        self._mark_place(path, mark, reason)

    def _mark_protection(self, protection: Protection) -> None:
        reason = f"{protection.name} is protected: {protection.why}"
        if protection.path != protection.place or self._terrain.link(protection.path) is not None:
            trail = follow(protection.path, self._terrain)
            self._pin_links([step.link for step in trail.steps], reason)
        self._mark_place(protection.place, Mark.BARS, reason, protection.name)

    def _mark_place(self, path: str, mark: Mark, reason: str, name: str = "") -> None:
        missing = None if self._terrain.exists(path) else first_missing(path, self._terrain)
        if missing is None:
            self._marks.add(path, mark, reason)
        else:
            self._missing.setdefault(missing, (reason, name))
            if missing == path and mark is not Mark.BARS:
                self._unread.add(path)

    def _pin_links(self, links: Iterable[str], reason: str) -> None:
        for link in links:
            self._links.setdefault(link, reason)

    def _note(self, reach: Reach, problem: str, notes: Iterable[str]) -> None:
        self._notes += (f"{_rule(reach.rule)}: {note}" for note in notes)
        if problem:
            self._refusals.append(f"{_rule(reach.rule)} cannot be enforced: {problem}")

    # Mounting

    def plan(self) -> Plan:
        mounts: dict[str, Mount] = {}
        for path in sorted({*self._marks, *self._links}, key=names_of):
            if any(is_at_or_below(path, own) for own in _OWN):
                continue
            outer = _around(path, mounts)
            mode = Operation.READ_ONLY if outer is None else outer.operation
            mount = self._mount(path, mode)
            if mount is not None:
                mounts[path] = mount
        self._keep_missing(mounts)
        placeholders = {found.path: found for found in self._placeholders(mounts)}
        self._pin(mounts, placeholders)
        if self._marks.state_at("/").mode is Operation.WRITABLE:
            self._notes.append("/proc, /dev and /sys stay closed although everything else is open")
        return Plan(
            mounts=tuple(mounts[path] for path in sorted(mounts, key=names_of)),
            placeholders=tuple(placeholders[path] for path in sorted(placeholders, key=names_of)),
            notes=tuple(dict.fromkeys(self._notes)),
            refusals=tuple(dict.fromkeys(self._refusals)),
            made=tuple(sorted(self._ground.promised & set(map(_parent, placeholders)))),
        )

    def _mount(self, path: str, around: Operation) -> Mount | None:
        state = self._marks.state_at(path)
        if self._terrain.link(path) is not None:
            shown = around is Operation.HIDDEN and state.mode is not Operation.HIDDEN
            if around is Operation.WRITABLE or shown:
                return Mount(Operation.LINK, path, self._links.get(path) or state.reason)
            return None
        mode = state.mode
        if mode is Operation.WRITABLE and is_at_or_below(path, "/sys"):
            mode = Operation.READ_ONLY
        if mode is Operation.PRIVATE and path != self._ground.private:
            # What surrounds it is the private place already; or a deny does, in which the host's own is shown again.
            mode = around if around is mode else Operation.READ_ONLY
        return None if mode is around else Mount(mode, path, state.reason or "nothing opens it")

    def _keep_missing(self, mounts: dict[str, Mount]) -> None:
        """Keep what is denied missing in the private place, where that takes nothing on the host."""
        for path, (reason, _) in self._missing.items():
            around = _around(path, mounts)
            if (
                around is not None
                and around.operation is Operation.PRIVATE
                and self._terrain.is_directory(_parent(path))
            ):
                mounts[path] = Mount(Operation.WITHHELD if path in self._unread else Operation.ABSENT, path, reason)

    def _placeholders(self, mounts: dict[str, Mount]) -> Iterator[Placeholder]:
        for path in self._staged:
            around = _around(path, mounts)
            if around is not None and around.operation is Operation.WRITABLE and path not in self._missing:
                yield Placeholder(path, _MADE, around.path, shape="directory", staged=True)
        for path, (reason, protected) in self._missing.items():
            around = _around(path, mounts)
            if around is None or around.operation is not Operation.WRITABLE:
                continue
            parent = _parent(path)
            if any(is_at_or_below(path, special) for special in SPECIAL):
                continue
            if self._terrain.is_directory(parent):
                name = path.rpartition("/")[2]
                at_home = path == f"{self._ground.rules.home}/{protected or name}"
                shape = shape_of(name, protected, at_home=at_home)
                if shape == "node" and "/".join(path.rsplit("/", 2)[1:]) in SETTINGS:
                    shape = self._settings_shape(path)
                content = CONTENTS.get(name, b"").decode() if shape == "file" else ""
                yield Placeholder(path, reason, around.path, content, shape, path in self._unread)
            elif parent not in mounts:
                # A file where a directory would have to be: as long as it stays, nothing can be made below it.
                mounts[parent] = Mount(Operation.PIN, parent, f"it stands where a directory would hold: {reason}")

    def _settings_shape(self, path: str) -> Shape:
        """Return what holds the settings of an agent: they can be written meanwhile, if that does not show in git."""
        from stockade.filesystem.unseen import is_unseen

        return "file" if is_unseen(path, self._ground.rules.home, self._terrain) else "node"

    def _pin(self, mounts: dict[str, Mount], placeholders: dict[str, Placeholder]) -> None:
        """Pin the directories between each mount or placeholder and the writable place around it."""
        for path in (*list(mounts), *placeholders):
            around = _around(path, mounts)
            if around is None or around.operation is not Operation.WRITABLE:
                continue
            above = _parent(path)
            while above != around.path and above not in mounts:
                mounts[above] = Mount(Operation.PIN, above, f'it holds "{escape(path)}"')
                above = _parent(above)


def _around(path: str, mounts: dict[str, Mount]) -> Mount | None:
    """Return the nearest mount above a place that has a mode of its own."""
    while path != "/":
        path = _parent(path)
        found = mounts.get(path)
        if found is not None and found.operation not in (Operation.PIN, Operation.LINK):
            return found
    return None


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _rule(rule: Sourced[PathPattern]) -> str:
    return f'"{escape(rule.value.text)}" of {escape(str(rule.origin))}'


def _is_policy(reach: Reach) -> bool:
    return reach.rule.origin.layer is Layer.POLICY
