"""Which places commands inside can write, asked about code that is to run outside.

Stricter than a verdict on writing. A verdict says no where a protected name exists (``n/.vscode``), though a command
may have made that name, with all that is in it, a moment ago. So here only three things take a place out of a writable
tree: a rule that denies writing it, our own installation, which is read-only whatever lies there, and that the place is
missing and would hold a denied one. In doubt a place counts as written inside:

- what lies, or is spelled, below ``/proc`` or ``/dev`` leads elsewhere for each process that looks;
- of a link on the way, the directory that holds it counts too;
- a file with several names may have one in a writable place. Package caches do that (uv, pnpm, cargo); the system's own
  directories are spared, where a packager did it.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.policy.files import Access, Reason, own_protections, survey, with_git_links
from stockade.policy.installation import NAME
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.places import Disk, follow

if TYPE_CHECKING:
    from stockade.policy.files import FileRules

_UNSTEADY: Final = ("/proc", "/dev")
#: Package managers of the system give files several names here, and nobody else does.
_SYSTEM: Final = (
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share",
    "/bin",
    "/sbin",
    "/lib",
)


class WrittenInside:
    """Answers for one policy, as the disk is now; each place is looked at once."""

    def __init__(self, rules: FileRules, temporary: str = "", caches: str = "") -> None:
        """Take what commands may write; ``temporary`` is the session's own, ``caches`` holds those of all projects."""
        self._disk = Disk()
        ground = with_git_links(survey(rules, self._disk, search=False), self._disk)
        self._ground = ground.but(protections=own_protections(ground))
        self._own = tuple(filter(None, (temporary, caches)))
        self._known: dict[str, bool] = {}

    def __contains__(self, path: object) -> bool:
        """Say whether commands inside can write what an absolute path leads to, or change where it leads."""
        if not isinstance(path, str):
            return False
        if path not in self._known:
            self._known[path] = self._look(path)
        return self._known[path]

    def _look(self, path: str) -> bool:
        try:
            trail = follow(path, self._disk)
        except InvalidTextError:
            return True
        ways = (path, *(step.link for step in trail.steps), trail.place)
        if trail.looped or any(is_at_or_below(os.path.normpath(way), top) for way in ways for top in _UNSTEADY):
            return True
        parents = (os.path.dirname(step.link) for step in trail.steps)
        return any(map(self._may_write, (trail.place, *parents))) or _has_other_names(trail.place)

    def _may_write(self, place: str) -> bool:
        if any(is_at_or_below(place, top) for top in self._own):
            return True
        verdict = self._ground.judge(Access.WRITE, place, self._disk)
        return verdict.allowed or (verdict.reason is Reason.PROTECTED and verdict.protected_name != NAME)


def _has_other_names(place: str) -> bool:
    """Say whether a file of the user's has a second name somewhere."""
    if any(is_at_or_below(place, top) for top in _SYSTEM):
        return False
    try:
        status = os.stat(place, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and os.access(place, os.W_OK)
