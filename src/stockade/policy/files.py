"""May this path be read or written? A verdict with its reason, its rule, and what would change it.

The walls of each platform must come to the same answers; this is where the meaning is written down.

Rules are about *places* (paths without links):

- A rule on a link is about the link itself and about what it leads to. The fixed beginning of a glob is resolved; the
  rest is matched against the places, and against every spelling that the links on the way gave the asked path.
- An allow follows no link that a command could have put there (one in a directory that some allow opens for writing):
  else a command could widen its own walls for the next. Allow the place itself instead.
- A deny on a place that does not exist yet also refuses to *make* the missing directories on the way to it.

Reading is open. The rule that matches deepest decides (a mount on a deeper directory wins); at equal depth the deny.
A deny of the policy layer is opened again only by the policy layer. Every link on the way must be readable itself.

Writing needs, in this order: that the path can be read; that no write deny covers its place (or the asked link itself);
that a write allow covers its place; and that nothing there is protected (``stockade.policy.protected``), nor a part of
Stockade as it runs now (``stockade.policy.installation``). A deny wins
over every allow, however deep. A path through links that run in a circle leads nowhere and is refused.
Where a session has a private place (``/tmp`` on Linux), what no other rule is about can be written there too: it stays
with the session, and the host never sees it. So nothing in it is protected; a deny holds there as anywhere.
A worktree or submodule opens the repository that it belongs to, if that confirms it and no deny covers it
(``stockade.policy.git_link``).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, TypeVar
from stockade.enumeration import Enum
from stockade.escape import escape
from stockade.policy.git_link import GitLink, git_link_at
from stockade.policy.git_repository import led_to, takes_bare
from stockade.policy.path_pattern import PathPattern, is_at_or_below, joined, names_of, spelled
from stockade.policy.places import first_missing, follow
from stockade.policy.protected import (
    Protection,
    Search,
    find,
    find_in_store,
    lifted,
    meant,
    protected_by,
    protected_in_store,
)
from stockade.policy.protected_names import CONFIGS
from stockade.settings.layer import Layer, Sourced
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.policy.places import Places, Trail


T = TypeVar("T")
#: The directory that a session gets a private version of, where its platform can: programs write there unasked.
PRIVATE_PLACE: Final = "/tmp"  # noqa: S108 - not used for files of ours


class FileRules(Value):
    """What the settings say about files. The texts in them were read relative to ``cwd`` and ``home``.

    ``private`` is the directory of which the session has a version of its own, if there is one. ``own`` are the places
    of this very installation (``stockade.policy.installation``), unless a setting lifts that.
    ``homes`` are further homes of the user besides ``home``. ``lifted`` are the protected names that do not count, and
    ``left_allow`` the paths where none does. ``closed`` says why the working directory is not writable, if it is not.
    ``staged`` says whether the walls have stages for repositories in the making.
    """

    cwd: str
    home: str
    write_allow: tuple[Sourced[PathPattern], ...]
    write_deny: tuple[Sourced[PathPattern], ...]
    read_deny: tuple[Sourced[PathPattern], ...]
    read_allow: tuple[Sourced[PathPattern], ...]
    search_depth: int
    allow_git_config: bool
    left_allow: tuple[Sourced[PathPattern], ...] = ()
    own: tuple[str, ...] = ()
    private: str = ""
    homes: tuple[str, ...] = ()
    lifted: frozenset[str] = frozenset()
    closed: str = ""
    staged: bool = True

    @property
    def lifted_names(self) -> frozenset[str]:
        """The protected names that the settings give up."""
        return self.lifted | CONFIGS if self.allow_git_config else self.lifted

    @property
    def search(self) -> Search:
        """How protected names are looked for, before anything was looked up on a disk."""
        said = tuple(rule.value.static_prefix for rule in self.write_allow)
        homes = (self.home, *self.homes)
        return Search(self.search_depth, self.lifted_names, homes, said=said, staged=self.staged)


class Access(Enum):
    """What is asked for."""

    READ = "read"
    WRITE = "write"


class Reason(Enum):
    """Every reason there is, in the words that people see."""

    OPEN = "open to reading"
    REALLOWED = "opened again inside a read deny"
    IN_WRITABLE_ROOT = "in a writable place"
    PRIVATE = "in the session's private version of this place: the host never sees it"
    IN_REPOSITORY = "in the repository of a writable working tree"
    DENIED_READ = "reading is denied"
    READ_DENIED_HENCE_NO_WRITE = "reading is denied, hence writing too"
    DENIED_WRITE = "writing is denied"
    HOLDS_DENIED = "does not exist yet, and would hold a place that a rule denies"
    OUTSIDE_WRITABLE = "outside every writable place"
    PROTECTED = "always protected from writing"
    UNRESOLVABLE = "its links run in a circle"


class FileVerdict(Value):
    """The answer. ``path`` is as asked, made absolute; ``place`` is where it leads."""

    allowed: bool
    access: Access
    path: str
    place: str
    reason: Reason
    rule: Sourced[PathPattern] | None = None
    protected_name: str | None = None
    remedy: str = ""

    def __str__(self) -> str:
        """Return the whole verdict as one line."""
        leads = "" if self.place == self.path else f' (which is "{escape(self.place)}")'
        name = f" ({self.protected_name})" if self.protected_name else ""
        rule = f' by "{escape(self.rule.value.text)}" of {self.rule.origin}' if self.rule else ""
        answer = "may" if self.allowed else "may not"
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f'{answer} {self.access.value} "{escape(self.path)}"{leads}: {self.reason.value}{name}{rule}{remedy}'


class Reach(Value):
    """A rule, and the places that it is about at the moment.

    ``missing`` is the highest directory on the way to its place (or the place) that does not exist.
    """

    rule: Sourced[PathPattern]
    forms: tuple[PathPattern, ...]
    missing: str | None = None

    def depth_on(self, path: str) -> int | None:
        """Return how deep the rule matches on a place, ``None`` if it does not cover it."""
        return max((depth for form in self.forms if (depth := form.depth_on(path)) is not None), default=None)


class Ground(Value):
    """Rules laid over a disk at one moment. Make it once to judge many paths; make it anew when the disk changed."""

    rules: FileRules
    write_allow: tuple[Reach, ...]
    write_deny: tuple[Reach, ...]
    read_deny: tuple[Reach, ...]
    read_allow: tuple[Reach, ...]
    protections: tuple[Protection, ...] = ()
    git_links: tuple[GitLink, ...] = ()
    private: str = ""
    located: Search | None = None
    promised: frozenset[str] = frozenset()

    @property
    def search(self) -> Search:
        """How protected names are looked for."""
        return self.located or self.rules.search

    @property
    def roots(self) -> tuple[str, ...]:
        """The writable trees that the rules name without a wildcard, existing or not."""
        forms = (form for reach in self.write_allow for form in reach.forms)
        return tuple(dict.fromkeys(form.path for form in forms if not form.is_glob))

    @property
    def stores(self) -> tuple[str, ...]:
        """The repositories that are open because a writable working tree belongs to them."""
        return tuple(dict.fromkeys(link.store for link in self.git_links if link.store))

    def over(self, places: T) -> T:
        """Return a disk with the directories that commands may make although something in them is protected."""
        if not self.promised:
            return places
        from stockade.policy.promised import Promising

        return Promising(places, self.promised)  # type: ignore[return-value] # it answers whatever the other one does

    def judge(self, access: Access, path: str, places: Places) -> FileVerdict:
        """Return the verdict on a path, relative ones being relative to the session's working directory."""
        places = self.over(places)
        written = spelled(path)
        whole = written if written.startswith("/") else f"{self.rules.cwd}/{written}"
        asked = joined(name for name in names_of(whole) if name != ".")
        trail = follow(asked, places)
        verdict = FileVerdict(False, access, asked, trail.place, Reason.UNRESOLVABLE)
        if trail.looped:
            from stockade.policy import file_remedy  # words are for those who are refused

            return verdict.but(remedy=file_remedy.for_loop(trail.place))
        read = self._read(trail, verdict)
        if access is Access.READ:
            return read
        if not read.allowed:
            return read.but(reason=Reason.READ_DENIED_HENCE_NO_WRITE)
        return self._write(trail, verdict, places)

    def root_of(self, place: str) -> str | None:
        """Return the deepest writable root at or above a place."""
        depth = max((deep for reach in self.write_allow if (deep := reach.depth_on(place)) is not None), default=None)
        return None if depth is None else joined(names_of(place)[:depth])

    def _read(self, trail: Trail, verdict: FileVerdict) -> FileVerdict:
        for view in (*(step.spelling for step in trail.steps), trail.place):
            holding = self._holding_deny(view)
            if holding is not None:
                from stockade.policy import file_remedy

                reach, depth = holding
                remedy = file_remedy.for_read_deny(reach.rule, view, below=depth < len(names_of(view)))
                return verdict.but(reason=Reason.DENIED_READ, rule=reach.rule, remedy=remedy)
        denies, allows = _matches(self.read_deny, trail.place), _matches(self.read_allow, trail.place)
        if denies and allows:
            deepest, _ = max(allows, key=_depth)
            return verdict.but(allowed=True, reason=Reason.REALLOWED, rule=deepest.rule)
        return verdict.but(allowed=True, reason=Reason.OPEN)

    def _holding_deny(self, path: str) -> tuple[Reach, int] | None:
        """Return the deepest read deny that no deeper re-allow answers, with its depth."""
        denies = _matches(self.read_deny, path)
        if not denies:
            return None
        allows = _matches(self.read_allow, path)
        opened = max((depth for _, depth in allows), default=-1)
        by_policy = max((depth for reach, depth in allows if _is_policy(reach)), default=-1)
        holding = [(reach, depth) for reach, depth in denies if depth >= (by_policy if _is_policy(reach) else opened)]
        return max(holding, key=_depth, default=None)

    def _write(self, trail: Trail, verdict: FileVerdict, places: Places) -> FileVerdict:
        denied = self._write_deny(trail)
        if denied is not None:
            from stockade.policy import file_remedy

            remedy = file_remedy.for_deny(denied.rule, "sandbox.filesystem.denyWrite")
            return verdict.but(reason=Reason.DENIED_WRITE, rule=denied.rule, remedy=remedy)
        store = self._store_of(trail.place)
        if self.root_of(trail.place) is None and store is None:
            if self.is_private(trail.place):
                return self._holds_denied(trail.place, verdict) or verdict.but(allowed=True, reason=Reason.PRIVATE)
            from stockade.policy import file_remedy

            barred = protected_by(trail.place, trail.place, self.search, places)
            remedy = file_remedy.for_outside(trail.place, barred, self.search.homes)
            return verdict.but(reason=Reason.OUTSIDE_WRITABLE, remedy=remedy)
        for place in _own_places(trail):
            refused = self._refused_in_root(place, verdict, places)
            if refused is not None:
                return refused
        allows = _matches(self.write_allow, trail.place)
        if not allows:
            return verdict.but(allowed=True, reason=Reason.IN_REPOSITORY)
        reach, _ = max(allows, key=_depth)
        return verdict.but(allowed=True, reason=Reason.IN_WRITABLE_ROOT, rule=reach.rule)

    def _store_of(self, place: str) -> str | None:
        return next((store for store in self.stores if is_at_or_below(place, store)), None)

    def _write_deny(self, trail: Trail) -> Reach | None:
        # A deny on a directory does not concern what a link in it leads to, unless the rule matches the link or more.
        views = [(step.spelling, 0 if step.last else len(names_of(step.link))) for step in trail.steps]
        found = [
            (reach, depth)
            for view, least in (*views, (trail.place, 0))
            for reach, depth in _matches(self.write_deny, view)
            if depth >= least
        ]
        return max(found, key=_depth)[0] if found else None

    def _refused_in_root(self, place: str, verdict: FileVerdict, places: Places) -> FileVerdict | None:
        protection = self._protection(place, places)
        if protection is not None:
            from stockade.policy import file_remedy

            protection = meant(protection, place)
            name, remedy = protection.name, file_remedy.for_protection(protection)
            return verdict.but(reason=Reason.PROTECTED, protected_name=name, remedy=remedy)
        return self._holds_denied(place, verdict)

    def is_private(self, place: str) -> bool:
        """Tell whether a place lies in the session's private one; what a re-allow shows again is the host's own."""
        return bool(self.private) and is_at_or_below(place, self.private) and not _matches(self.read_deny, place)

    def _holds_denied(self, place: str, verdict: FileVerdict) -> FileVerdict | None:
        for reach in (*self.write_deny, *self.read_deny):
            if reach.missing is not None and is_at_or_below(place, reach.missing):
                from stockade.policy import file_remedy

                remedy = file_remedy.for_missing(reach.rule, reach.missing)
                return verdict.but(reason=Reason.HOLDS_DENIED, rule=reach.rule, remedy=remedy)
        return None

    def _protection(self, place: str, places: Places) -> Protection | None:
        for protection in self.protections:
            if is_at_or_below(place, protection.place):
                return protection
        store = self._store_of(place)
        if store is not None and (found := protected_in_store(place, store, self.search, places)):
            return found
        root = self.root_of(place)
        return None if root is None else protected_by(place, root, self.search, places)

    def followed(self, link: GitLink) -> GitLink:
        """Return the link, not to be followed if a deny covers where it leads."""
        denied = self._holding_deny(link.store) is not None or _matches(self.write_deny, link.store)
        return link.but(store="", why="a rule denies the repository that it names") if link.store and denied else link


