"""May this connect? The network decision, as a value.

Order, and the first that answers wins: a malformed host or port is denied; the denied list denies; the
allowed list allows; with nobody to ask it is denied; else somebody is asked, and an error while asking
denies. So no allowed domains means no network, and no answer means no. Where an allowed name leads is
judged once it is resolved (``stockade.network.guard``), and may still be denied.

A decision carries the canonical destination: whoever acts on it dials that, never the text of the
request. It names the rule and the file that decided, and what would have to change. A malformed host has
no remedy: nothing that could be written in settings would let it through.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port
from stockade.settings.layer import Layer, Sourced
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.network_rules import NetworkRules

_ALLOWED_KEY: Final = "sandbox.network.allowedDomains"
_WEB_PORTS: Final = (80, 443)
_MOST_SHOWN: Final = 3
_NOT_OURS: Final = {
    Layer.POLICY: "the administrator of this machine",
    Layer.FLAG: "whoever delivers these settings",
}


class Verdict(Enum):
    """What is to be done."""

    ALLOW = "allowed"
    DENY = "denied"
    ASK = "to be asked"


class Reason(Enum):
    """Why; the closed set of reasons, each in words."""

    MALFORMED_HOST = "the host is malformed"
    MALFORMED_PORT = "the port is malformed"
    DENIED = "a rule denies it"
    ALLOWED = "a rule allows it"
    NOBODY_TO_ASK = "no rule allows it, and there is nobody to ask"
    ASK = "no rule allows or denies it"
    ANSWERED_YES = "allowed when asked"
    ANSWERED_NO = "denied when asked"
    ASK_FAILED = "no rule allows it, and asking failed"
    FORBIDDEN_ADDRESS = "it leads to an address that no name can open"
    OTHER_NAME = "the connection was made for one name and used for another"

    @property
    def verdict(self) -> Verdict:
        """The verdict that this reason leads to: deny, unless listed otherwise."""
        return _VERDICTS.get(self, Verdict.DENY)


_VERDICTS: Final = {
    Reason.ALLOWED: Verdict.ALLOW,
    Reason.ANSWERED_YES: Verdict.ALLOW,
    Reason.ASK: Verdict.ASK,
}


class NetworkDecision(Value):
    """One decision. Texts in it are safe to show.

    ``destination`` is what to dial, and ``None`` if the request was malformed; ``asked`` is the request in
    words; ``rule`` is the one that decided, if one did; ``detail`` says more than the reason does; ``remedy``
    is what would have to change, empty where nothing would help.
    """

    reason: Reason
    asked: str
    destination: Destination | None = None
    rule: Sourced[DomainPattern] | None = None
    detail: str = ""
    remedy: str = ""

    @property
    def verdict(self) -> Verdict:
        """Allow, deny or ask."""
        return self.reason.verdict

    def __str__(self) -> str:
        """Return one line: the verdict, the destination, why, and what would change it."""
        if self.destination is None:
            return f"{self.verdict.value}: {self.detail}"
        why = self.reason.value
        if self.rule is not None:
            why = f"{why}: {_shown(self.rule)}"
        if self.detail:
            why = f"{why}: {self.detail}"
        line = f"{self.verdict.value}: {self.asked}: {why}"
        return f"{line}; {self.remedy}" if self.remedy else line

    def answered(self, *, yes: bool, detail: str = "") -> NetworkDecision:
        """Return what an answer makes of a decision to ask; any other decision stands as it is."""
        return self._after_asking(Reason.ANSWERED_YES if yes else Reason.ANSWERED_NO, detail)

    def unanswered(self, detail: str = "") -> NetworkDecision:
        """Return what a failure to ask makes of a decision to ask; any other decision stands as it is."""
        return self._after_asking(Reason.ASK_FAILED, detail)

    def forbidden(self, address: Host, what: str) -> NetworkDecision:
        """Return the denial of an address that nothing but itself in the allowed list opens."""
        if self.destination is None or self.verdict is Verdict.DENY:
            return self
        literal = f"{address}:{self.destination.port}"
        detail = f"{address} is {what}"
        return self.but(reason=Reason.FORBIDDEN_ADDRESS, rule=None, detail=detail, remedy=_add(literal))

    def _after_asking(self, reason: Reason, detail: str) -> NetworkDecision:
        if self.reason is not Reason.ASK:
            return self
        remedy = "" if reason.verdict is Verdict.ALLOW else self.remedy
        return self.but(reason=reason, detail=escape(detail), remedy=remedy)


def decide(rules: NetworkRules, host_text: str, port: int | str, *, can_ask: bool) -> NetworkDecision:
    """Decide on a connection to a host and port as a request spelt them."""
    try:
        host = Host.parse(host_text)
    except InvalidTextError as error:
        return NetworkDecision(Reason.MALFORMED_HOST, f'"{escape(host_text)}"', detail=error.message)
    try:
        destination = Destination(host, Port.parse(port))
    except InvalidTextError as error:
        return NetworkDecision(Reason.MALFORMED_PORT, str(host), detail=f"{host}: {error.message}")
    return decide_destination(rules, destination, can_ask=can_ask)


def decide_destination(rules: NetworkRules, destination: Destination, *, can_ask: bool) -> NetworkDecision:
    """Decide on a connection to a destination that is canonical already."""
    asked = str(destination)
    denying = _matching(rules.denied, destination)
    allowing = _matching(rules.allowed, destination)
    if denying:
        # A managed rule stands above one of the command line here: it is the one that the user cannot lift.
        strongest = max(denying, key=lambda rule: (rule.origin.layer in _NOT_OURS, rule.origin.layer))
        remedy = _lift(strongest, denying)
        if not allowing and strongest.origin.layer not in _NOT_OURS:
            remedy = f"{remedy}, then {_grant(rules, destination)}"
        return NetworkDecision(Reason.DENIED, asked, destination, strongest, remedy=remedy)
    if allowing:
        return NetworkDecision(Reason.ALLOWED, asked, destination, allowing[0])
    reason = Reason.ASK if can_ask else Reason.NOBODY_TO_ASK
    return NetworkDecision(reason, asked, destination, remedy=_grant(rules, destination))


def _matching(
    rules: tuple[Sourced[DomainPattern], ...], destination: Destination
) -> tuple[Sourced[DomainPattern], ...]:
    return tuple(rule for rule in rules if rule.value.matches(destination.host, destination.port))


def _grant(rules: NetworkRules, destination: Destination) -> str:
    """Say how to allow a destination, and no more than it: the port too, unless it is the web's."""
    by_port = any(rule.value.port is not None and rule.value.matches_host(destination.host) for rule in rules.allowed)
    narrow = by_port or destination.port.number not in _WEB_PORTS
    pattern = str(destination) if narrow else str(destination.host)
    return _add(pattern)


def _add(pattern: str) -> str:
    argument = f"'{pattern}'" if "[" in pattern else pattern  # a shell would take brackets for a glob
    return f'add "{pattern}" to {_ALLOWED_KEY} (stockade allow-domain {argument})'


def _lift(strongest: Sourced[DomainPattern], denying: tuple[Sourced[DomainPattern], ...]) -> str:
    """Say which rules must go; one rule of an administrator settles that the user cannot do it."""
    who = _NOT_OURS.get(strongest.origin.layer)
    if who is not None:
        return f"only {who} can change that"
    shown = " and ".join(_shown(rule) for rule in denying[:_MOST_SHOWN])
    more = f" and {len(denying) - _MOST_SHOWN} more" if len(denying) > _MOST_SHOWN else ""
    return f"remove {shown}{more}"


def _shown(rule: Sourced[DomainPattern]) -> str:
    """Return the rule, the setting that holds it, and who set it."""
    origin = rule.origin
    inside = f" at {escape(origin.path)}" if origin.path else ""
    return f'"{rule.value}"{inside} in {origin}'
