"""The profile against the verdicts: random trees, links and rules, each path tried in every way.

The trees come from fixed seeds, so that a failure can be run again. On Linux the same is tried against the kernel
(tests/enforcement/test_plan_agreement.py); here against the evaluator, for there was no Mac.

Where the two may differ is said by ``Try.may_be_looser`` and ``Try.may_be_stricter``, each with its reason, and in
SECURITY.md. Every such reason occurs (``test_each_difference_occurs``), or it would not be kept.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from stockade.filesystem.planning import make_plan
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.seatbelt import make_profile
from stockade.policy.files import Access, FileRules, Reason, survey
from stockade.policy.model import Sockets
from stockade.policy.name_glob import DEEP, escaped
from stockade.policy.path_pattern import PathPattern, is_at_or_below
from stockade.policy.places import follow
from stockade.policy.protected_names import INNER, NAMES
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stockade.policy.files import FileVerdict

USER: Final = Origin(Layer.USER, "s.json")
POLICY: Final = Origin(Layer.POLICY, "m.json")
NO_SOCKETS: Final = Sockets((), False, False, None, None)
# Few names, so that rules, links and questions meet; some that a profile could get wrong.
WORDS: Final = ("a", "b", "w", ".git", "hooks", ".bashrc", "node_modules", ".claude", "refs", 'x"\\\n', "[*", "\u00e9")
WILD: Final = ("*", "**", "?", "[a-w]*", "*a*", "[!a]")
FRESH: Final = ("a", ".git", ".bashrc", "hooks", "\u00e9", ".BASHRC")
CHUNKS: Final = 20
POLICIES: Final = 100
QUESTIONS: Final = 14


def _path(chance: random.Random) -> str:
    names = [chance.choice(WORDS) for _ in range(chance.randint(1, 4))]
    return "/".join(["", *(["w"] if chance.random() < 0.6 else []), *names])


def _target(chance: random.Random) -> str:
    names = [chance.choice((*WORDS, "..")) for _ in range(chance.randint(1, 3))]
    return _path(chance) if chance.random() < 0.5 else "/".join(names)


def _entries(chance: random.Random) -> dict[str, str | None]:
    kinds: list[Callable[[], str | None]] = [lambda: None, lambda: None, lambda: "", lambda: _target(chance)]
    return {"/w": ""} | {_path(chance): chance.choice(kinds)() for _ in range(chance.randint(1, 12))}


def _rule(chance: random.Random) -> Sourced[PathPattern]:
    if chance.random() < 0.6:
        pattern = PathPattern.literal(_path(chance))
    else:
        pieces = [chance.choice((*map(escaped, WORDS), *WILD, *WILD)) for _ in range(chance.randint(1, 4))]
        pattern = PathPattern.parse("/w/" + "/".join(pieces), cwd="/w", home="/h")
    return Sourced(pattern, chance.choice((USER, POLICY)))


def _rules(chance: random.Random) -> FileRules:
    allow, deny, hide, show = (tuple(_rule(chance) for _ in range(chance.randint(0, 3))) for _ in range(4))
    root = (Sourced(PathPattern.literal("/w"), USER),) if chance.random() < 0.9 else ()
    config, depth = chance.random() < 0.5, chance.randint(1, 3)
    return FileRules("/w", "/h", (*root, *allow), deny, hide, show, depth, config, staged=False)


class Try:
    """One tree with its rules: what the verdicts say, and what the profile would do."""

    def __init__(self, seed: int, forest: Callable[[Mapping[str, str | None]], Any]) -> None:
        chance = self.chance = random.Random(seed)  # noqa: S311 - a tree, not a secret
        self.entries = _entries(chance)
        self.disk = forest(self.entries)
        self.rules = _rules(chance)
        self.plan = make_plan(self.rules, self.disk)
        self.ground = survey(self.rules, self.disk)
        self.profile = make_profile(self.ground, self.plan, self.disk, sockets=NO_SOCKETS)
        self.walls = Evaluator(self.profile.text)
        self.verdicts: dict[tuple[Access, str], FileVerdict] = {}

    def questions(self, most: int) -> list[str]:
        known = [path for path in self.disk.kinds if path != "/"]
        every = sorted({*known, *(f"{path}/{name}" for path in known for name in FRESH)})
        return self.chance.sample(every, min(len(every), most))

    def kind(self, place: str) -> str:
        return "DIRECTORY" if self.disk.is_directory(place) else "SYMLINK" if self.disk.link(place) else "REGULAR-FILE"

    def verdict(self, access: Access, path: str) -> FileVerdict:
        known = self.verdicts.get((access, path))
        if known is None:
            known = self.verdicts[access, path] = self.ground.judge(access, path, self.disk)
        return known

    # What the kernel would do

    def readable(self, path: str) -> bool:
        trail = follow(path, self.disk)
        seen = all(self.walls.allows_file("file-read-metadata", step.link, "SYMLINK") for step in trail.steps)
        return seen and not trail.looped and self.walls.allows_file("file-read-data", trail.place)

    def writable(self, path: str) -> bool:
        place = follow(path, self.disk).place
        operation = "file-write-data" if self.disk.exists(place) else "file-write-create"
        # A verdict on a link that is in a writable place or denied is about the link as well: could it be replaced?
        links = [step.link for step in follow(path, self.disk).steps if step.last]
        denies = self.ground.write_deny
        own = [
            link
            for link in links
            if self.ground.root_of(link) or any(deny.depth_on(link) is not None for deny in denies)
        ]
        return (
            self.readable(path)
            and self.walls.allows_file(operation, place, self.kind(place))
            and all(self.walls.allows_file("file-write-create", link, "SYMLINK") for link in own)
        )

    # Where the two may differ

    def may_be_looser(self, verdict: FileVerdict) -> str:
        steps = follow(verdict.path, self.disk).steps
        if verdict.access is Access.READ and not self.disk.exists(verdict.place):
            return "nothing is there to be read"
        root = self.ground.root_of(verdict.place)
        if verdict.reason is Reason.PROTECTED and root is not None and not self.disk.is_directory(root):
            return "in a tree that does not exist yet, a directory can be made whose entries are protected"
        rule = None if verdict.rule is None else verdict.rule.value
        if rule is not None and rule.is_glob and steps and not self.disk.exists(verdict.place):
            return "a glob on a path through a link closes what is there when a command starts"
        return ""

    def may_be_stricter(self, verdict: FileVerdict) -> str:
        place = verdict.place
        way = [place, *(step.link for step in follow(verdict.path, self.disk).steps)]
        if verdict.access is Access.WRITE and any(_is_protected(each.casefold().split("/")) for each in way):
            return "protected names are closed at any depth"
        if verdict.access is Access.WRITE and self._closed_by_plan(way):
            return "the plan closes what links lead to, and the links"
        if any(self._hidden_by_plan(each) for each in way):
            return "the plan hides what a glob finds behind a link"
        if self._may_be_unknown():
            return "a deny and a re-allow by globs with ** are not compared by depth"
        return ""

    def _closed_by_plan(self, way: list[str]) -> bool:
        closed = [mount.path for mount in self.plan.mounts if mount.operation.value in ("read-only", "link")]
        closed += [each.path for each in self.plan.placeholders]
        return any(is_at_or_below(each.casefold(), path.casefold()) for each in way for path in closed)

    def _hidden_by_plan(self, path: str) -> bool:
        hidden = [mount.path for mount in self.plan.mounts if mount.operation.value == "hidden"]
        return any(
            is_at_or_below(path, each) and self.ground.judge(Access.READ, each, self.disk).allowed for each in hidden
        )

    def _may_be_unknown(self) -> bool:
        allows = [rule.value for rule in self.rules.read_allow if rule.value.is_glob]
        denies = [rule.value for rule in self.rules.read_deny if rule.value.is_glob]
        return any(DEEP in (*allow.parts, *deny.parts) for allow in allows for deny in denies)

    # Comparing

    def differences(self, most: int = QUESTIONS) -> Iterator[tuple[str, str]]:
        """Yield the reason of each difference (empty: there is none that counts), and the difference."""
        for path in self.questions(most):
            for access, held in ((Access.READ, self.readable(path)), (Access.WRITE, self.writable(path))):
                verdict = self.verdict(access, path)
                if held and not verdict.allowed:
                    yield self.may_be_looser(verdict), f"looser: {verdict}"
                elif verdict.allowed and not held:
                    yield self.may_be_stricter(verdict), f"stricter: {verdict}"

    def carried_away(self) -> Iterator[str]:
        """Yield what could be removed or renamed although something at or below it is closed."""
        closed = [
            path for path in self.disk.kinds if not self.verdict(Access.WRITE, path).allowed and self._counts(path)
        ]
        for path in self.disk.kinds:
            held = [each for each in closed if is_at_or_below(each, path)]
            kind = self.kind(path)
            if held and self.walls.allows_file("file-write-unlink", path, kind):
                yield f"{path!r} can be removed, which is or holds {held[0]!r}"
            if held and self.walls.allows_rename(path, "/w/fresh", kind):
                yield f"{path!r} can be renamed, which is or holds {held[0]!r}"

    def _counts(self, path: str) -> bool:
        # What a link leads to is not carried away with the link; that the link itself is held is asked by its place.
        steps = follow(path, self.disk).steps
        verdict = self.verdict(Access.WRITE, path)
        outside = verdict.reason in (Reason.OUTSIDE_WRITABLE, Reason.UNRESOLVABLE)
        return not steps and not outside and not self.may_be_looser(verdict)


def _is_protected(folded: list[str]) -> bool:
    return any(name in NAMES for name in folded) or any(
        entry in folded and first in folded for first, entries in INNER.items() for entry in entries
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_profile_agrees_with_the_verdicts(forest: Callable[..., Any], chunk: int) -> None:
    for seed in range(chunk * POLICIES, (chunk + 1) * POLICIES):
        one = Try(seed, forest)
        if one.plan.refusals:
            continue
        wrong = [what for reason, what in one.differences() if not reason]
        assert (seed, wrong) == (seed, []), one.profile.text
        assert (seed, list(one.carried_away())) == (seed, []), one.profile.text


@pytest.mark.parametrize(
    ("seed", "reason"),
    [
        pytest.param(1203, "protected names are closed at any depth", id="names"),
        pytest.param(
            1243,
            "in a tree that does not exist yet, a directory can be made whose entries are protected",
            id="a-tree-to-come",
        ),
        pytest.param(1219, "the plan closes what links lead to, and the links", id="links"),
        pytest.param(1230, "a deny and a re-allow by globs with ** are not compared by depth", id="two-globs"),
        pytest.param(1688, "nothing is there to be read", id="nothing-there"),
        pytest.param(2220, "the plan hides what a glob finds behind a link", id="behind-a-link"),
        pytest.param(
            2249, "a glob on a path through a link closes what is there when a command starts", id="later-behind-a-link"
        ),
    ],
)
def test_each_difference_occurs(forest: Callable[..., Any], seed: int, reason: str) -> None:
    assert reason in {found for found, _ in Try(seed, forest).differences(most=1000)}


@pytest.mark.parametrize("lifted", [(), (".git/config",), (".git/hooks", ".claude/commands")])
def test_a_missing_directory_of_protected_names_is_judged_as_the_profile_has_it(
    forest: Callable[[Mapping[str, str | None]], Any], lifted: tuple[str, ...]
) -> None:
    """There is no stage for a repository in the making here, so that nothing but a setting opens one."""
    disk = forest({"/w": ""})
    root = (Sourced(PathPattern.literal("/w"), USER),)
    rules = FileRules("/w", "/h", root, (), (), (), 3, allow_git_config=False, lifted=frozenset(lifted), staged=False)
    ground = survey(rules, disk)
    walls = Evaluator(make_profile(ground, make_plan(rules, disk), disk, sockets=NO_SOCKETS).text)
    asked = (".git", ".git/index", ".git/config", ".git/hooks/x", ".claude", ".claude/commands/x", ".claude/hooks/x")
    judged = [name for name in asked if ground.judge(Access.WRITE, name, disk).allowed]
    assert judged == [name for name in asked if walls.allows_file("file-write-create", f"/w/{name}", "REGULAR-FILE")]
    assert [name for name in judged if name in (".git", ".claude")] == list(
        dict.fromkeys(name.partition("/")[0] for name in lifted)
    )
