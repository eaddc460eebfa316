"""What a refused program is told, in words that an agent understands.

A refusal has an HTTP status that makes ``curl -f``, wget, pip and npm fail, a reason phrase for those who print only
the status line, a short code in ``X-Proxy-Error`` for programs, and a plain-text body that says what was refused, why,
which rule of which file decided, and which setting would allow it.

Rules: the connection closes after a refusal. Words that come from inside the sandbox are escaped, here or by those who
made them; whatever could still end a line is replaced once more as the bytes are made, so that no text forges a header.

Source of truth: RFC 9110 section 15 (status codes), RFC 9112 section 4 (reason phrases), RFC 7617 (Basic).
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import legible
from stockade.policy.decision import Reason, Verdict
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.decision import NetworkDecision
    from stockade.policy.destination import Destination

_LONGEST_PHRASE: Final = 160
_POLICY: Final = "This is the sandbox's policy, not a fault of the network: trying again will not help."


class Cause(Enum):
    """Why there is no answer from the other side: the code that ``X-Proxy-Error`` carries."""

    NOT_ALLOWED = "blocked-by-allowlist"
    DENIED = "denied"
    ASK_FAILED = "ask-failed"
    MALFORMED_DESTINATION = "malformed"
    ADDRESS = "blocked-address"
    OTHER_HOST = "host-mismatch"
    MALFORMED_REQUEST = "bad-request"
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    UNAUTHENTICATED = "authentication-required"
    UNREACHABLE = "unreachable"
    MALFORMED_RESPONSE = "bad-response"
    TIMED_OUT = "timed-out"
    OVERLOADED = "too-many-connections"


_CAUSES: Final = {
    Reason.MALFORMED_HOST: Cause.MALFORMED_DESTINATION,
    Reason.MALFORMED_PORT: Cause.MALFORMED_DESTINATION,
    Reason.DENIED: Cause.DENIED,
    Reason.ANSWERED_NO: Cause.DENIED,
    Reason.ASK_FAILED: Cause.ASK_FAILED,
    Reason.FORBIDDEN_ADDRESS: Cause.ADDRESS,
    Reason.OTHER_NAME: Cause.OTHER_HOST,
}


class Refusal(Value):
    """One refusal, ready to be sent. ``phrase`` follows the status; ``lines`` are the body."""

    status: int
    cause: Cause
    phrase: str
    lines: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()

    def render(self, *, with_body: bool = True, cut_short: bool = False) -> bytes:
        """Return the whole response; the answer to HEAD says how long the body would be, and leaves it out.

        ``cut_short`` announces one byte more than comes. It is for curl, which without ``--fail`` takes any page for
        success: so it shows what the page says, and then fails, which a script or a model cannot overlook.
        """
        body = "".join(f"{legible(line)}\n" for line in self.lines).encode("utf-8", "backslashreplace")
        head = [
            f"HTTP/1.1 {self.status} {_plain(self.phrase)[:_LONGEST_PHRASE]}",
            f"X-Proxy-Error: {self.cause.value}",
            "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(body) + cut_short}",
            "Connection: close",
            *(f"{_plain(name)}: {_plain(value)}" for name, value in self.headers),
        ]
        return "".join(f"{line}\r\n" for line in (*head, "")).encode("ascii") + (body if with_body else b"")


def _plain(text: str) -> str:
    """Return one line of ASCII without control characters: what cannot stand in a head is escaped."""
    return legible(text).encode("ascii", "backslashreplace").decode("ascii")


def by_policy(decision: NetworkDecision) -> Refusal:
    """Say no to a destination that the policy, or whoever was asked, did not allow."""
    if decision.verdict is Verdict.ALLOW:
        message = f"{decision} is no refusal"
        raise ValueError(message)
    cause = _CAUSES.get(decision.reason, Cause.NOT_ALLOWED)
    asked = decision.asked if decision.destination is None else str(decision.destination)
    lines = [f"Stockade refused the connection to {asked}.", f"Why: {_why(decision)}"]
    if decision.rule is not None:
        origin = decision.rule.origin
        at = f", {origin.path}" if origin.path else ""
        lines.append(f'Rule: "{decision.rule.value}" in {origin}{at}')
    if decision.remedy:
        lines.append(f"To allow it: {decision.remedy}")
    return Refusal(403, cause, f"Blocked by Stockade: {asked}: {decision.reason.value}", (*lines, _POLICY))


def _why(decision: NetworkDecision) -> str:
    if decision.destination is None:
        return decision.detail
    return f"{decision.reason.value}: {decision.detail}" if decision.detail else decision.reason.value


def by_address(destination: Destination, why: str, remedy: str = "") -> Refusal:
    """Say no to an allowed name because of what it resolves to."""
    lines = [f"Stockade refused the connection to {destination}.", f"Why: {why}"]
    if remedy:
        lines.append(f"To allow it: {remedy}")
    return Refusal(403, Cause.ADDRESS, f"Blocked by Stockade: {destination}: {why}", (*lines, _POLICY))


def unauthenticated(why: str = "the user name and password of the proxy are missing or wrong") -> Refusal:
    """Ask for the user name and password that each sandboxed command gets in its proxy variables."""
    lines = (
        f"Stockade's proxy did not serve this request: {why}.",
        "Use HTTP_PROXY and HTTPS_PROXY of the environment as they are, with the user name and password in them.",
    )
    challenge = (("Proxy-Authenticate", 'Basic realm="stockade"'),)
    return Refusal(407, Cause.UNAUTHENTICATED, "Proxy Authentication Required", lines, challenge)


def bad_request(
    why: str, hint: str = "", *, status: int = 400, cause: Cause = Cause.MALFORMED_REQUEST, phrase: str = "Bad Request"
) -> Refusal:
    """Say no to a request that cannot be read in one way only, or that a proxy does not serve."""
    lines = [f"Stockade's proxy did not serve this request: {why}."]
    return Refusal(status, cause, f"{phrase}: {why}", (*lines, hint) if hint else tuple(lines))


def unreachable(destination: Destination, why: str, *, timed_out: bool = False) -> Refusal:
    """Tell of an allowed destination that could not be reached: the network's fault, not the policy's."""
    status, cause = (504, Cause.TIMED_OUT) if timed_out else (502, Cause.UNREACHABLE)
    lines = (f"Stockade allows {destination}, but it could not be reached.", f"Why: {why}")
    return Refusal(status, cause, f"{destination} could not be reached: {why}", lines)


def bad_response(destination: Destination, why: str) -> Refusal:
    """Tell of an answer that was not passed on because it cannot be read in one way only."""
    lines = (f"Stockade did not pass on the answer of {destination}: {why}.",)
    return Refusal(502, Cause.MALFORMED_RESPONSE, f"Bad answer of {destination}: {why}", lines)


def overloaded(why: str) -> Refusal:
    """Say no for now: too many connections at once."""
    lines = (f"Stockade's proxy did not serve this request: {why}.", "Close connections, then try again.")
    return Refusal(503, Cause.OVERLOADED, f"Service Unavailable: {why}", lines)


def no_other_proxy(address: str, port: int) -> Refusal:
    """Tell that the proxy which takes the place of ours is not there."""
    lines = (
        f"The proxy at {address}:{port} of this host does not answer.",
        "It takes the place of Stockade's own: start it, or change sandbox.network.httpProxyPort.",
    )
    return Refusal(502, Cause.UNREACHABLE, f"httpProxyPort: no proxy answers at {address}:{port}", lines)
