"""The places of denied unix sockets, those behind links included.

A pattern is held against the place of every socket when it is connected to, so that it covers what appears later, too.
What a *link* that it matches leads to has another place: that is looked for here, when a command starts, as for files.
What is too much to be searched is a note: the pattern itself still holds.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.escape import escape
from stockade.filesystem.expansion import expand
from stockade.policy.path_pattern import PathPattern
from stockade.policy.unix_sockets import allowed_sockets, denied_sockets
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.filesystem.terrain import Terrain
    from stockade.policy.model import SandboxPolicy, Sockets


class SocketPlaces(Value):
    """Patterns of places, and what must be said about them."""

    patterns: tuple[PathPattern, ...] = ()
    notes: tuple[str, ...] = ()


def denied_places(sockets: Sockets, terrain: Terrain) -> SocketPlaces:
    """Return the places that no command may connect to, whatever is allowed."""
    patterns = {pattern.path: pattern for pattern in denied_sockets(sockets, terrain)}
    notes: list[str] = []
    for pattern in tuple(patterns.values()):
        if not pattern.is_glob:
            continue
        found = expand(pattern, terrain, through_links=True, nested=False)
        about = f'of denied sockets, "{escape(pattern.text)}" is not followed behind links'
        notes += (f"{about}: {why}" for why in (found.problem, *found.notes) if why)
        for place in found.places:
            if pattern.depth_on(place) is None:
                literal = PathPattern.literal(place)
                patterns.setdefault(literal.path, literal)
    return SocketPlaces(tuple(patterns.values()), tuple(dict.fromkeys(notes)))


def socket_places(policy: SandboxPolicy) -> tuple[tuple[PathPattern, ...], tuple[PathPattern, ...], tuple[str, ...]]:
    """Return the places of the unix sockets that a policy lists, and of those that it denies, with notes on these."""
    from stockade.filesystem.terrain import Land

    land = Land()
    denied = denied_places(policy.sockets, land)
    return allowed_sockets(policy, land), denied.patterns, denied.notes