def judge(rules: FileRules, access: Access, path: str, places: Places) -> FileVerdict:
    """Return the verdict on one path; ``survey`` once and ask the ground, to judge many."""
    return survey(rules, places, search=access is Access.WRITE).judge(access, path, places)


def survey(rules: FileRules, places: Places, *, search: bool = True) -> Ground:
    """Lay the rules over the disk. ``search`` looks for protected names, which only verdicts on writing need."""
    widest = [form for rule in rules.write_allow for form in _forms(rule.value, places)]
    ground = Ground(rules, _allows(rules.write_allow, widest, places), (), (), ())
    if rules.left_allow or rules.lifted_names:
        from stockade.policy.promised import promised

        denies = (rule.value for rule in rules.write_deny)
        ground = ground.but(promised=promised(ground.roots, _located(rules, places), denies, places))
        places = ground.over(places)
    ground = ground.but(
        write_deny=_denies(rules.write_deny, places),
        read_deny=_denies(rules.read_deny, places),
        read_allow=_allows(rules.read_allow, widest, places),
        private=private_place(rules, places),
    )
    ground = ground.but(write_deny=tuple(reach for reach in ground.write_deny if not _is_moot(reach, ground)))
    if not search:
        return ground
    ground = with_git_links(ground, places)
    own = own_protections(ground)
    roots = [root for root in ground.roots if places.link(root) is None]  # of a link, what it leads to is the root
    found = [protection for root in roots for protection in find(root, ground.search, places)]
    found += (protection for store in ground.stores for protection in find_in_store(store, places))
    found += led_to(roots, found, ground.search, rules.home, places)
    return ground.but(protections=tuple(dict.fromkeys((*own, *lifted(found, ground.search)))))


