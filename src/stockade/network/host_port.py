"""Ports of this host that the rules let commands reach: ``127.0.0.1:5432`` in an allow list.

Inside, localhost is the session's own. A port that is listed by the literal address of loopback is reached there, at
the same address, as if the host's server were inside. A literal without a port opens none: a session that held every
port of its localhost could start no server of its own.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stockade.policy.network_rules import NetworkRules

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})


def host_ports(rules: NetworkRules) -> tuple[tuple[str, int], ...]:
    """Return the addresses and ports, in the order of the rules, each once."""
    patterns = (sourced.value for sourced in rules.allowed)
    found = (
        (pattern.host.text, pattern.port.number)
        for pattern in patterns
        if pattern.host is not None and pattern.port is not None and pattern.host.text in _LOOPBACK
    )
    return tuple(dict.fromkeys(found))
