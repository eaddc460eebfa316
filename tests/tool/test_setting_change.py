"""What the commands of the command line do is tested with them; here, what a change is and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stockade.errors import InvalidTextError, LockedError
from stockade.settings.catalog import ALLOW_WRITE, DENY_WRITE, ENABLED
from stockade.settings.edit import AddItems, RemoveItems, SetValue
from stockade.tool.setting_change import (
    SettingChange,
    allow_commands,
    exclude,
    rule_domain,
    rule_path,
    still_refused,
    switch_off,
    switch_on,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.tool.conftest import Yard


def test_a_change_is_a_value(yard: Yard) -> None:
    assert switch_off() == SettingChange((SetValue(ENABLED, value=False),), "the sandbox is off")
    denied = rule_path("out", yard.locations, allow=False)
    path = f"{yard.project}/out"
    assert denied.edits == (AddItems(DENY_WRITE, (path,)), RemoveItems(ALLOW_WRITE, (path,)))
    assert denied.done == f"commands may not write {path}"


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        (None, {"enabled": True}),
        ("auto", {"enabled": True, "autoAllowBashIfSandboxed": True}),
        ("strict", {"enabled": True, "autoAllowBashIfSandboxed": False, "allowUnsandboxedCommands": False}),
        ("off", {"enabled": False}),
    ],
)
def test_modes(yard: Yard, mode: str | None, values: dict[str, bool]) -> None:
    write(switch_on(mode), yard.locations)
    assert json.loads(yard.local.read_text()) == {"sandbox": values}


def test_what_refuses_all_the_same_is_told(yard: Yard) -> None:
    yard.user({"sandbox": {"filesystem": {"denyWrite": ["~/x"]}, "network": {"deniedDomains": ["*"]}}})
    for change, rule in (
        (rule_path("~/x", yard.locations, allow=True), "writing is denied"),
        (rule_domain("a.example", allow=True), "* is denied"),
    ):
        write(change, yard.locations)
        refusal = still_refused(change, yard.locations)
        assert refusal is not None
        assert rule in refusal
    assert still_refused(switch_off(), yard.locations) is None


def test_locked_settings_are_not_changed(yard: Yard) -> None:
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    with pytest.raises(LockedError, match=r"locked by .*managed-settings\.json"):
        write(switch_off(), yard.locations)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: exclude("*"), id="an exclusion of everything"),
        pytest.param(lambda: exclude("Read(x)"), id="an exclusion of no command"),
        pytest.param(lambda: allow_commands(["ls", "*"]), id="a rule for everything"),
        pytest.param(lambda: rule_domain("*.com", allow=True), id="too wide a domain"),
    ],
)
def test_what_is_too_much_is_refused(make: Callable[[], SettingChange]) -> None:
    with pytest.raises(InvalidTextError):
        make()
