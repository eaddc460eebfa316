"""The way out, for those who may: a request is judged, and the connection that it asks for is made.

Everybody who lets connections out does so here, so that none is made that was not judged, each denial is told, and
each failure has the same words. What is handed out is a connection that carries the client's bytes: an upstream
proxy that stands between has been spoken to already, but for plain HTTP through an HTTP proxy, which is asked with
each request.
"""

from __future__ import annotations

import asyncio
import ssl

from stockade.annotation import TYPE_CHECKING, TypeAlias
from stockade.network import refusal
from stockade.network.dial import Pace, dial
from stockade.network.failure import ConnectError, Failure
from stockade.network.handshake import handshake
from stockade.network.screen import Screen
from stockade.network.stream import Stream
from stockade.network.tally import Tally
from stockade.network.transport import SocketTransport
from stockade.network.upstream import UpstreamKind
from stockade.policy.decision import NetworkDecision, Reason, Verdict
from stockade.policy.host import Host, HostKind
from stockade.value import Value

if TYPE_CHECKING:
    import socket

    from stockade.network.gate import Caller, Gate
    from stockade.network.refusal import Refusal
    from stockade.network.route import Route, Router
    from stockade.network.tally import Report
    from stockade.network.upstream import Upstream
    from stockade.policy.destination import Destination
    from stockade.policy.network_rules import NetworkRules


class Opened:
    """A connection to an allowed destination."""

    def __init__(self, stream: Stream, route: Route) -> None:
        """Keep the connection with the way that it takes."""
        self.stream = stream
        self.route = route

    @property
    def asks_proxy(self) -> bool:
        """Whether an HTTP proxy is at its other end, rather than the server."""
        return self.route.upstream is not None and not self.route.upstream.kind.is_socks


class Closed(Value):
    """There is no connection. ``failure`` is set if that is no rule's fault."""

    refusal: Refusal
    failure: Failure | None = None


Outcome: TypeAlias = Opened | Closed


def refusal_of(decision: NetworkDecision) -> Refusal:
    """Return the words for a denial."""
    if decision.reason is Reason.FORBIDDEN_ADDRESS and decision.destination is not None:
        return refusal.by_address(decision.destination, decision.detail, decision.remedy)
    return refusal.by_policy(decision)


