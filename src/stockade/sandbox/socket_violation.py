"""A unix socket that the walls refused, as a violation: by which rule, and what would help.

Rules: no remedy that cannot work. Where a rule denies, no allow helps; only who made the rule can take it away.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.unix_sockets import SETTING, Reason, datagram_remedy, judge_socket, listing_remedy
from stockade.violations.violation import Operation, Violation

if TYPE_CHECKING:
    from stockade.policy.files import FileRules
    from stockade.policy.model import Sockets
    from stockade.policy.places import Places
    from stockade.violations.violation import Occasion

#: What the walls report of a socket that can send anywhere without connecting: it has no path.
DATAGRAM: Final = "datagram"

_ANYWHERE: Final = "a unix datagram socket sends to any path without connecting"
_NOBODY: Final = "and nobody in this session listens on it"
_MOVED: Final = f"it is not called as its server called it, so it may be one that {SETTING} denies"


def socket_violation(path: str, occasion: Occasion, sockets: Sockets, files: FileRules, places: Places) -> Violation:
    """Return what was refused with its reason, its rule, and what would allow it."""
    connect = Operation.UNIX_CONNECT
    if path == DATAGRAM:
        why = f"{_ANYWHERE}, one that {SETTING} denies too" if sockets.denied_unix else _ANYWHERE
        return Violation.refused(connect, "(datagram)", occasion, why=why, remedy=datagram_remedy(sockets))
    verdict = judge_socket(sockets, files, path, places)
    if verdict.reason is Reason.UNLISTED:
        why = f"{verdict.reason.value}, {_NOBODY}"
        # The path is a real one. What a command has put there since must not get into a remedy.
        return Violation.refused(connect, path, occasion, why=why, remedy=listing_remedy(path))
    if not verdict.allowed:
        return Violation.of_socket(verdict, occasion)
    if not sockets.denied_unix:
        why, remedy = "it was refused by the rules that held when the command started", "run it again"
    else:
        why, remedy = _MOVED, "connect to it by the path that its server listens on"
    return Violation.refused(connect, path, occasion, why=why, remedy=remedy)
