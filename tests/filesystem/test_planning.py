from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.filesystem.plan import Mount, Operation, Placeholder, Plan
from stockade.filesystem.planning import make_plan
from stockade.filesystem.terrain import Terrain
from stockade.policy.files import Access, FileRules, FileVerdict, Ground, Reason, survey
from stockade.policy.name_glob import escaped
from stockade.policy.path_pattern import PathPattern, is_at_or_below, names_of
from stockade.policy.places import first_missing, follow
from stockade.policy.protected_names import INNER, NAMES, UNKEPT
from stockade.settings.layer import Layer, Origin, Sourced

MakeTree = Callable[..., Terrain]
#: Names a bit of everything that a config of git can name.
CONFIG = b'[core]hooksPath = b/hooks\n[include]path = ../../a/x\n[diff "d"]command = ./w/run it\n'
USER = Origin(Layer.USER, "s.json")
POLICY = Origin(Layer.POLICY, "m.json")
HOLDERS: Final = (Operation.PIN, Operation.LINK)


def _sourced(*texts: str) -> tuple[Sourced[PathPattern], ...]:
    return tuple(
        Sourced(
            PathPattern.parse(text.removeprefix("policy:"), cwd="/w", home="/h"),
            POLICY if text.startswith("policy:") else USER,
        )
        for text in texts
    )


def _rules(
    *write: str,
    deny: tuple[str, ...] = (),
    hide: tuple[str, ...] = (),
    show: tuple[str, ...] = (),
    depth: int = 3,
) -> FileRules:
    return FileRules(
        cwd="/w",
        home="/h",
        write_allow=_sourced(*write),
        write_deny=_sourced(*deny),
        read_deny=_sourced(*hide),
        read_allow=_sourced(*show),
        search_depth=depth,
        allow_git_config=False,
    )


# A root at which little is missing that would be protected: so plans show what they are about.
FULL: Final = {f"/w/{name}": None for name in NAMES} | {
    f"/w/{first}/{entry}": None for first, entries in INNER.items() for entry in entries
}
KEPT: Final = {f"read-only /w/{name}" for name in NAMES} | {
    f"read-only /w/{first}/{entry}" for first, entries in INNER.items() for entry in entries
}
HELD: Final = {"writable /w", *(f"pin /w/{first}" for first in INNER), "absent /w/refs", *KEPT}


def _short(plan: Plan) -> set[str]:
    mounts = {f"{mount.operation.value} {mount.path}" for mount in plan.mounts}
    return mounts | {f"absent {placeholder.path}" for placeholder in plan.placeholders}


@pytest.mark.parametrize(
    ("entries", "rules", "expected"),
    [
        pytest.param({"/p/": None}, _rules(), {"private /p"}, id="alone"),
        pytest.param({}, _rules(), set(), id="missing"),
        pytest.param({"/p": None}, _rules(), set(), id="a file"),
        pytest.param({"/p": "/q", "/q/": None}, _rules(), {"private /q"}, id="a link"),
        pytest.param({"/p/": None}, _rules(deny=("/p",)), set(), id="denied"),
        pytest.param({"/p/": None}, _rules(deny=("/",)), set(), id="denied with everything"),
        pytest.param({"/p/": None}, _rules(hide=("/p",)), {"hidden /p"}, id="hidden"),
        pytest.param({"/p/s/": None}, _rules(hide=("/p/s",)), {"private /p", "hidden /p/s"}, id="a secret"),
        pytest.param({"/p/s": None}, _rules(deny=("/p/s",)), {"private /p", "read-only /p/s"}, id="a denied file"),
        pytest.param({"/p/": None}, _rules(deny=("/p/s/t",)), {"private /p", "absent /p/s"}, id="a denied name"),
        pytest.param({"/p/s": None}, _rules(deny=("/p/s/t",)), {"private /p"}, id="a name below a file"),
        pytest.param(
            {"/p/s/a": None, "/p/": None},
            _rules(hide=("/p/s",), show=("/p/s/a",)),
            {"private /p", "hidden /p/s", "read-only /p/s/a"},
            id="shown again",
        ),
    ],
)
def test_a_private_place_is_planned_as_any_other(
    tree: MakeTree,
    entries: Mapping[str, str | None],
    rules: FileRules,
    expected: set[str],
) -> None:
    assert _short(make_plan(rules.but(private="/p"), tree(entries))) == expected


