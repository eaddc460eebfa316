"""May this unix socket be connected to? The verdict, and the places that the walls must know for it.

Rules:

- A deny wins over every allow: over a list, over "all", and over a command that listens there itself. It covers a place
  and all below it, by whatever link, as path rules do everywhere.
- An allow follows no link that a command could have put there, as with files.
- Patterns are paths. An abstract name (``@name`` in some tools) is no path: those of the host are out of reach anyway,
  since a session has a network namespace of its own, and the others are the session's. A text ``@name`` is a file.
- What commands of a session listen on themselves may be reached without an allow; that is not known here.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.enumeration import Enum
from stockade.escape import escape
from stockade.policy import file_remedy
from stockade.policy.files import allowed_forms, denied_places
from stockade.policy.path_pattern import PathPattern, joined, names_of, spelled
from stockade.policy.places import follow
from stockade.settings.layer import Layer
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.policy.files import FileRules
    from stockade.policy.model import SandboxPolicy, Sockets
    from stockade.policy.places import Places
    from stockade.settings.layer import Sourced

SETTING = "sandbox.network.denyUnixSockets"
ALLOWING = "sandbox.network.allowUnixSockets"
ALLOWING_ALL = "sandbox.network.allowAllUnixSockets"


class Reason(Enum):
    """Every reason there is, in the words that people see."""

    DENIED = "a rule denies this unix socket"
    LISTED = "a rule allows this unix socket"
    ALL = "all unix sockets are allowed"
    UNLISTED = "no rule allows this unix socket"


class SocketVerdict(Value):
    """The answer. ``path`` is as asked, made absolute; ``place`` is where it leads."""

    allowed: bool
    path: str
    place: str
    reason: Reason
    rule: Sourced[PathPattern] | None = None
    remedy: str = ""

    def __str__(self) -> str:
        """Return the whole verdict as one line."""
        leads = "" if self.place == self.path else f' (which is "{escape(self.place)}")'
        rule = f' by "{escape(self.rule.value.text)}" of {self.rule.origin}' if self.rule else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        answer = "may" if self.allowed else "may not"
        return f'{answer} connect to "{escape(self.path)}"{leads}: {self.reason.value}{rule}{remedy}'


def judge_socket(sockets: Sockets, files: FileRules, path: str, places: Places) -> SocketVerdict:
    """Return the verdict on a path, relative ones being relative to the session's working directory."""
    written = spelled(path)
    whole = written if written.startswith("/") else f"{files.cwd}/{written}"
    asked = joined(name for name in names_of(whole) if name != ".")
    trail = follow(asked, places)
    views = (*(step.spelling for step in trail.steps), trail.place)
    verdict = SocketVerdict(False, asked, trail.place, Reason.DENIED)
    for reach in denied_places(sockets.denied_unix, places):
        if any(reach.depth_on(view) is not None for view in views):
            return verdict.but(rule=reach.rule, remedy=file_remedy.for_deny(reach.rule, SETTING))
    if sockets.all_unix:
        return verdict.but(allowed=True, reason=Reason.ALL)
    for rule in sockets.unix:
        if any(form.depth_on(trail.place) is not None for form in allowed_forms((rule,), files, places)):
            return verdict.but(allowed=True, reason=Reason.LISTED, rule=rule)
    return verdict.but(reason=Reason.UNLISTED, remedy=listing_remedy(trail.place))


def listing_remedy(place: str) -> str:
    """Return what would allow a socket that no rule is about."""
    return f"add {file_remedy.quoted(PathPattern.literal(place).text)} to {ALLOWING}"


def datagram_remedy(sockets: Sockets) -> str:
    """Return what would allow datagrams, which reach every path without connecting: that nothing is denied."""
    allow = "" if sockets.all_unix else f"set {ALLOWING_ALL} to true"
    if not sockets.denied_unix:
        return allow
    fixed = [rule for rule in sockets.denied_unix if rule.origin.layer is Layer.POLICY]
    if fixed or len(sockets.denied_unix) == 1:
        lift = file_remedy.for_deny((fixed or sockets.denied_unix)[0], SETTING)
    else:
        lift = f"remove all of {SETTING}"
    return lift if fixed or not allow else f"{lift}, and {allow}"


def allowed_sockets(policy: SandboxPolicy, places: Places) -> tuple[PathPattern, ...]:
    """Return the places that the walls must let be reached by path."""
    if policy.sockets.all_unix:
        return (PathPattern.literal("/"),)
    return allowed_forms(policy.sockets.unix, policy.files, places)


def denied_sockets(sockets: Sockets, places: Places) -> tuple[PathPattern, ...]:
    """Return the places that the walls must keep closed, whatever is allowed."""
    return _unique(form for reach in denied_places(sockets.denied_unix, places) for form in reach.forms)


def _unique(forms: Iterable[PathPattern]) -> tuple[PathPattern, ...]:
    return tuple({form.path: form for form in forms}.values())
