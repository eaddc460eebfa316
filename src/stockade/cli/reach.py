"""What commands can reach, as ``status`` tells it: domains, proxies on the way, ports that lead inside.

Nothing is built or started to find out; whether programs without proxy variables are carried, only ``doctor`` tries.
"""

from __future__ import annotations

import sys

from stockade.annotation import TYPE_CHECKING
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.policy.model import SandboxPolicy
    from stockade.policy.network_rules import NetworkRules


class Reach(Value):
    """What there is to tell. Texts are safe to show.

    ``existing`` are proxies of the host that are used instead of ours, with what they are for; ``upstream`` those of
    the environment that ours goes through; ``trouble`` is why the latter cannot be read.
    """

    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    existing: tuple[tuple[str, str], ...]
    upstream: tuple[tuple[str, str], ...]
    trouble: str
    publishes: bool
    transparent: str

    def facts(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "allowedDomains": list(self.allowed),
            "deniedDomains": list(self.denied),
            "existingProxies": [
                {"kind": kind, "address": address, "filtered": False} for kind, address in self.existing
            ],
            "upstreamProxies": [{"for": kind, "address": address} for kind, address in self.upstream],
            "upstreamProblem": self.trouble or None,
            "localBinding": self.publishes,
            "transparent": self.transparent,
        }

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        yield f"allowed domains: {', '.join(self.allowed) or 'none, so that nothing can be reached'}"
        if self.denied:
            yield f"denied domains: {', '.join(self.denied)}"
        for kind, address in self.existing:
            yield f"existing {kind} proxy: {address} (not filtered by Stockade)"
        for kind, address in self.upstream:
            yield f"upstream proxy for {kind}: {address}"
        if self.trouble:
            yield f"upstream proxy: {self.trouble}; no host can be reached"
        ports = "may be published" if self.publishes else "only --publish publishes them (allowLocalBinding is not set)"
        yield f"ports of commands: {ports}"
        yield f"programs without proxy variables: {self.transparent}"


def reach(policy: SandboxPolicy, environment: Mapping[str, str]) -> Reach:
    """Tell what a policy lets commands reach, started from this environment."""
    existing = (("HTTP", policy.sockets.http_proxy_port), ("SOCKS", policy.sockets.socks_proxy_port))
    upstream, trouble = _upstream(environment)
    return Reach(
        *_domains(policy.network),
        tuple((kind, f"127.0.0.1:{port}") for kind, port in existing if port is not None),
        upstream,
        trouble,
        policy.sockets.local_binding,
        _transparent(),
    )


def _domains(rules: NetworkRules) -> tuple[tuple[str, ...], tuple[str, ...]]:
    allowed, denied = (
        tuple(dict.fromkeys(escape(rule.value.text) for rule in found)) for found in (rules.allowed, rules.denied)
    )
    return allowed, denied


def _upstream(environment: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the proxies of the environment without users and passwords, or why they cannot be read."""
    from stockade.network.upstream import Upstreams

    try:
        found = Upstreams.from_environment(environment)
    except InvalidTextError as error:
        return (), error.message
    pairs = (("plain HTTP", found.plain), ("everything else", found.other))
    return tuple((kind, escape(str(one))) for kind, one in pairs if one is not None), ""


def _transparent() -> str:
    if sys.platform != "linux":
        return "not carried on this system"
    return "carried as well where the kernel has nftables; `stockade doctor` tries it"