def _is_moot(reach: Reach, ground: Ground) -> bool:
    """Tell whether a settings file lies in the private place: the host never reads what commands write there."""
    path = reach.rule.value.path
    if not ground.private or not is_at_or_below(path, ground.private) or reach.rule.origin.layer is not Layer.DEFAULTS:
        return False
    is_plain = all(form.path == path for form in reach.forms)
    return is_plain and ground.root_of(path) is None and ground.is_private(path)


def private_place(rules: FileRules, places: Places) -> str:
    """Return the directory that the session has a private version of, empty if there is none."""
    if not rules.private:
        return ""
    trail = follow(rules.private, places)
    return "" if trail.looped or trail.place == "/" or not places.is_directory(trail.place) else trail.place


def own_protections(ground: Ground) -> tuple[Protection, ...]:
    """Return what protects this very installation: those of its places that a writable tree holds, or that hold one."""
    places = ground.rules.own
    if not places:
        return ()
    from stockade.policy.installation import NAME, SETTING, WHY

    trees = (*ground.roots, *ground.stores)
    return tuple(
        Protection(NAME, place, place, WHY, SETTING)
        for place in places
        if ground.root_of(place) is not None
        or any(is_at_or_below(place, tree) or is_at_or_below(tree, place) for tree in trees)
    )


