"""What the walls refused, as a violation: the walls know what and where, the policy knows why and what would help.

Rules: pure but for the questions to ``places``; the path is a real one, so a link at its end is the link itself. To
make, remove or rename a name is to write the directory that holds it, and that is what a remedy must open.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy import file_remedy
from stockade.policy.files import Access, Reason
from stockade.policy.path_pattern import is_at_or_below, joined, names_of
from stockade.violations.violation import Operation, Violation

if TYPE_CHECKING:
    from stockade.platforms.backend import Report
    from stockade.policy.files import FileVerdict, Ground
    from stockade.policy.model import Sockets
    from stockade.policy.places import Places
    from stockade.violations.violation import Occasion

_OF_NAMES: Final = frozenset((Operation.CREATE, Operation.DELETE, Operation.RENAME))
_OWN: Final = ("/proc", "/dev")
_OUTSIDE: Final = "do it outside the sandbox"


def wall_violation(report: Report, occasion: Occasion, ground: Ground, sockets: Sockets, places: Places) -> Violation:
    """Return a report with its reason, its rule, and what would allow it."""
    operation = Operation(report.operation)
    if operation is Operation.UNIX_CONNECT:
        from stockade.sandbox.socket_violation import socket_violation

        return socket_violation(report.path, occasion, sockets, ground.rules, places)
    if not report.path:
        why = "more places were refused to this command than are told apart"
        return Violation.refused(operation, "other places", occasion, why=why, remedy="see those that are named")
    if operation is Operation.READ:
        return _of_read(report.path, occasion, ground, places)
    if any(is_at_or_below(report.path, own) for own in _OWN):
        why = "this part of what every command has of its own is read-only"
        return Violation.refused(operation, report.path, occasion, why=why)
    return _of_change(operation, report.path, occasion, ground, places)


def _of_change(operation: Operation, path: str, occasion: Occasion, ground: Ground, places: Places) -> Violation:
    removal = ""
    if operation is Operation.DELETE:
        path = _without_hook(path)
        removal = _removal(path, ground.root_of(path), places)
    verdict = _judged(operation, path, ground, places)
    if not verdict.allowed:
        if removal and verdict.reason is Reason.PROTECTED:
            verdict = verdict.but(remedy=f"{removal}; or {verdict.remedy}")
        return Violation.of_file(verdict, occasion, operation)
    if operation not in _OF_NAMES:
        why = "the walls of this session show it read-only"
        return Violation.refused(operation, path, occasion, why=why)
    why = "it must stay where it is, because something protected lies in it"
    return Violation.refused(operation, path, occasion, why=why, remedy=removal or _OUTSIDE)


def _without_hook(path: str) -> str:
    """Return the directory of hooks that a path lies in, or the path: who removes one, removes a dozen."""
    above, hooks, _ = path.rpartition("/.git/hooks/")
    return f"{above}/.git/hooks" if hooks else path


def _removal(path: str, root: str | None, places: Places) -> str:
    """Return how to remove the nested repository or the worktree that a path in a writable tree belongs to.

    Mounts lie in it, so that from inside only the rest of it can be removed. A text that a command may have written
    names nothing here: somebody will paste the line.
    """
    holder, found, inner = f"{path}/".rpartition("/.git/")
    if not found or root is None:
        return ""
    if inner.startswith("worktrees/"):
        return file_remedy.for_removal("", holder)
    if is_at_or_below(root, holder):
        return ""
    lists_it = not inner and f"{root}/.git/worktrees/" in (places.text(path) or "")
    return file_remedy.for_removal(holder, root if lists_it else "")


def _judged(operation: Operation, path: str, ground: Ground, places: Places) -> FileVerdict:
    real = _Real(path, places)
    verdict = ground.judge(Access.WRITE, path, real)
    if operation not in _OF_NAMES:
        return verdict
    above = ground.judge(Access.WRITE, joined(names_of(path)[:-1]), real)
    if above.allowed:
        return verdict
    if verdict.allowed:
        return above.but(path=verdict.path, place=verdict.place)
    if verdict.reason is Reason.OUTSIDE_WRITABLE and verdict.remedy == file_remedy.for_outside(verdict.place, None):
        return verdict.but(remedy=above.remedy)
    return verdict


def _of_read(path: str, occasion: Occasion, ground: Ground, places: Places) -> Violation:
    verdict = ground.judge(Access.READ, path, _Real(path, places))
    if not verdict.allowed:
        return Violation.of_file(verdict, occasion, Operation.READ)
    why = "reading was denied when the command started"
    return Violation.refused(Operation.READ, path, occasion, why=why, remedy="run it again")


class _Real:
    """Places, where nothing on the way to one path is a link."""

    def __init__(self, path: str, places: Places) -> None:
        self._path = path
        self._places = places
        self.exists = places.exists
        self.is_directory = places.is_directory
        self.names = places.names
        self.text = places.text
        self.config = places.config
        self.gitlinks = places.gitlinks

    def link(self, path: str) -> str | None:
        """Return the text that a link holds."""
        return None if is_at_or_below(self._path, path) else self._places.link(path)
