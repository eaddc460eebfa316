from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_rules_are_listed_with_their_files(here: Here) -> None:
    user = here.user(
        {
            "sandbox": {"excludedCommands": ["docker *"], "network": {"allowedDomains": ["a.example"]}},
            "permissions": {"allow": ["Bash(ls:*)"], "deny": ["WebFetch(domain:b.example)", "Edit(./keep)"]},
        }
    )
    facts = here("list", "--json").facts
    origin = {"layer": "user", "file": str(user)}
    assert facts["may reach"] == [{"rule": "a.example", **origin, "path": "$.sandbox.network.allowedDomains[0]"}]
    assert facts["may not reach"] == [{"rule": "b.example", **origin, "path": "$.permissions.deny[0]"}]
    assert facts["runs outside"] == [{"rule": "docker *", **origin, "path": "$.sandbox.excludedCommands[0]"}]
    assert facts["commands allowed"] == [{"rule": "ls:*", **origin, "path": "$.permissions.allow[0]"}]
    assert facts["may not write"][0] == {"rule": "./keep", **origin, "path": "$.permissions.deny[1]"}
    text = here("list").out
    assert "~/.stockade/settings.json (user)" in text


def test_flags_are_rules_of_the_highest_layer(here: Here) -> None:
    facts = here("list", "--json", "--allow-domain", "a.example").facts
    assert facts["may reach"][0]["layer"] == "command line"
