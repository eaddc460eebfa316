from __future__ import annotations

import pytest

from stockade.network.host_port import host_ports
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

USER = Origin(Layer.USER, "settings.json")


@pytest.mark.parametrize(
    ("allowed", "ports"),
    [
        pytest.param("", (), id="nothing allowed"),
        pytest.param("127.0.0.1:5432", (("127.0.0.1", 5432),), id="a literal with its port"),
        pytest.param("[::1]:5432", (("::1", 5432),), id="IPv6"),
        pytest.param("0x7f.1:5432", (("127.0.0.1", 5432),), id="another spelling of the same"),
        pytest.param("127.0.0.1", (), id="no port"),
        pytest.param("localhost:5432", (), id="a name is no literal"),
        pytest.param("127.0.0.2:5432", (), id="an address that is not the session's localhost"),
        pytest.param("192.0.2.1:5432 example.com:443 *.example.com:443", (), id="elsewhere"),
        pytest.param(
            "127.0.0.1:2 127.0.0.1:1 127.0.0.1:2", (("127.0.0.1", 2), ("127.0.0.1", 1)), id="each once, in order"
        ),
    ],
)
def test_ports_of_the_host(allowed: str, ports: tuple[tuple[str, int], ...]) -> None:
    patterns = tuple(Sourced(DomainPattern.parse(text), USER) for text in allowed.split())
    assert host_ports(NetworkRules(patterns)) == ports