def test_what_is_opened_in_a_private_place_is_the_real_one(tree: MakeTree) -> None:
    entries = {"/p/w/": None, **{f"/p{path}": None for path in FULL}}
    found = _short(make_plan(_rules("/p/w").but(private="/p"), tree(entries)))
    assert {"private /p", "writable /p/w"} <= found
    assert "private /p" not in _short(make_plan(_rules("/p").but(private="/p"), tree(entries)))


@pytest.mark.parametrize(
    ("entries", "rules", "expected"),
    [
        pytest.param({"/w/": None}, _rules(), set(), id="nothing-is-writable"),
        pytest.param({}, _rules("."), set(), id="a-root-that-does-not-exist"),
        pytest.param({}, _rules(".", deny=(".",)), HELD - HELD, id="denied-and-missing"),
        pytest.param(FULL, _rules("."), HELD, id="a-whole-root"),
        pytest.param(
            {"/w/": None},
            _rules("."),
            {"writable /w", *(f"absent /w/{name}" for name in ({*NAMES, *INNER, "refs"} - UNKEPT))},
            id="an-empty-root",
        ),
        pytest.param(FULL, _rules(".", deny=(".",)), set(), id="the-root-is-denied"),
        pytest.param(FULL | {"/w/a/b": None}, _rules(".", "a", ".", "a/b"), None, id="roots-in-roots"),
        pytest.param({"/f": None}, _rules("/f"), {"writable /f"}, id="a-root-that-is-a-file"),
        pytest.param(FULL | {"/w/f": None}, _rules(".", "f"), HELD, id="a-file-in-a-root-can-be-replaced"),
        pytest.param(
            FULL | {"/w/a/": None},
            _rules(".", "a/.zshrc", "a/b/.zshrc"),
            HELD | {"pin /w/a", "absent /w/a/.zshrc"},
            id="a-missing-root-that-would-be-protected",
        ),
        pytest.param(
            FULL | {"/w/a/b/c": None},
            _rules(".", deny=("a/b",)),
            HELD | {"pin /w/a", "read-only /w/a/b"},
            id="a-deny-pins-its-parents",
        ),
        pytest.param(
            FULL | {"/w/a/": None},
            _rules(".", deny=("a/b/c",)),
            HELD | {"pin /w/a", "absent /w/a/b"},
            id="a-missing-deny",
        ),
        pytest.param(
            FULL | {"/w/a": None},
            _rules(".", deny=("a/b/c",)),
            HELD | {"pin /w/a"},
            id="a-missing-deny-below-a-file",
        ),
        pytest.param(
            FULL | {"/x/": None}, _rules(".", deny=("/x/y", "/z/a"), hide=("/x/z",)), HELD, id="missing-outside"
        ),
        pytest.param(
            FULL | {"/w/l": "a/b", "/w/a/b": None},
            _rules(".", deny=("l",)),
            HELD | {"link /w/l", "pin /w/a", "read-only /w/a/b"},
            id="a-deny-on-a-link",
        ),
        pytest.param(
            FULL | {"/w/l": "a", "/w/a/b/c": None},
            _rules(".", deny=("l/b",)),
            HELD | {"link /w/l", "pin /w/a", "read-only /w/a/b"},
            id="a-deny-through-a-link",
        ),
        pytest.param(
            FULL | {"/w/l": "a"},
            _rules(".", deny=("l",)),
            HELD | {"link /w/l", "absent /w/a"},
            id="a-deny-on-a-link-to-nothing",
        ),
        pytest.param(FULL | {"/w/l": "l"}, _rules(".", deny=("l",)), HELD | {"link /w/l"}, id="a-deny-on-a-loop"),
        pytest.param(
            FULL | {"/x/l": "y", "/x/y": None}, _rules(".", deny=("/x/l",)), HELD, id="a-link-that-nobody-can-change"
        ),
        pytest.param(
            FULL | {"/w/s/k": None}, _rules(".", hide=("s",)), HELD | {"hidden /w/s"}, id="a-read-deny-in-the-root"
        ),
        pytest.param({"/s/k": None}, _rules(hide=("/s", "/s/k")), {"hidden /s"}, id="a-read-deny-outside"),
        pytest.param(
            {"/s/k": None, "/s/p/q": None},
            _rules(hide=("/s",), show=("/s/p",)),
            {"hidden /s", "read-only /s/p"},
            id="shown",
        ),
        pytest.param(
            {"/s/p/q/r": None},
            _rules(hide=("/s", "/s/p/q"), show=("/s/p",)),
            {"hidden /s", "read-only /s/p", "hidden /s/p/q"},
            id="hidden-in-shown",
        ),
        pytest.param(
            {"/s/p": None}, _rules(hide=("policy:/s",), show=("/s/p",)), {"hidden /s"}, id="the-administrator-hides"
        ),
        pytest.param(
            FULL | {"/w/s/p/q": None},
            _rules(".", hide=("s",), show=("s/p",)),
            HELD | {"hidden /w/s", "writable /w/s/p"},
            id="shown-and-writable",
        ),
        pytest.param(
            FULL | {"/w/s/p/q": None},
            _rules(".", hide=("s",), show=("s/p",), deny=("s/p",)),
            HELD | {"hidden /w/s", "read-only /w/s/p"},
            id="shown-and-denied",
        ),
        pytest.param({"/s/w/x": None}, _rules("/s/w", hide=("/s",)), {"hidden /s"}, id="a-root-in-a-hidden-place"),
        pytest.param(
            {"/s/l": "../o", "/o/x": None},
            _rules(hide=("/s",), show=("/s/l",)),
            {"hidden /s", "link /s/l"},
            id="shown-link",
        ),
        pytest.param(
            FULL | {"/w/a/.env": None, "/w/.env": None, "/w/a/env": None},
            _rules(".", hide=("**/.env",)),
            HELD | {"hidden /w/.env", "pin /w/a", "hidden /w/a/.env"},
            id="a-glob",
        ),
        pytest.param(
            FULL | {"/w/a/x": None, "/w/b/x": None},
            _rules(".", deny=("?",)),
            HELD | {"read-only /w/a", "read-only /w/b"},
            id="a-glob-of-directories",
        ),
        pytest.param(
            FULL | {"/w/l": "../o", "/o/k.pem": None},
            _rules(".", hide=("**/*.pem",)),
            HELD | {"link /w/l", "hidden /o/k.pem"},
            id="a-glob-behind-a-link",
        ),
        pytest.param(
            FULL | {"/w/a/.git/hooks/x": None, "/w/a/.git/config": None},
            _rules("."),
            HELD | {"pin /w/a", "pin /w/a/.git", "read-only /w/a/.git/hooks", "read-only /w/a/.git/config"},
            id="a-repository-below",
        ),
        pytest.param(
            FULL | {"/w/a/.git": "../r", "/w/r/hooks/x": None},
            _rules("."),
            HELD | {"pin /w/a", "link /w/a/.git", "pin /w/r", "read-only /w/r/hooks"},
            id="a-repository-by-a-link",
        ),
        pytest.param(
            {path: target for path, target in FULL.items() if path != "/w/.bashrc"} | {"/w/.bashrc": "../d/rc"},
            _rules("."),
            (HELD - {"read-only /w/.bashrc"}) | {"link /w/.bashrc"},
            id="a-protected-link-out",
        ),
        pytest.param(
            {"/x/.git/hooks/a": None, "/x/.git/config": None, "/x/.git/HEAD": None},
            _rules("/x/.git", depth=1),
            None,
            id="a-root-that-is-a-repository",
        ),
        pytest.param({"/x/.git/hooks/a": None}, _rules("/x/.git/hooks"), set(), id="a-root-that-is-protected"),
        pytest.param({"/dev/sda": None, "/sys/x": None}, _rules("/dev/sda", "/sys", "/proc"), set(), id="special"),
    ],
)
def test_plans(tree: MakeTree, entries: Mapping[str, str | None], rules: FileRules, expected: set[str] | None) -> None:
    plan = make_plan(rules, tree(entries))
    assert plan.refusals == ()
    if expected is not None:
        assert _short(plan) == expected