def allowed_forms(wanted: Iterable[Sourced[PathPattern]], rules: FileRules, places: Places) -> tuple[PathPattern, ...]:
    """Return the places that other allow rules are about, such as those on sockets; links count as in these."""
    widest = [form for rule in rules.write_allow for form in _forms(rule.value, places)]
    return tuple(form for reach in _allows(wanted, widest, places) for form in reach.forms)


def denied_places(rules: Iterable[Sourced[PathPattern]], places: Places) -> tuple[Reach, ...]:
    """Return the places that other deny rules are about, such as those on sockets.

    Each rule as it is written is one more: a link on its way may come later, or lead elsewhere then.
    """
    return tuple(Reach(rule, tuple(dict.fromkeys((rule.value, *_forms(rule.value, places))))) for rule in rules)


def with_git_links(ground: Ground, places: Places) -> Ground:
    """Return the ground with the repositories open that writable working trees belong to, and its search located."""
    links = (git_link_at(root, places) for root in ground.roots)
    followed = tuple(ground.followed(link) for link in links if link is not None)
    return ground.but(git_links=followed, located=_located(ground.rules, places))


def _located(rules: FileRules, places: Places) -> Search:
    """Return how protected names are looked for on this disk."""
    search = rules.search
    trails = [follow(home, places) for home in search.homes]
    return search.but(
        homes=tuple(dict.fromkeys(trail.place for trail in trails if not trail.looped)),
        bare=takes_bare(search.homes, places),
        spared=allowed_forms(rules.left_allow, rules, places) if rules.left_allow else (),
        said=tuple(dict.fromkeys(place for word in search.said for place in (word, follow(word, places).place))),
    )


