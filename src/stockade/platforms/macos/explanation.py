"""What macOS would do about a path or a destination under a policy, asked on any platform."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.filesystem.scan import plan_now
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.seatbelt import make_profile
from stockade.platforms.macos.stored_name import stored_rules, stored_sockets
from stockade.policy.explain import explain_socket
from stockade.policy.files import survey
from stockade.policy.path_pattern import spelled
from stockade.policy.places import follow
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.filesystem.terrain import Terrain
    from stockade.platforms.macos.evaluator import Verdict
    from stockade.platforms.macos.seatbelt import Profile
    from stockade.policy.destination import Destination
    from stockade.policy.model import SandboxPolicy

#: What is asked about a path, by the words for it.
_WAYS: Final = {
    "read": "file-read-data",
    "write": "file-write-data",
    "make": "file-write-create",
    "remove or rename": "file-write-unlink",
}


class Answer(Value):
    """What the profile says to one way of using something."""

    way: str
    target: str
    verdict: Verdict

    def __str__(self) -> str:
        """Return it as one line."""
        may = "may" if self.verdict.allowed else "may not"
        by = " ".join((self.verdict.filter or self.verdict.rule).split())
        return f'on macOS {may} {self.way} "{escape(self.target)}": by {escape(by, 300)}'


def profile_of(policy: SandboxPolicy, places: Terrain, ports: tuple[int, ...] = ()) -> Profile:
    """Return the profile for a policy on this disk, or raise ``UnavailableError`` if it cannot be enforced."""
    # Seatbelt shows nobody another version of a place.
    rules = stored_rules(policy.files.but(private="", staged=False), places)
    plan = plan_now(rules)
    if plan.refusals:
        raise UnavailableError(plan.refusals[0], "change that rule")
    sockets = stored_sockets(policy.sockets, places)
    return make_profile(survey(rules, places), plan, places, sockets=sockets, ports=ports)


def explain_path(policy: SandboxPolicy, text: str, places: Terrain) -> tuple[Answer, ...]:
    """Answer for each way of using a path."""
    walls = Evaluator(profile_of(policy, places).text)
    written = spelled(policy.home + text[1:] if text == "~" or text.startswith("~/") else text)
    place = follow(written if written.startswith("/") else f"{policy.cwd}/{written}", places).place
    kind = "DIRECTORY" if places.is_directory(place) else "REGULAR-FILE"
    ways = _WAYS if explain_socket(policy, written, places) is None else {**_WAYS, "connect to": "network-outbound"}
    return tuple(Answer(way, place, walls.judge(Attempt(name, place, kind))) for way, name in ways.items())


def explain_destination(policy: SandboxPolicy, destination: Destination, places: Terrain) -> Answer:
    """Answer for a connection that goes past the proxies."""
    walls = Evaluator(profile_of(policy, places).text)
    address = str(destination)
    return Answer("connect directly to", address, walls.judge(Attempt("network-outbound", remote=address)))