def test_a_root_that_is_a_repository_guards_itself(tree: MakeTree) -> None:
    plan = make_plan(_rules("/x/.git", depth=1), tree({"/x/.git/hooks/a": None, "/x/.git/HEAD": None}))
    inner = {line for line in _short(plan) if line.split("/")[-1] in INNER[".git"]}
    assert inner == {
        "read-only /x/.git/hooks",
        "absent /x/.git/config",
        "absent /x/.git/config.worktree",
        "absent /x/.git/commondir",
    }


def test_the_whole_disk(tree: MakeTree) -> None:
    plan = make_plan(_rules("/", deny=("/etc",), depth=1), tree({"/etc/x": None, "/a/b": None}))
    assert {"writable /", "read-only /etc", "absent /.vscode"} <= _short(plan)
    assert plan.notes == ("/proc, /dev and /sys stay closed although everything else is open",)


def test_each_line_has_its_reason(tree: MakeTree) -> None:
    plan = make_plan(_rules("a", deny=("a/l", "a/no")), tree({"/w/a/l": "d/x", "/w/a/d/x": None, "/w/a/.bashrc": None}))
    shown = [line for line in str(plan).splitlines() if "protected" not in line]
    assert shown == [
        'read-only "/": everything, but for what follows',
        'writable  "/w/a": writing is allowed by "a" of s.json (user)',
        'pin       "/w/a/d": it holds "/w/a/d/x"',
        'read-only "/w/a/d/x": writing is denied by "a/l" of s.json (user)',
        'link      "/w/a/l": writing is denied by "a/l" of s.json (user)',
        'staged    "/w/a/.git": a repository that commands make here is looked at before git on the host sees it',
        'absent    "/w/a/no": writing is denied by "a/no" of s.json (user)',
    ]
    assert 'read-only "/w/a/.bashrc": .bashrc is protected: a shell on the host runs it at its start' in str(plan)


