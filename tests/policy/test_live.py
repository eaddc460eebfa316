from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import SettingsError
from stockade.policy.decision import Verdict, decide
from stockade.policy.live import LivePolicy, PolicyChange
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from pathlib import Path


class House:
    """A home with one settings file, and a project in it."""

    def __init__(self, root: Path) -> None:
        (root / "repo" / ".git").mkdir(parents=True)
        self.file = root / ".stockade" / "settings.json"
        self.file.parent.mkdir()
        self.locations = Locations(str(root / "repo"), str(root), str(root / "etc" / "managed.json"))

    def write(self, settings: object) -> None:
        self.file.write_text(settings if isinstance(settings, str) else json.dumps(settings))

    def allow(self, *domains: str) -> None:
        self.write({"sandbox": {"network": {"allowedDomains": domains}}})


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path.resolve())


def reach(live: LivePolicy, host: str) -> Verdict:
    return decide(live.policy.network, host, 443, can_ask=False).verdict


def test_a_new_rule_makes_a_new_policy_and_says_which_part(house: House) -> None:
    live = LivePolicy(house.locations)
    before = live.policy
    assert live.poll() is None
    house.allow("a.example")
    assert live.poll() == PolicyChange(live.policy, before)
    assert (reach(live, "a.example"), reach(live, "b.example")) == (Verdict.ALLOW, Verdict.DENY)
    assert live.poll() is None


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        pytest.param({"sandbox": {"network": {"deniedDomains": ["a.example"]}}}, {"network"}, id="network"),
        pytest.param({"sandbox": {"filesystem": {"denyRead": ["~/.ssh"]}}}, {"files"}, id="files"),
        pytest.param({"sandbox": {"enabled": True, "excludedCommands": ["x"]}}, {"mode", "commands"}, id="two parts"),
        pytest.param({"permissions": {"allow": ["Bash(a;b)"]}}, {"notes"}, id="notes alone"),
    ],
)
def test_what_changed_is_named(house: House, settings: object, parts: set[str]) -> None:
    live = LivePolicy(house.locations)
    house.write(settings)
    change = live.poll()
    assert change is not None
    assert change.parts == parts
    assert change.warnings == live.warnings == live.policy.notes


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("", id="empty"),
        pytest.param({"sandbox": {"enabeld": True}}, id="shape"),
        pytest.param({"sandbox": {"network": {"allowedDomains": ["*.com"]}}}, id="meaning"),
    ],
)
def test_a_mistake_keeps_the_last_good_policy(house: House, bad: object) -> None:
    house.allow("a.example")
    live = LivePolicy(house.locations)
    good = live.policy
    house.write(bad)
    change = live.poll()
    assert change is not None
    assert (change.policy, change.before, live.policy, change.parts) == (good, good, good, frozenset())
    assert isinstance(change.error, SettingsError)
    assert [str(house.file) in warning and "stay in force" in warning for warning in live.warnings] == [True]
    house.allow("b.example")
    mended = live.poll()
    assert mended is not None
    assert (mended.error, mended.warnings, mended.parts) == (None, (), frozenset({"network"}))
    assert reach(live, "b.example") is Verdict.ALLOW


def test_without_a_good_policy_there_is_nothing_to_keep(house: House) -> None:
    house.allow("*")
    with pytest.raises(SettingsError):
        LivePolicy(house.locations)


def test_subscribers_are_told_when_the_policy_is_in_force_already(house: House) -> None:
    live = LivePolicy(house.locations)
    told: list[tuple[PolicyChange, bool]] = []
    end = live.subscribe(lambda change: told.append((change, change.policy is live.policy)))
    house.allow("a.example")
    change = live.poll()
    assert told == [(change, True)]
    end()
    end()
    house.allow("b.example")
    assert live.poll() is not None
    assert len(told) == 1


def test_a_subscriber_that_fails_keeps_the_news_from_nobody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, _error, _trace: reported.append(kind))
    live = LivePolicy(house.locations)
    told: list[PolicyChange] = []

    def fail(_change: PolicyChange) -> None:
        raise ValueError

    live.subscribe(fail)
    live.subscribe(told.append)
    house.allow("a.example")
    assert live.poll() == told[0]
    assert reported == [ValueError]


def test_flags_and_a_provider_stay_in_force(house: House) -> None:
    said: dict[str, Any] = {"sandbox": {"enabled": True}}
    flags = Document(Layer.COMMAND_LINE, "", {"sandbox.network.deniedDomains": ("a.example",)})
    live = LivePolicy(house.locations, flags=flags, provider=lambda: said)
    house.allow("a.example")
    live.poll()
    assert (live.policy.mode.enabled, reach(live, "a.example")) == (True, Verdict.DENY)
    said["sandbox"]["enabled"] = False
    assert live.poll() is None
    change = live.reload()
    assert change is not None
    assert (change.parts, live.policy.mode.enabled) == (frozenset({"mode"}), False)
    assert live.loaded.lock is not None
