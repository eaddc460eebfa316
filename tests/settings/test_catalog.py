from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.settings.catalog import CATALOG, HTTP_PROXY_PORT, LEAVING, LOCKING, Key, Kind, Loosens

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFAULT_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.FLAG: (bool,),
    Kind.NUMBER: (int, type(None)),
    Kind.TEXT: (str, type(None)),
    Kind.TEXTS: (tuple,),
    Kind.ARGV: (tuple,),
    Kind.TABLE: (dict,),
}


def _keys() -> Iterable[object]:
    return [pytest.param(key, id=name) for name, key in CATALOG.items()]


def test_the_settings_are_those_of_the_specification() -> None:
    assert list(CATALOG) == [
        "sandbox.enabled",
        "sandbox.autoAllowBashIfSandboxed",
        "sandbox.allowUnsandboxedCommands",
        "sandbox.failIfUnavailable",
        "sandbox.excludedCommands",
        "sandbox.network.allowUnixSockets",
        "sandbox.network.allowAllUnixSockets",
        "sandbox.network.denyUnixSockets",
        "sandbox.network.allowLocalBinding",
        "sandbox.network.httpProxyPort",
        "sandbox.network.socksProxyPort",
        "sandbox.network.allowedDomains",
        "sandbox.network.deniedDomains",
        "sandbox.filesystem.allowWrite",
        "sandbox.filesystem.denyWrite",
        "sandbox.filesystem.denyRead",
        "sandbox.filesystem.allowRead",
        "sandbox.filesystem.allowGitConfig",
        "sandbox.filesystem.allowProtected",
        "sandbox.filesystem.privateTmp",
        "sandbox.filesystem.dangerouslyAllowOwnInstallation",
        "sandbox.filesystem.privateCache",
        "sandbox.ignoreViolations",
        "sandbox.enableWeakerNestedSandbox",
        "sandbox.ripgrep.command",
        "sandbox.ripgrep.args",
        "sandbox.mandatoryDenySearchDepth",
        "sandbox.allowFlagSettings",
        "permissions.allow",
        "permissions.deny",
        "permissions.ask",
    ]


@pytest.mark.parametrize("key", _keys())
def test_every_key_is_whole(key: Key[object]) -> None:
    assert isinstance(key.default, _DEFAULT_TYPES[key.kind])
    assert (key.kind is Kind.NUMBER) == (key.high > 0)
    assert key.meaning.endswith(".") or key.name == "sandbox.ignoreViolations"


@pytest.mark.parametrize("key", _keys())
def test_a_direction_fits_its_kind(key: Key[object]) -> None:
    directions = {
        Kind.FLAG: {Loosens.WHEN_TRUE, Loosens.WHEN_FALSE},
        Kind.NUMBER: {Loosens.WHEN_LESS, Loosens.ALWAYS},
    }
    assert key.loosens in directions.get(key.kind, {Loosens.ALWAYS, Loosens.NEVER})


def test_only_denials_and_questions_never_loosen() -> None:
    never = {name.rpartition(".")[2] for name, key in CATALOG.items() if key.loosens is Loosens.NEVER}
    assert never == {"deniedDomains", "denyUnixSockets", "denyWrite", "denyRead", "deny", "ask"}


def test_a_key_says_where_it_is_and_what_it_takes() -> None:
    assert HTTP_PROXY_PORT.path == "$.sandbox.network.httpProxyPort"
    assert HTTP_PROXY_PORT.expected == "a whole number from 1 to 65535"


def test_the_three_locking_keys() -> None:
    assert [key.name for key in LOCKING] == [
        "sandbox.enabled",
        "sandbox.autoAllowBashIfSandboxed",
        "sandbox.allowUnsandboxedCommands",
    ]


def test_every_setting_that_loosens_is_a_way_out_or_known_to_be_none() -> None:
    loose = {name for name, key in CATALOG.items() if key.loosens is not Loosens.NEVER}
    assert loose - {key.name for key in LEAVING} == {
        "sandbox.autoAllowBashIfSandboxed",
        "sandbox.allowUnsandboxedCommands",
        "sandbox.network.allowLocalBinding",
        "sandbox.network.allowedDomains",
        "sandbox.filesystem.allowWrite",
        "sandbox.filesystem.allowRead",
        "sandbox.filesystem.privateCache",
        "sandbox.filesystem.privateTmp",
        "sandbox.ignoreViolations",
        "sandbox.ripgrep.command",
        "sandbox.ripgrep.args",
        "sandbox.allowFlagSettings",
        "permissions.allow",
    }


def test_every_list_of_places_depends_on_where_it_stands() -> None:
    placed = {name for name, key in CATALOG.items() if key.placed}
    assert placed == {
        "sandbox.network.denyUnixSockets",
        "sandbox.network.allowUnixSockets",
        *(f"sandbox.filesystem.{name}" for name in ("allowWrite", "denyWrite", "denyRead", "allowRead")),
        "sandbox.filesystem.allowProtected",
        *(f"permissions.{name}" for name in ("allow", "deny", "ask")),
    }