def test_order_is_from_the_outside_in(tree: MakeTree) -> None:
    plan = make_plan(_rules(".", "a-b"), tree(FULL | {"/w/a/.git/hooks/x": None, "/w/a-b/c": None, "/w/a/b": None}))
    seen: set[str] = set()
    for mount in plan.mounts:
        assert not any(path.startswith(f"{mount.path}/") for path in seen)
        seen.add(mount.path)


def test_the_common_directory_is_held_by_a_file_that_git_can_read(tree: MakeTree) -> None:
    entries = {path: target for path, target in FULL.items() if path != "/w/.git/commondir"}
    plan = make_plan(_rules("."), tree(entries))
    why = ".git/commondir is protected: git on the host takes hooks and config from where it leads"
    assert plan.placeholders[0] == Placeholder("/w/.git/commondir", why, "/w", ".\n", "file")


@pytest.mark.parametrize(
    ("rules", "refusal"),
    [
        pytest.param(
            _rules(hide=("/**/x",)),
            '"/**/x" of s.json (user) cannot be enforced: it would need a search of the whole disk; '
            "start it with a directory",
            id="the-whole-disk",
        ),
        pytest.param(
            _rules(hide=("/",)),
            '"/" of s.json (user) cannot be enforced: "/" cannot be hidden, for no command could start without it',
            id="everything",
        ),
        pytest.param(
            _rules(hide=("/proc/1",)),
            '"/proc/1" of s.json (user) cannot be enforced: "/proc/1" cannot be hidden, '
            "for /proc and /dev are the sandbox's own",
            id="proc",
        ),
    ],
)
def test_what_cannot_be_enforced_is_refused(tree: MakeTree, rules: FileRules, refusal: str) -> None:
    assert make_plan(rules, tree({"/w/": None})).refusals == (refusal,)


