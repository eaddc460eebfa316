from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here


@pytest.mark.parametrize(
    ("text", "stored"),
    [("docker *", "docker *"), ("npm run test", "npm run test"), ("Bash(npm run:*)", "npm run:*")],
)
def test_the_pattern_is_stored(here: Here, text: str, stored: str) -> None:
    assert here("exclude", text).status == 0
    assert json.loads(here.local.read_text()) == {"sandbox": {"excludedCommands": [stored]}}


@pytest.mark.parametrize("text", ["", "*", "a && b", "Edit(x)", "Bash(", "a\x00"])
def test_what_is_no_exclusion_is_refused(here: Here, text: str) -> None:
    result = here("exclude", text)
    assert result.status == 125
    assert "hint: " in result.err
    assert not here.local.exists()


def test_an_excluded_command_runs_outside_and_a_compound_one_does_not(here: Here) -> None:
    here("enable")
    here("exclude", "docker *")
    assert here("explain", "--json", "docker ps").facts["inside"] is False
    assert here("explain", "--json", "docker ps && curl x").facts["inside"] is True
