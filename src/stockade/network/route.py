"""How an allowed connection is made: to which checked addresses, and through which upstream proxy if any.

Rules: a name is resolved once, here; what comes out has been judged and is all that is ever dialled. Through an
upstream proxy the addresses are the proxy's own, which are not judged: whoever set it up may have it on this very
host. The destination is then judged as far as can be: a literal address like any other, a name by its spelling,
unless the proxy takes addresses from us (``socks5://``), in which case the name is resolved and judged here.

A denial is a decision that takes the route's place; a failure to resolve is a ``ConnectError``.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network.guard import danger_of_name
from stockade.network.upstream import Upstreams
from stockade.policy.decision import NetworkDecision, Verdict
from stockade.policy.destination import Destination
from stockade.policy.host import Host, HostKind
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.network.gate import Gate
    from stockade.network.resolver import Resolver
    from stockade.network.upstream import Upstream
    from stockade.policy.port import Port

_KEPT: Final = 256
_REMEDY: Final = "name it in NO_PROXY on the host, so that it is resolved and judged there"


class Route(Value):
    """Dial one of ``addresses`` at ``port``; with an ``upstream``, then ask it for ``destination``."""

    destination: Destination
    addresses: tuple[Host, ...]
    port: Port
    upstream: Upstream | None = None


class Router:
    """Finds the route of each allowed connection."""

    def __init__(self, gate: Gate, resolver: Resolver, upstreams: Upstreams | None = None) -> None:
        """Take who judges, who resolves, and the proxies on the way."""
        self._gate = gate
        self._resolver = resolver
        self._upstreams = upstreams or Upstreams()
        # By identity, which costs nothing: the decision in the entry is kept alive by it.
        self._direct: dict[int, tuple[NetworkDecision, Route]] = {}

    async def route(self, decision: NetworkDecision, *, plain: bool = False) -> Route | NetworkDecision:
        """Return the route of an allowed connection, or the decision that denies it after all.

        ``plain`` is for a plain HTTP request, for which another proxy may be meant. Raises ``ConnectError``.
        """
        destination = decision.destination
        if destination is None or decision.verdict is not Verdict.ALLOW:
            return decision
        upstream = self._upstreams.choose(destination, plain=plain)
        if upstream is not None and upstream.kind.resolves:
            return await self._through(decision, destination, upstream)
        found = await self._resolver.resolve(destination.host)
        checked = self._gate.check(decision, found)
        if not checked.addresses:
            return checked.decision
        if upstream is None:
            return Route(destination, checked.addresses, destination.port)
        target = Destination(checked.addresses[0], destination.port)
        return await self._to_upstream(target, upstream)

    def direct(self, decision: NetworkDecision) -> Route | None:
        """Return the route of an allowed tunnel that leads to one address, known without asking anybody.

        ``None`` says nothing: ``route`` finds the way, or the words.
        """
        destination = decision.destination
        if destination is None or self._upstreams.choose(destination) is not None:
            return None
        found = self._resolver.known(destination.host)
        addresses = () if found is None else self._gate.check(decision, found).addresses
        return self._to_one(decision, destination, addresses) if len(addresses) == 1 else None

    def _to_one(self, decision: NetworkDecision, destination: Destination, addresses: tuple[Host, ...]) -> Route:
        """Make a route, or return the one that was made for the same decision."""
        known = self._direct.get(id(decision))
        if known is not None and known[0] is decision and known[1].addresses is addresses:
            return known[1]
        route = Route(destination, addresses, destination.port)
        if len(self._direct) >= _KEPT:
            self._direct.clear()
        self._direct[id(decision)] = (decision, route)
        return route

    async def _through(
        self, decision: NetworkDecision, destination: Destination, upstream: Upstream
    ) -> Route | NetworkDecision:
        """Judge what the upstream proxy will resolve, as far as that can be done without resolving it."""
        if destination.host.kind is HostKind.NAME:
            found = danger_of_name(destination.host)
            if found is not None:
                refused = decision.forbidden(destination.host, f"a name of {found.value}")
                return refused.but(remedy=_REMEDY)
        else:
            checked = self._gate.check(decision, (destination.host,))
            if not checked.addresses:
                return checked.decision
        return await self._to_upstream(destination, upstream)

    async def _to_upstream(self, destination: Destination, upstream: Upstream) -> Route:
        return Route(destination, await self._resolver.resolve(upstream.host), upstream.port, upstream)