def _denies(rules: Iterable[Sourced[PathPattern]], places: Places) -> tuple[Reach, ...]:
    return tuple(Reach(rule, _forms(rule.value, places), _missing(rule.value, places)) for rule in rules)


def _allows(rules: Iterable[Sourced[PathPattern]], writable: list[PathPattern], places: Places) -> tuple[Reach, ...]:
    return tuple(
        Reach(rule, () if _is_movable(rule.value, writable, places) else _forms(rule.value, places)) for rule in rules
    )


def _is_movable(pattern: PathPattern, writable: list[PathPattern], places: Places) -> bool:
    """Tell whether a command could choose where the pattern leads: by a link in a place that it may write."""
    trail = follow(pattern.static_prefix, places)
    above = [joined(names_of(step.link)[:-1]) for step in trail.steps]
    return trail.looped or any(form.depth_on(directory) is not None for directory in above for form in writable)


def _forms(pattern: PathPattern, places: Places) -> tuple[PathPattern, ...]:
    trail = follow(pattern.static_prefix, places)
    if pattern.is_glob:
        return (pattern.moved_to(trail.place),)
    links = [step.link for step in trail.steps if step.last or trail.looped]
    return tuple(PathPattern.literal(place) for place in dict.fromkeys([trail.place, *links]))


def _missing(pattern: PathPattern, places: Places) -> str | None:
    return None if pattern.is_glob else first_missing(follow(pattern.path, places).place, places)


def _matches(reaches: Iterable[Reach], path: str) -> list[tuple[Reach, int]]:
    return [(reach, depth) for reach in reaches if (depth := reach.depth_on(path)) is not None]


def _depth(match: tuple[Reach, int]) -> int:
    return match[1]


def _is_policy(reach: Reach) -> bool:
    return reach.rule.origin.layer is Layer.POLICY


def _own_places(trail: Trail) -> Iterator[str]:
    """Yield the place, and the asked link itself where it is one."""
    yield trail.place
    yield from (step.link for step in trail.steps if step.last)