class Outlet:
    """Judges and opens for one session."""

    def __init__(self, gate: Gate, router: Router, report: Report | None = None, *, pace: Pace | None = None) -> None:
        """Take who judges, who knows the way, and who is told of each denial."""
        self.gate = gate
        self._router = router
        self._pace = pace or Pace()
        self._tally = Tally(report or (lambda _decision, _command, _times: None))

    def update(self, rules: NetworkRules) -> None:
        """Use other rules from the next request on."""
        self.gate.update(rules)

    def close(self) -> None:
        """Withdraw all questions and tell what was only counted."""
        self.gate.close()
        self._tally.flush()

    def tell(self, decision: NetworkDecision, command: str) -> None:
        """Count a denial."""
        self._tally.add(decision, command)

    def screen(self, destination: Destination | None, command: str) -> Screen | None:
        """Return what is to stand before a tunnel and look for the name that the client shows; a denial is told."""
        if destination is None or destination.host.kind is not HostKind.NAME:
            return None
        return Screen(destination, lambda why: self.tell(other_name(destination, why), command))

    async def decide(self, caller: Caller, host: str, port: int | str) -> NetworkDecision:
        """Judge one request; a denial is told."""
        decision = await caller.decide(host, port)
        if decision.verdict is not Verdict.ALLOW:
            self.tell(decision, caller.command)
        return decision

    def still_allows(self, decision: NetworkDecision, opened: Opened) -> bool:
        """Say whether a connection that stands may be used for another request, by the rules that hold now."""
        if opened.route.upstream is not None:
            return True
        address = opened.stream.address.partition("%")[0]
        return bool(address) and bool(self.gate.check(decision, (Host.parse(address),)).addresses)

    async def open(self, caller: Caller, decision: NetworkDecision, *, plain: bool = False) -> Outcome:
        """Make an allowed connection; ``plain`` if it is for plain HTTP requests."""
        try:
            route = await self._router.route(decision, plain=plain)
            if isinstance(route, NetworkDecision):
                self.tell(route, caller.command)
                return Closed(refusal_of(route))
            return Opened(await self._connect(route, plain=plain), route)
        except ConnectError as error:
            assert decision.destination is not None  # noqa: S101 - nothing else is ever routed
            return _failed(decision.destination, error)

    def direct(self, host: str, port: int | str) -> Route | None:
        """Return the way of a tunnel that is allowed without a question and leads to one known address.

        ``None`` says nothing: ``decide`` and ``open`` find the way, or the words.
        """
        decision = self.gate.decide_at_once(host, port)
        return self._router.direct(decision) if decision.verdict is Verdict.ALLOW else None

    async def complete(self, route: Route, begun: socket.socket | Failure) -> Outcome:
        """Make a connection of which no more was done than to ``begin`` to dial it, without an upstream proxy."""
        try:
            return Opened(await self._connect(route, plain=False, begun=begun), route)
        except ConnectError as error:
            return _failed(route.destination, error)

    async def _connect(self, route: Route, *, plain: bool, begun: socket.socket | Failure | None = None) -> Stream:
        connection = await dial(route.addresses, route.port, self._pace, begun)
        stream = Stream()
        try:
            if route.upstream is None:
                SocketTransport(connection, stream)
                return stream
            async with asyncio.timeout(self._pace.seconds):
                await _begin(stream, connection, route.upstream)
                if route.upstream.kind.is_socks or not plain:
                    await _shake_hands(stream, route.upstream, route.destination)
        except OSError as error:
            stream.abort()
            connection.close()
            raise _upstream_error(route, error) from None
        except BaseException:
            stream.abort()
            connection.close()
            raise
        return stream


def _failed(destination: Destination, error: ConnectError) -> Closed:
    late = error.failure is Failure.TIMED_OUT
    return Closed(refusal.unreachable(destination, error.message, timed_out=late), error.failure)


async def _begin(stream: Stream, connection: socket.socket, upstream: Upstream) -> None:
    encrypted = upstream.kind is UpstreamKind.HTTPS
    await asyncio.get_running_loop().create_connection(
        lambda: stream,
        sock=connection,
        ssl=ssl.create_default_context() if encrypted else None,
        server_hostname=upstream.host.text if encrypted else None,
    )


async def _shake_hands(stream: Stream, upstream: Upstream, destination: Destination) -> None:
    talk = handshake(upstream, destination)
    await stream.write(talk.opening())
    while not talk.done:
        data = await stream.read()
        if not data:
            raise ConnectError(Failure.UPSTREAM_BROKEN, str(destination), "it closed the connection")
        await stream.write(talk.receive(data))
    stream.put_back(talk.trailing)


def _upstream_error(route: Route, error: OSError) -> ConnectError:
    """Say what a fault after dialling means: without an upstream proxy nothing is said then."""
    where = str(route.destination)
    if isinstance(error, TimeoutError):
        return ConnectError(Failure.TIMED_OUT, where, "the upstream proxy said nothing")
    if route.upstream is None:
        return ConnectError(Failure.OTHER, where)
    if isinstance(error, ssl.SSLError):
        return ConnectError(Failure.UPSTREAM_BROKEN, where, "its TLS certificate or protocol was not accepted")
    return ConnectError(Failure.UPSTREAM_BROKEN, where, "it closed the connection")


def other_name(destination: Destination, why: str) -> NetworkDecision:
    """Return the denial of a connection that was made for one name and then used for another."""
    return NetworkDecision(Reason.OTHER_NAME, str(destination), destination, detail=why)
