from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stockade.platforms.private_cache import PrivateCache
from stockade.settings.catalog import CATALOG

if TYPE_CHECKING:
    import pytest
    from tests.cli.conftest import Here


def test_every_setting_is_shown_with_its_source(here: Here) -> None:
    user = here.user({"sandbox": {"enabled": True, "ignoreViolations": {"*": ["noise"]}}})
    facts = here("status", "--json").facts
    assert set(facts["settings"]) == set(CATALOG)
    assert facts["enabled"] is True
    assert facts["settings"]["sandbox.enabled"] == [{"value": True, "layer": "user", "file": str(user)}]
    assert facts["settings"]["sandbox.mandatoryDenySearchDepth"] == [{"value": 3, "layer": "defaults", "file": ""}]
    assert facts["files"] == [str(user)]
    text = here("status").out
    assert "sandbox: on in " in text
    assert "*: noise" in text
    assert "in any case" not in text


def test_a_sandbox_that_is_off_is_still_that_of_run(here: Here) -> None:
    assert "`stockade run` and `shell` use it in any case\n" in here("status").out


def test_lock_and_foreign_proxies_are_said(here: Here) -> None:
    here.manage({"sandbox": {"enabled": True, "network": {"httpProxyPort": 3128}}})
    text = here("status").out
    assert f"locked by {here.managed} (policy)" in text
    assert "existing HTTP proxy: 127.0.0.1:3128 (not filtered by Stockade)" in text
    assert here("status", "--json").facts["locked"] == {"layer": "policy", "file": str(here.managed)}


def test_what_can_be_reached_is_shown(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:hunter2@proxy.test:3128")
    here.user({"sandbox": {"network": {"allowedDomains": ["example.com"]}}})
    text = here("status").out
    assert "\nallowed domains: example.com\n" in text
    assert "\nupstream proxy for everything else: http://...@proxy.test:3128\n" in text
    facts = here("status", "--json").facts
    assert facts["network"]["allowedDomains"] == ["example.com"]
    assert "hunter2" not in text + str(facts)


def test_what_is_missing_comes_with_its_command(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    facts = here("status", "--json").facts
    assert facts["missing"]
    assert all(one["install"] for one in facts["missing"])
    assert "missing: " in here("status").out


def test_modes_on_the_command_line(here: Here) -> None:
    settings = here("status", "--json", "--sandbox-mode", "strict").facts["settings"]
    assert settings["sandbox.allowUnsandboxedCommands"][0] == {"value": False, "layer": "command line", "file": ""}


def test_the_cache_is_shown_with_its_size(here: Here) -> None:
    assert "caches of package managers: kept for this project; nothing is there yet\n" in here("status").out
    held = PrivateCache.hold(str(here.project), str(here.home), {})
    Path(held.path, "kept").write_bytes(b"x" * 10_000)
    held.release()
    assert "/cache, 12.0 KiB\n" in here("status").out
    assert "KiB" not in here("status", "--quick").out
    cache = here("status", "--json").facts["cache"]
    assert (cache["kept"], cache["path"], cache["bytes"]) == (True, held.path, 12288)
    here.user({"sandbox": {"filesystem": {"privateCache": False}}})
    assert "gone with each session (a setting says so" in here("status").out
    assert here("status", "--json").facts["cache"]["kept"] is False
