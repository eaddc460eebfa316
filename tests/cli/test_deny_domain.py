from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_deny_domain_closes_a_host(here: Here) -> None:
    here("allow-domain", "*.example.com")
    assert here("explain", "--json", "a.example.com").facts["verdict"] == "allow"
    assert here("deny-domain", "a.example.com").out == f"commands may not reach a.example.com ({here.local})\n"
    assert here("explain", "--json", "a.example.com").facts["verdict"] == "deny"
    assert here("explain", "--json", "b.example.com").facts["verdict"] == "allow"
