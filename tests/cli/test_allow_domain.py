from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_allow_domain_opens_a_host(here: Here) -> None:
    assert here("explain", "--json", "a.example").facts["verdict"] == "deny"
    assert here("allow-domain", "a.example").out == f"commands may reach a.example ({here.local})\n"
    assert here("explain", "--json", "a.example").facts["verdict"] == "allow"
