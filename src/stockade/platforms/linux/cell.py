"""One jail among those of a session, with what its owner must remember of it.

Some directories are to look empty in it: ``git clone URL .`` and the programs that lay out a new project list the
directory first, and refuse if anything is there. So in a root that was empty before the sandbox came, placeholders are
not listed (see ``listings``). A root with nothing but ``.git`` counts as empty, as it does for those programs. This is
for the eye, and no wall. A directory that cannot be listed here is listed as it is inside.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.plan import Plan
    from stockade.platforms.linux.footing import Footing
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.placeholders import Lease
    from stockade.policy.model import SandboxPolicy

    Unlisted = tuple[tuple[str, tuple[str, ...]], ...]

#: What may be in a directory that is as good as empty.
_NEGLIGIBLE: Final = frozenset({".git"})


class Cell:
    """A jail, what it was built for, the placeholders that its mounts lie on, and the commands in it."""

    def __init__(
        self,
        jail: Jail,
        policy: SandboxPolicy,
        plan: Plan,
        lease: Lease,
        footing: Footing | None,
        unlisted: Unlisted = (),
    ) -> None:
        """Begin with a jail that stands, and nobody in it."""
        self.jail = jail
        self.footing = footing
        self.policy = policy
        self.plan = plan
        self.lease = lease
        self.unlisted = unlisted
        self.tickets: dict[int, int] = {}
        self.guests = 0
        self.receiving = False
        #: Covers were laid again: they stay only as long as this jail's helpers, see ``launcher.covered_again``.
        self.covered_again = False
        #: Why commands in it were ended, if they were.
        self.ended_for = ""

    @property
    def active(self) -> bool:
        """Whether a command runs in it."""
        return bool(self.tickets) or bool(self.guests)

    @property
    def busy(self) -> bool:
        """Whether a command runs in it, or a visitor may come."""
        return self.active or self.receiving

    def fits(self, policy: SandboxPolicy, plan: Plan, touched: set[str]) -> bool:
        """Tell whether another plan would build the same jail, after something happened to the paths ``touched``."""
        if self.footing is None or self.plan != plan or not (self.policy is policy or self.policy == policy):
            return False
        # A root that was empty and is not any more, or the other way round, is to be listed differently.
        if touched and bare_roots(plan, self.lease.targets) != self.unlisted:
            return False
        return self.footing.holds(touched)


def bare_roots(plan: Plan, targets: Iterable[str]) -> Unlisted:
    """Return the roots that hold only placeholders, each with their names; ``targets`` are all that are there."""
    roots = {placeholder.root for placeholder in plan.placeholders}
    names: dict[str, list[str]] = {}
    for path in targets:
        above, _, name = path.rpartition("/")
        if above in roots:
            names.setdefault(above, []).append(name)
    return tuple((root, tuple(found)) for root, found in names.items() if _holds_only(root, _NEGLIGIBLE.union(found)))


def _holds_only(path: str, names: frozenset[str]) -> bool:
    """Tell whether a directory holds no other names; the first one that it does ends the search."""
    try:
        with os.scandir(path) as entries:
            return all(entry.name in names for entry in entries)
    except OSError:
        return False