@pytest.mark.parametrize(
    ("entries", "rules", "note"),
    [
        pytest.param(
            {}, _rules("no"), '"no" of s.json (user) opens nothing: "/w/no" does not exist; make it first', id="missing"
        ),
        pytest.param(
            {"/w/l": "/o", "/o/": None},
            _rules(".", "l"),
            '"l" of s.json (user) opens nothing: a link that a command may change leads there',
            id="a-planted-link",
        ),
        pytest.param(
            {"/o/a.log": None},
            _rules("/o/*.log"),
            '"/o/*.log" of s.json (user) is about the 1 places that exist now, not about later ones',
            id="a-glob",
        ),
        pytest.param({}, _rules("/dev/x"), '"/dev/x" of s.json (user) opens nothing: /dev is never opened', id="dev"),
        pytest.param(
            {"/s/": None},
            _rules(hide=("/s",), show=("/s/p",)),
            '"/s/p" of s.json (user) shows nothing: "/s/p" does not exist',
            id="a-missing-re-allow",
        ),
    ],
)
def test_what_opens_nothing_is_noted(
    tree: MakeTree, entries: Mapping[str, str | None], rules: FileRules, note: str
) -> None:
    assert make_plan(rules, tree(entries)).notes == (note,)


def test_a_twin_is_treated_as_its_original(tree: MakeTree) -> None:
    disk = tree(FULL | {"/w/a/t": None, "/w/u": None, "/s/k": None, "/o/x": None})
    plan = make_plan(_rules(".", hide=("/s",)), disk, [("/w/a/t", "/s/k"), ("/w/u", "/o/x")])
    assert _short(plan) == HELD | {"hidden /s", "pin /w/a", "hidden /w/a/t", "read-only /w/u"}


def test_300_repositories_need_few_mounts(tree: MakeTree) -> None:
    entries: dict[str, str | None] = dict(FULL)
    for number in range(300):
        entries |= {f"/w/r{number}/.git/{name}": None for name in ("hooks", "config", "HEAD", "index")}
    plan = make_plan(_rules("."), tree(entries))
    assert len(plan.mounts) == len(HELD - {"absent /w/refs"}) + 300 * 4
    assert [each.path for each in plan.placeholders] == ["/w/refs"]


# Few names, so that rules, links and questions meet.
WORDS = ("a", "b", "*", "w", ".git", "hooks", ".bashrc", "node_modules", ".claude", "refs", "worktrees")
names = st.sampled_from(WORDS)
paths = st.lists(names, min_size=1, max_size=4).map(lambda some: "/" + "/".join(some))
inside = paths.map(lambda path: f"/w{path}")
targets = paths | inside | st.lists(names | st.just(".."), min_size=1, max_size=3).map("/".join)
trees = st.dictionaries(paths | inside, st.none() | targets, min_size=1, max_size=12)
wild = st.lists(names.map(escaped) | st.sampled_from(["*", "**", "?", "[a-w]*"]), min_size=1, max_size=4)
globs = wild.map(lambda some: PathPattern.parse("/w/" + "/".join(some), cwd="/w", home="/h"))
literals = (paths | inside).map(PathPattern.literal)
sourced = st.builds(Sourced[PathPattern], literals | literals | globs, st.sampled_from([USER, POLICY]))
lists = st.lists(sourced, max_size=3).map(tuple)
openings = lists.map(lambda some: (Sourced(PathPattern.literal("/w"), USER), *some))
rule_sets = st.builds(
    FileRules, st.just("/w"), st.just("/h"), openings, lists, lists, lists, st.integers(1, 3), st.booleans()
)


