from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stockade.cli.reach import reach
from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from stockade.policy.model import SandboxPolicy

CARRIED = "programs without proxy variables: carried as well where the kernel has nftables; `stockade doctor` tries it"
CLOSED = "ports of commands: only --publish publishes them (allowLocalBinding is not set)"


def policy(**values: Any) -> SandboxPolicy:
    named = {f"sandbox.network.{name}": value for name, value in values.items()}
    return compile_policy(merge([Document(Layer.USER, "f", named)]), cwd="/w", home="/h")


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")


@pytest.mark.parametrize(
    ("values", "environment", "lines"),
    [
        pytest.param(
            {}, {}, ["allowed domains: none, so that nothing can be reached", CLOSED, CARRIED], id="nothing is set"
        ),
        pytest.param(
            {"allowedDomains": ("example.com", "*.example.org:443"), "deniedDomains": ("evil.test",)},
            {},
            ["allowed domains: example.com, *.example.org:443", "denied domains: evil.test", CLOSED, CARRIED],
            id="domains",
        ),
        pytest.param(
            {"allowLocalBinding": True, "httpProxyPort": 8080, "socksProxyPort": 1081},
            {},
            [
                "allowed domains: none, so that nothing can be reached",
                "existing HTTP proxy: 127.0.0.1:8080 (not filtered by Stockade)",
                "existing SOCKS proxy: 127.0.0.1:1081 (not filtered by Stockade)",
                "ports of commands: may be published",
                CARRIED,
            ],
            id="proxies of the host",
        ),
        pytest.param(
            {"allowedDomains": ("a.test",)},
            {"http_proxy": "http://user:hunter2@proxy.test:3128", "ALL_PROXY": "socks5h://socks.test"},
            [
                "allowed domains: a.test",
                "upstream proxy for plain HTTP: http://...@proxy.test:3128",
                "upstream proxy for everything else: socks5h://socks.test:1080",
                CLOSED,
                CARRIED,
            ],
            id="upstream proxies",
        ),
        pytest.param(
            {"allowedDomains": ("a.test",)},
            {"https_proxy": "gopher://hunter2"},
            [
                "allowed domains: a.test",
                (
                    'upstream proxy: https_proxy in the environment: an upstream proxy cannot be spoken to by "gopher"'
                    "; no host can be reached"
                ),
                CLOSED,
                CARRIED,
            ],
            id="an upstream proxy that cannot be used",
        ),
    ],
)
def test_what_can_be_reached_is_told(values: dict[str, Any], environment: dict[str, str], lines: list[str]) -> None:
    assert list(reach(policy(**values), environment).lines()) == lines


def test_where_nothing_is_carried_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert list(reach(policy(), {}).lines())[-1] == "programs without proxy variables: not carried on this system"


def test_facts() -> None:
    found = reach(policy(allowedDomains=("a.test",), httpProxyPort=8080), {"https_proxy": "http://u:p@proxy.test"})
    assert found.facts() == {
        "allowedDomains": ["a.test"],
        "deniedDomains": [],
        "existingProxies": [{"kind": "HTTP", "address": "127.0.0.1:8080", "filtered": False}],
        "upstreamProxies": [{"for": "everything else", "address": "http://...@proxy.test:80"}],
        "upstreamProblem": None,
        "localBinding": False,
        "transparent": "carried as well where the kernel has nftables; `stockade doctor` tries it",
    }
