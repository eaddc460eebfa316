from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_enable_and_its_modes(here: Here) -> None:
    result = here("enable")
    assert (result.status, result.out) == (0, f"the sandbox is on ({here.local})\n")
    assert here("status", "--json").facts["enabled"] is True
    assert here("enable").out == f"nothing to change: {here.local} says so already\n"
    here("enable", "--mode", "strict")
    assert json.loads(here.local.read_text()) == {
        "sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False, "allowUnsandboxedCommands": False}
    }


def test_home_wide(here: Here) -> None:
    result = here("enable", "--home", "--json")
    file = here.home / ".stockade" / "settings.local.json"
    assert result.facts == {"file": str(file), "changed": True}
    assert not here.local.exists()
    assert here("status", "--json").facts["enabled"] is True


def test_a_lock_names_its_file(here: Here) -> None:
    managed = here.manage({"sandbox": {"enabled": True}})
    result = here("enable")
    assert result.status == 125
    assert str(managed) in result.err
    assert not here.local.exists()


def test_an_unreviewed_local_file_is_not_extended(here: Here) -> None:
    here.write(here.local, {"sandbox": {"excludedCommands": ["curl *"]}})
    result = here("enable")
    assert result.status == 125
    assert "stockade trust" in result.err
    assert json.loads(here.local.read_text()) == {"sandbox": {"excludedCommands": ["curl *"]}}