class Walls:
    """What a kernel would do with a plan."""

    def __init__(self, plan: Plan, disk: Terrain) -> None:
        self.plan = plan
        self.disk = disk
        self.mounts = {mount.path: mount for mount in plan.mounts}
        self.links = getattr(disk, "links", {})
        self.modes = {mount.path: mount for mount in plan.mounts if mount.operation not in HOLDERS}

    def covering(self, place: str) -> Mount | None:
        while place not in self.modes and place != "/":
            place = place.rpartition("/")[0] or "/"
        return self.modes.get(place)

    def mode(self, place: str) -> Operation:
        found = self.covering(place)
        return Operation.READ_ONLY if found is None else found.operation

    def readable(self, path: str) -> bool:
        trail = follow(path, self.disk)
        seen = all(step.link in self.mounts or self.mode(step.link) is not Operation.HIDDEN for step in trail.steps)
        return seen and not trail.looped and self.mode(trail.place) is not Operation.HIDDEN

    def writable(self, path: str) -> bool:
        place = follow(path, self.disk).place
        if self.is_held_link(path):
            return False
        kept = (each for each in self.plan.placeholders if not each.staged)
        absent = any(is_at_or_below(place, each.path) for each in kept)
        opened = self.mode(place) is Operation.WRITABLE and not absent
        return self.readable(path) and opened and not self.below_a_file(place)

    def is_held_link(self, path: str) -> bool:
        """Whether the path is a link that cannot be replaced, which a verdict on writing it is about as well."""
        return any(step.last and not self.movable(step.link) for step in follow(path, self.disk).steps)

    def below_a_file(self, place: str) -> bool:
        """Whether a file stands where a directory would have to be, and must stay there."""
        missing = first_missing(place, self.disk)
        above = "/" if missing is None else missing.rpartition("/")[0] or "/"
        return not self.disk.is_directory(above) and not self.movable(above)

    def movable(self, path: str) -> bool:
        """Whether what is at a place can be renamed or removed."""
        parent = path.rpartition("/")[0] or "/"
        return path not in self.mounts and self.mode(parent) is Operation.WRITABLE


def _may_be_looser(verdict: FileVerdict, ground: Ground, disk: Terrain) -> bool:
    """The ways in which walls are looser than the verdict, as the module says."""
    missing = not disk.exists(verdict.place)
    if missing and verdict.access is Access.READ:
        return True  # there is nothing to be read
    if verdict.rule is not None and follow(verdict.rule.value.static_prefix, disk).looped:
        return True  # the rule leads nowhere; the links of its circle are pinned, and lead where they led
    if verdict.rule is not None and _is_shown_behind_a_link(verdict, verdict.rule.value, ground, disk):
        return True
    if verdict.rule is not None and verdict.rule.value.is_glob:
        start = follow(verdict.rule.value.static_prefix, disk).place
        steps = follow(verdict.path, disk).steps
        return missing or any(is_at_or_below(start, follow(step.link, disk).place) for step in steps)
    root = ground.root_of(verdict.place)
    return verdict.reason is Reason.PROTECTED and missing and (root is None or not disk.is_directory(root))


def _is_shown_behind_a_link(verdict: FileVerdict, denied: PathPattern, ground: Ground, disk: Terrain) -> bool:
    """Tell whether a deny names a link on the way, and something opens the place behind it again."""
    links = [step.link for step in follow(verdict.path, disk).steps if denied.depth_on(step.link) is not None]
    opened = max((reach.depth_on(verdict.place) or 0 for reach in ground.read_allow), default=0)
    return any(opened > len(names_of(follow(link, disk).place)) for link in links)


