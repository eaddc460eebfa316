"""One jail among those of a session, with what its owner must remember of it."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.filesystem.plan import Plan
    from stockade.platforms.linux.footing import Footing
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.placeholders import Lease
    from stockade.policy.model import SandboxPolicy


class Cell:
    """A jail, what it was built for, the placeholders that its mounts lie on, and the commands in it."""

    def __init__(self, jail: Jail, policy: SandboxPolicy, plan: Plan, lease: Lease, footing: Footing | None) -> None:
        """Begin with a jail that stands, and nobody in it."""
        self.jail = jail
        self.footing = footing
        self.policy = policy
        self.plan = plan
        self.lease = lease
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
        return self.footing.holds(touched)
