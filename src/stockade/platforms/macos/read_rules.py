"""Which reads a profile denies: exactly those that ``stockade.policy.files`` denies.

There the deepest match decides, and at equal depth the deny; here the last rule does. So every deny says by itself
where it holds: where its pattern matches, save where a re-allow matches deeper. How deep a pattern matches is known for
a place, and for a glob without ``**``. Between a place and a glob it follows from what is left of the glob below the
place. Between two globs of which one has ``**`` it may be unknown: then the deny holds, which is the stricter side.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.platforms.macos.path_regex import below, rests
from stockade.platforms.macos.place_filter import any_of, at, covered
from stockade.policy.name_glob import DEEP
from stockade.policy.path_pattern import is_at_or_below, joined, names_of
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.platforms.macos.sexpr import Form
    from stockade.policy.files import Ground, Reach
    from stockade.policy.path_pattern import PathPattern


def read_denies(ground: Ground) -> dict[Reach, tuple[Form, ...]]:
    """Return for each deny the filters of what it keeps from being read."""
    return {
        reach: tuple(
            dict.fromkeys(found for form in reach.forms for found in _holding(form, _answering(reach, ground)))
        )
        for reach in ground.read_deny
    }


def parents_of_shown(ground: Ground) -> tuple[Form, ...]:
    """Return filters for the directories above what was opened again: programs look at each on their way there."""
    above = {
        joined(names_of(form.static_prefix)[:depth]): None
        for reach in ground.read_allow
        for form in reach.forms
        for depth in range(len(names_of(form.static_prefix)))
    }
    denied = [form for reach in ground.read_deny for form in reach.forms]
    hidden = [path for path in above if any(form.depth_on(path) is not None for form in denied)]
    return tuple(found for path in hidden for found in at(path))


def _answering(deny: Reach, ground: Ground) -> list[PathPattern]:
    """Return the re-allows that may open a deny: to the administrator's, only the administrator's."""
    allows = [reach for reach in ground.read_allow if not _is_policy(deny) or _is_policy(reach)]
    return list(dict.fromkeys(form for reach in allows for form in reach.forms))


def _is_policy(reach: Reach) -> bool:
    return reach.rule.origin.layer is Layer.POLICY


def _holding(deny: PathPattern, allows: list[PathPattern]) -> Iterator[Form]:
    opened: list[Form] = []
    again: list[Form] = []
    for allow in allows:
        if allow.is_glob:
            opened += (found for pattern in _deeper(allow, deny) for found in covered(pattern))
        elif not deny.is_glob:
            opened += covered(allow) if _is_below(allow.path, deny.path) else ()
        elif deny.depth_on(allow.path) is not None:
            opened += covered(allow)
            names = names_of(allow.path)
            again += (found for rest in rests(deny, names) for found in covered(below(names, rest)))
    filters = covered(deny)
    if opened:
        yield ("require-all", any_of(filters), ("require-not", any_of(tuple(dict.fromkeys(opened)))))
        yield from again
    else:
        yield from filters


def _deeper(allow: PathPattern, deny: PathPattern) -> Iterator[PathPattern]:
    """Yield patterns of what a glob surely matches deeper than a deny does."""
    if not deny.is_glob:
        names = names_of(deny.path)
        yield from (below(names, rest) for rest in rests(allow, names) if rest)
    elif DEEP not in deny.parts and sum(part != DEEP for part in allow.parts) > len(deny.parts):
        yield allow


def _is_below(path: str, place: str) -> bool:
    return path != place and is_at_or_below(path, place)