def _may_be_stricter(verdict: FileVerdict, ground: Ground, walls: Walls) -> bool:
    """The ways in which walls are stricter than the verdict, as the module says."""
    disk = walls.disk
    root = ground.root_of(verdict.place)
    if verdict.access is Access.WRITE and (root is None or not disk.exists(root) or walls.is_held_link(verdict.path)):
        return True
    # A protected name that was found deeper down than the verdict looks may be a link to it.
    protected = [link for link in walls.links if any(name.startswith(".") for name in link.split("/"))]
    if any(is_at_or_below(verdict.place, follow(link, disk).place) for link in protected):
        return True
    denies = (*ground.rules.write_deny, *ground.rules.read_deny)
    by_glob = [f'denied by "{deny.value.text}"' for deny in denies if deny.value.is_glob]
    way = (verdict.place, *(step.link for step in follow(verdict.path, disk).steps))
    covering = [found.reason for each in way if (found := walls.covering(each)) is not None]
    if any(text in reason for reason in covering for text in by_glob):
        return True
    shown_by_glob = any(rule.value.is_glob for rule in ground.rules.read_allow)
    if shown_by_glob and any(walls.mode(each) is Operation.HIDDEN for each in way):
        return True  # a re-allow matches the spelling behind a link that is itself hidden
    if not disk.exists(verdict.place):
        # Nothing can be made in a hidden directory; and a protected or denied link may lead to where nothing is.
        absent = [each.reason for each in walls.plan.placeholders if is_at_or_below(verdict.place, each.path)]
        linked = [reason for reason in absent if any(text in reason for text in ("is protected", *by_glob))]
        dangling = bool(linked and walls.links)
        return walls.mode(verdict.place) is Operation.HIDDEN or dangling or walls.below_a_file(verdict.place)
    return False


def _questions(entries: Mapping[str, str | None]) -> list[str]:
    known = [path.rstrip("/") for path in entries]
    above = {"/".join(path.split("/")[:depth]) for path in known for depth in range(2, len(path.split("/")) + 1)}
    below = {f"{path}/{name}" for path in (*above, "/w") for name in ("a", ".git", ".bashrc", "hooks")}
    return sorted({*above, *below, "/w"})


@given(rule_sets, trees)
@settings(max_examples=300, deadline=None)
def test_walls_agree_with_verdicts(tree: MakeTree, rules: FileRules, entries: dict[str, str | None]) -> None:
    disk = tree(entries, config=CONFIG)
    plan = make_plan(rules, disk)
    if plan.refusals:
        return
    ground, walls = survey(rules, disk), Walls(plan, disk)
    for path in _questions(entries):
        for access, held in ((Access.READ, walls.readable(path)), (Access.WRITE, walls.writable(path))):
            verdict = ground.judge(access, path, disk)
            if held and not verdict.allowed:
                assert _may_be_looser(verdict, ground, disk), f"{verdict}\n{plan}"
            elif verdict.allowed and not held:
                assert _may_be_stricter(verdict, ground, walls), f"{verdict}\n{plan}"


@given(rule_sets, trees)
@settings(max_examples=200, deadline=None)
def test_nothing_closed_is_carried_away(tree: MakeTree, rules: FileRules, entries: dict[str, str | None]) -> None:
    """Neither a closed place nor a directory above it can be renamed; nor a link that a deny leads through."""
    disk = tree(entries, config=CONFIG)
    walls = Walls(make_plan(rules, disk), disk)
    closed = [mount.path for mount in walls.plan.mounts] + [each.path for each in walls.plan.placeholders]
    for path in closed:
        names = path.split("/")[1:]
        above = ["/" + "/".join(names[:depth]) for depth in range(1, len(names))]
        assert [each for each in above if walls.movable(each)] == []
    for deny in (*rules.write_deny, *rules.read_deny):
        if not deny.value.is_glob and not walls.plan.refusals:
            steps = follow(deny.value.path, disk).steps
            assert [step.link for step in steps if walls.movable(step.link)] == []


@given(rule_sets, trees)
@settings(max_examples=100, deadline=None)
def test_a_plan_says_nothing_twice(tree: MakeTree, rules: FileRules, entries: dict[str, str | None]) -> None:
    plan = make_plan(rules, tree(entries, config=CONFIG))
    places = [mount.path for mount in plan.mounts] + [each.path for each in plan.placeholders]
    assert len(places) == len(set(places))
    assert str(plan).isprintable() or "\n" in str(plan)
