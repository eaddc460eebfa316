from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stockade.network.failure import ConnectError, Failure
from stockade.network.gate import Gate
from stockade.network.resolver import Resolver
from stockade.network.route import Route, Router
from stockade.network.upstream import Upstream, Upstreams
from stockade.policy.decision import NetworkDecision, Reason
from stockade.policy.destination import Destination
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.network_rules import NetworkRules
from stockade.policy.port import Port
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {
    "a.com": ["1.1.1.1", "2a00::1"],
    "mixed.com": ["127.0.0.1", "1.1.1.1"],
    "evil.com": ["127.0.0.1"],
    "p.corp": ["10.0.0.1"],
    "local.corp": ["127.0.0.1"],
    "localhost": ["127.0.0.1"],
}
ALLOWED = "a.com mixed.com evil.com gone.com 127.0.0.1:5432 8.8.8.8 metadata.goog localhost"


def hosts(*texts: str) -> tuple[Host, ...]:
    return tuple(map(Host.parse, texts))


def routed(
    destination: str, environment: Mapping[str, str] | None = None, *, plain: bool = False
) -> tuple[Route | NetworkDecision, list[str]]:
    asked: list[str] = []

    def lookup(name: str) -> list[str]:
        asked.append(name)
        return NAMES.get(name, [])

    async def scene() -> Route | NetworkDecision:
        origin = Origin(Layer.USER)
        rules = NetworkRules(tuple(Sourced(DomainPattern.parse(text), origin) for text in ALLOWED.split()))
        gate = Gate(rules)
        resolver = Resolver(lookup)
        router = Router(gate, resolver, Upstreams.from_environment(environment or {}))
        there = Destination.parse(destination)
        decision = await gate.caller().decide(there.host.text, there.port.number)
        try:
            return await router.route(decision, plain=plain)
        finally:
            resolver.close()

    return asyncio.run(scene()), asked


HTTP = {"https_proxy": "http://p.corp:3128"}
LOCAL = {"https_proxy": "http://local.corp:3128"}
SOCKS5 = {"https_proxy": "socks5://p.corp"}
SOCKS5H = {"https_proxy": "socks5h://p.corp"}


def route(destination: str, addresses: tuple[Host, ...], port: int, upstream: Mapping[str, str] | None = None) -> Route:
    through = None if upstream is None else Upstream.parse(upstream["https_proxy"])
    return Route(Destination.parse(destination), addresses, Port(port), through)


@pytest.mark.parametrize(
    ("destination", "environment", "expected", "asked"),
    [
        pytest.param("a.com:443", {}, route("a.com:443", hosts("1.1.1.1", "2a00::1"), 443), ["a.com"], id="direct"),
        pytest.param("mixed.com:443", {}, route("mixed.com:443", hosts("1.1.1.1"), 443), ["mixed.com"], id="judged"),
        pytest.param("8.8.8.8:53", {}, route("8.8.8.8:53", hosts("8.8.8.8"), 53), [], id="address"),
        pytest.param("127.0.0.1:5432", {}, route("127.0.0.1:5432", hosts("127.0.0.1"), 5432), [], id="opened"),
        pytest.param(
            "a.com:443",
            HTTP,
            route("a.com:443", hosts("10.0.0.1"), 3128, HTTP),
            ["p.corp"],
            id="the proxy gets the name, which is not resolved here",
        ),
        pytest.param(
            "a.com:443",
            LOCAL,
            route("a.com:443", hosts("127.0.0.1"), 3128, LOCAL),
            ["local.corp"],
            id="proxy on this host",
        ),
        pytest.param(
            "a.com:443", SOCKS5H, route("a.com:443", hosts("10.0.0.1"), 1080, SOCKS5H), ["p.corp"], id="name for SOCKS"
        ),
        pytest.param(
            "a.com:443",
            SOCKS5,
            route("1.1.1.1:443", hosts("10.0.0.1"), 1080, SOCKS5),
            ["a.com", "p.corp"],
            id="address for SOCKS",
        ),
        pytest.param(
            "127.0.0.1:5432", HTTP, route("127.0.0.1:5432", hosts("127.0.0.1"), 5432), [], id="this host without proxy"
        ),
        pytest.param(
            "a.com:443",
            HTTP | {"no_proxy": "a.com"},
            route("a.com:443", hosts("1.1.1.1", "2a00::1"), 443),
            ["a.com"],
            id="excepted",
        ),
    ],
)
def test_the_route(destination: str, environment: Mapping[str, str], expected: Route, asked: list[str]) -> None:
    assert routed(destination, environment) == (expected, asked)


@pytest.mark.parametrize(
    ("destination", "environment", "reason"),
    [
        pytest.param("evil.com:443", {}, Reason.FORBIDDEN_ADDRESS, id="leads to loopback"),
        pytest.param("evil.com:443", SOCKS5, Reason.FORBIDDEN_ADDRESS, id="leads to loopback, for SOCKS"),
        pytest.param("localhost:80", HTTP, Reason.FORBIDDEN_ADDRESS, id="localhost"),
        pytest.param("metadata.goog:80", HTTP, Reason.FORBIDDEN_ADDRESS, id="metadata by name"),
        pytest.param("127.0.0.1:80", HTTP, Reason.NOBODY_TO_ASK, id="not allowed in the first place"),
    ],
)
def test_a_denial_takes_the_routes_place(destination: str, environment: Mapping[str, str], reason: Reason) -> None:
    outcome, _ = routed(destination, environment)
    assert isinstance(outcome, NetworkDecision)
    assert outcome.reason is reason
    assert outcome.remedy


def test_plain_requests_may_have_another_proxy() -> None:
    environment = {"http_proxy": "http://p.corp:80", "https_proxy": "http://local.corp:443"}
    outcome, _ = routed("a.com:80", environment, plain=True)
    assert isinstance(outcome, Route)
    assert outcome.upstream == Upstream.parse("http://p.corp:80")


def test_a_name_that_does_not_exist_is_a_failure() -> None:
    with pytest.raises(ConnectError) as caught:
        routed("gone.com:443")
    assert caught.value.failure is Failure.NO_SUCH_NAME
