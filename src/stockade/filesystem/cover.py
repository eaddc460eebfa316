"""What commands could not change, because a mount or a placeholder of the plan that they started with covered it."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.filesystem.plan import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.plan import Plan


class Cover:
    """One plan, asked path by path."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan that a jail was built for."""
        self.plan = plan
        self._modes = {mount.path: mount.operation for mount in plan.mounts if mount.operation is not Operation.PIN}
        # What commands make on a stage becomes the host's when they have ended, and is looked at then.
        self._kept = {placeholder.path for placeholder in plan.placeholders if not placeholder.staged}
        self.staged = {placeholder.path for placeholder in plan.placeholders if placeholder.staged}
        #: The writable places, outermost first.
        self.roots = tuple(mount.path for mount in plan.mounts if mount.operation is Operation.WRITABLE)

    def without(self, paths: set[str]) -> Cover:
        """Return it without what covers these paths and all below them: the host removed that for a while."""
        if not paths:
            return self
        lifted = Cover(self.plan)
        for covered in [*lifted._modes, *lifted._kept]:
            if any(covered == path or covered.startswith(f"{path}/") for path in paths):
                if lifted._modes.get(covered) is not Operation.WRITABLE:
                    lifted._modes.pop(covered, None)
                lifted._kept.discard(covered)
        lifted.staged -= paths
        return lifted

    def root_of(self, path: str) -> str | None:
        """Return the writable place that a path lies in, ``None`` if commands could not change what is there."""
        while True:
            if path in self._kept:
                return None  # nor what is in it: that the host has put there
            mode = self._modes.get(path)
            if mode is not None:
                return path if mode is Operation.WRITABLE else None
            if path in ("/", ""):
                return None
            path = path.rpartition("/")[0] or "/"


class Covers:
    """The plans of all commands that ran: what one of them could change counts as changeable."""

    def __init__(self, covers: Iterable[Cover]) -> None:
        """Take the covers of all jails that had commands."""
        self._covers = tuple(covers)

    @property
    def roots(self) -> tuple[str, ...]:
        """All writable places."""
        return tuple(dict.fromkeys(root for cover in self._covers for root in cover.roots))

    def covers(self, directory: str, name: str) -> bool:
        """Tell whether what programs obey at a name was there before; of a ``.git``, its hooks stand for all of it."""
        path = f"{directory}/{name}"
        if self.root_of(path) is None or all(path in cover.staged for cover in self._covers):
            return True
        return name == ".git" and self.root_of(f"{path}/hooks") is None

    def root_of(self, path: str) -> str | None:
        """Return the writable place that a path lies in for some command, ``None`` if for none."""
        found = (cover.root_of(path) for cover in self._covers)
        return next((root for root in found if root is not None), None)
