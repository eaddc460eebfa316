from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def stored(here: Here) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(here.local.read_text())["sandbox"]["filesystem"]
    return found


def test_relative_paths_are_stored_whole(here: Here) -> None:
    assert here("allow", "../out").status == 0
    assert stored(here) == {"allowWrite": [str(here.project.parent / "out")]}


def test_home_stays_a_tilde(here: Here) -> None:
    here("allow", "~/cache")
    assert stored(here) == {"allowWrite": ["~/cache"]}


def test_a_name_that_exists_is_no_pattern(here: Here) -> None:
    (here.home / "a[1]*").mkdir()
    here("allow", "~/a[1]*")
    assert stored(here) == {"allowWrite": ["~/a\\[1\\]\\*"]}
    facts = here("explain", "--json", str(here.home / "a[1]*" / "x")).facts
    assert facts["write"]["allowed"] is True
    assert here("explain", "--json", str(here.home / "a1b")).facts["write"]["allowed"] is False


def test_allow_and_deny_undo_each_other(here: Here) -> None:
    here("allow", "~/x")
    here("deny", "~/x")
    assert stored(here) == {"allowWrite": [], "denyWrite": ["~/x"]}
    here("allow", "~/x")
    assert stored(here) == {"allowWrite": ["~/x"], "denyWrite": []}


@pytest.mark.parametrize("path", ["", "a\0b", "~nobody-there/x", "a["])
def test_bad_paths_are_refused_and_nothing_is_written(here: Here, path: str) -> None:
    result = here("allow", path)
    assert result.status == 125
    assert result.err.startswith("stockade: ")
    assert "hint: " in result.err
    assert not here.local.exists()


def test_a_rule_that_still_refuses_is_named(here: Here) -> None:
    user = here.user({"sandbox": {"filesystem": {"denyWrite": ["~/x"]}}})
    result = here("allow", "~/x")
    assert result.status == 0
    assert "still refused" in result.err
    assert str(user) in result.err


def test_protected_names_are_said_to_stay_so(here: Here) -> None:
    (here.project / ".bashrc").touch()
    assert "still refused" in here("allow", ".bashrc").err
