"""Which writes a profile allows and denies: what ``stockade.policy.files`` says, and what keeps it so.

- First the writable places, then all that is closed in them: last match wins, and a deny wins over every allow.
- What a rule denies or a name protects is closed by its place. What must not be made is closed in every case.
- Protected names are closed at any depth, whether they are there or not; below ``node_modules`` only where the search
  for them found them. That is stricter than the verdicts, which protect from level 1 on only what exists. Names that
  count only where they exist (``ONLY_THERE``) are closed where they were found, and those of a home in the home;
  where a glob opens something, they are closed at any depth like the others.
- What the plan closes beyond the verdicts (behind links, by hard links) is closed here too, by the same plan.
- Guards: nothing closed can be carried away. The directories above it, the links that lead to it and the writable
  directories themselves can be neither renamed nor removed.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.plan import Operation
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.filters import compile_filter
from stockade.platforms.macos.path_regex import END, folded
from stockade.platforms.macos.place_filter import any_of, at, at_or_below, covered, made, regex, spellings, within
from stockade.policy.files import Access
from stockade.policy.path_pattern import joined, names_of
from stockade.policy.protected_names import NAMES, ONLY_THERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.filesystem.plan import Plan
    from stockade.platforms.macos.sexpr import Form
    from stockade.policy.files import Ground
    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Places
    from stockade.policy.protected import Search

_NODE_MODULES: Final = folded("node_modules")
_GIT: Final = folded(".git")
_CLAUDE: Final = folded(".claude")
_ANY_NAMES: Final = "(/[^/]+)*"


def writable(ground: Ground) -> tuple[Form, ...]:
    """Return filters for the places that are open for writing."""
    forms = (found for reach in ground.write_allow for form in reach.forms for found in covered(form))
    stores = (found for store in ground.stores for found in at_or_below(store))
    return tuple(dict.fromkeys((*forms, *stores)))


def denied(ground: Ground) -> tuple[Form, ...]:
    """Return filters for what the rules deny, and for what must stay missing lest it hold that."""
    forms = [found for reach in ground.write_deny for form in reach.forms for found in covered(form)]
    for reach in (*ground.write_deny, *ground.read_deny):
        forms += made(reach.missing) if reach.missing is not None else ()
    return tuple(dict.fromkeys(forms))


def protected_names(ground: Ground) -> tuple[Form, ...]:
    """Return filters for the protected names, at any depth."""
    search = ground.search
    # What a glob opens is not searched by name here, so that all names are closed then.
    everywhere = any(form.is_glob for reach in ground.write_allow for form in reach.forms)
    names = (name for name in NAMES if name not in search.lifted and (everywhere or name not in ONLY_THERE))
    closed = [folded(name) for name in names]
    inner = list(_inner(search))
    unsearched = f"({_NODE_MODULES}|{_GIT})/"
    spared = tuple(found for form in search.spared for found in covered(form))
    skips = (*_skipped(ground, unsearched), *_stores(ground), *spared)
    found = (
        (tuple(regex(f"/{name}{END}") for name in closed), skips),
        ((regex(f"/({'|'.join(closed)})/(.*/)?{unsearched}"),) if closed else (), spared),
        (tuple(regex(f"{name}{END}") for name in inner), (*_skipped(ground, f"{_NODE_MODULES}/"), *spared)),
        *(((regex(f"{name}/(.*/)?{_NODE_MODULES}/"),), spared) for name in inner),
    )
    return tuple(_outside(filters, without) for filters, without in found if filters)


def protected_places(ground: Ground, places: Places, closed: tuple[Form, ...]) -> tuple[Form, ...]:
    """Return filters for protected places that were found, or must not be made, where ``closed`` does not suffice."""
    is_closed = _test(closed)
    found: list[Form] = []
    for protection in ground.protections:
        if not is_closed(protection.place):
            found += at_or_below(protection.place) if places.exists(protection.place) else made(protection.place)
        if protection.path != protection.place and not is_closed(protection.path):
            found += at(protection.path)
    return tuple(dict.fromkeys(found))


def guarded_names(ground: Ground) -> tuple[Form, ...]:
    """Return filters for directories that hold protected names: to move one would carry the names away."""
    held = (regex(f"/{_GIT}(/{folded('modules')}|/{folded('worktrees')})?$"), regex(f"/{_CLAUDE}$"))
    return (_outside(held, tuple(_skipped(ground, f"{_NODE_MODULES}/"))),)


def hidden_by_plan(ground: Ground, plan: Plan, places: Places) -> tuple[Form, ...]:
    """Return filters for what the plan hides although the verdicts alone would not: by links, soft and hard."""
    hidden = [mount.path for mount in plan.mounts if mount.operation is Operation.HIDDEN]
    beyond = [path for path in hidden if ground.judge(Access.READ, path, places).allowed]
    return tuple(found for path in beyond for found in at_or_below(path))


def barred_by_plan(plan: Plan, opened: tuple[Form, ...], closed: tuple[Form, ...]) -> tuple[Form, ...]:
    """Return filters for what else the plan bars from writing: what ``opened`` matches and ``closed`` does not."""
    is_open, is_closed = _test(opened), _test(closed)
    found = [each for one in plan.placeholders if not is_closed(one.path) for each in made(one.path)]
    for mount in plan.mounts:
        if mount.operation is Operation.LINK and not is_closed(mount.path):
            found += at(mount.path)
        elif mount.operation is Operation.READ_ONLY and is_open(mount.path) and not is_closed(mount.path):
            found += at_or_below(mount.path)
    return tuple(dict.fromkeys(found))


def guarded_places(ground: Ground, plan: Plan, places: Places) -> tuple[Form, ...]:
    """Return filters for what can be neither renamed nor removed, although it may be written in."""
    pinned = [mount.path for mount in plan.mounts if mount.operation is Operation.PIN]
    opened = [mount.path for mount in plan.mounts if mount.operation is Operation.WRITABLE]
    # A file must stay replaceable: many programs write by renaming.
    roots = [root for root in (*ground.roots, *ground.stores, *opened) if places.is_directory(root)]
    return tuple(dict.fromkeys(found for path in (*pinned, *roots) for found in at(path)))


def holders(ground: Ground, patterns: Iterable[PathPattern]) -> tuple[Form, ...]:
    """Return filters for the writable directories above what some patterns name: to move one would carry it away."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = names_of(pattern.static_prefix)
        last = len(names) + 1 if pattern.is_glob else len(names)
        above = (joined(names[:depth]) for depth in range(1, last))
        found |= dict.fromkeys(path for path in above if ground.root_of(path) is not None)
    return tuple(each for path in found for each in at(path))


