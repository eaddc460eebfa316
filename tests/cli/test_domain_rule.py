from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def stored(here: Here) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(here.local.read_text())["sandbox"]["network"]
    return found


def test_the_canonical_form_is_stored(here: Here) -> None:
    here("allow-domain", "*.EXAMPLE.com.")
    assert stored(here) == {"allowedDomains": ["*.example.com"]}


def test_allow_and_deny_undo_each_other(here: Here) -> None:
    here("deny-domain", "a.example")
    here("allow-domain", "a.example")
    assert stored(here) == {"deniedDomains": [], "allowedDomains": ["a.example"]}


@pytest.mark.parametrize("domain", ["*", "*.com", "https://a.example", "a b", "", "a.example/x"])
def test_what_is_no_pattern_is_refused(here: Here, domain: str) -> None:
    result = here("allow-domain", domain)
    assert result.status == 125
    assert "hint: " in result.err
    assert not here.local.exists()


def test_a_deny_that_still_holds_is_named(here: Here) -> None:
    user = here.user({"sandbox": {"network": {"deniedDomains": ["*"]}}})
    result = here("allow-domain", "a.example")
    assert f"still refused: * is denied by {user} (user)" in result.err