def _skipped(ground: Ground, name: str) -> Iterable[Form]:
    """Yield filters for what is below a directory with one of these names, itself below a writable root."""
    for root in ground.roots:
        yield from (regex(f"{within(each)}{_ANY_NAMES}/{name}") for each in spellings(root))


def _stores(ground: Ground) -> Iterable[Form]:
    return (found for store in ground.stores for found in at_or_below(store))


def _test(filters: tuple[Form, ...]) -> Callable[[str], bool]:
    if not filters:
        return lambda _path: False
    matches = compile_filter(any_of(filters))
    return lambda path: matches(Attempt("file-write-data", path))


def _outside(filters: tuple[Form, ...], skips: tuple[Form, ...]) -> Form:
    wanted = any_of(filters)
    return ("require-all", wanted, ("require-not", any_of(skips))) if skips else wanted


def _inner(search: Search) -> Iterable[str]:
    git = "|".join(map(folded, search.inner(".git")))
    own = "|".join(folded(name) for name in ("config.worktree", "commondir") if name in search.inner(".git"))
    yield f"/{_GIT}/({git})"
    yield f"/{_GIT}/{folded('modules')}(/[^/]+)+/({git})"
    if own:
        yield f"/{_GIT}/{folded('worktrees')}/[^/]+/({own})"
    yield f"/{_CLAUDE}/({'|'.join(map(folded, search.inner('.claude')))})"
