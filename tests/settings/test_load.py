from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stockade.errors import LockedError, SettingsError
from stockade.placeholder import STAGE
from stockade.settings import home
from stockade.settings.catalog import (
    ALLOW,
    ALLOW_FLAG_SETTINGS,
    ALLOW_UNSANDBOXED,
    ALLOWED_DOMAINS,
    AUTO_ALLOW,
    CATALOG,
    DENIED_DOMAINS,
    DENY,
    ENABLED,
    EXCLUDED_COMMANDS,
    FAIL_IF_UNAVAILABLE,
    HTTP_PROXY_PORT,
    IGNORE_VIOLATIONS,
    SEARCH_DEPTH,
    Key,
    Kind,
    Loosens,
)
from stockade.settings.document import Document
from stockade.settings.layer import Layer, Origin
from stockade.settings.load import PROVIDER, Loaded, load
from stockade.settings.locks import Lock
from stockade.settings.merge import EMPTY, Settings
from stockade.settings.sources import Locations, settings_files
from stockade.settings.trust import trust
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Every place that settings come from, the highest first. Flags and the provider are no files.
PLACES = {
    "flags": Layer.COMMAND_LINE,
    "given.json": Layer.COMMAND_LINE,
    "etc/managed-settings.d/20.json": Layer.POLICY,
    "etc/managed-settings.d/10.json": Layer.POLICY,
    "etc/managed-settings.json": Layer.POLICY,
    "provider": Layer.FLAG,
    "flag.json": Layer.FLAG,
    "home/repo/.stockade/settings.local.json": Layer.LOCAL,
    "home/repo/.claude/settings.local.json": Layer.LOCAL,
    "home/.stockade/settings.local.json": Layer.LOCAL,
    "home/.claude/settings.local.json": Layer.LOCAL,
    "home/.stockade/settings.json": Layer.USER,
    "home/.claude/settings.json": Layer.USER,
    "home/repo/.stockade/settings.json": Layer.PROJECT,
    "home/repo/.claude/settings.json": Layer.PROJECT,
}
ORDER = list(PLACES)
PROJECT_PLACES = [place for place in ORDER if place.startswith("home/repo/")]


class House(Value):
    """A home, a repository in it, and an administrator's directory."""

    root: Path

    def write(self, place: str, value: object) -> Path:
        """Put settings in a place; a text is written as it is."""
        file = self.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def trust(self, place: str) -> None:
        file = self.root / place
        trust(str(self.root / "home"), str(file), file.read_bytes())

    @property
    def locations(self) -> Locations:
        given, flag = self.root / "given.json", self.root / "flag.json"
        return Locations(
            str(self.root / "home/repo"),
            str(self.root / "home"),
            str(self.root / "etc/managed-settings.json"),
            str(flag) if flag.exists() else None,
            str(given) if given.exists() else None,
        )

    def load(self, said: dict[str, dict[str, object]]) -> Loaded:
        """Load with these dotted settings in these places, every project file trusted."""
        for place, values in said.items():
            if place not in ("flags", "provider"):
                self.write(place, _nested(values))
        for place in PROJECT_PLACES:
            if place in said:
                self.trust(place)
        flags = Document(Layer.COMMAND_LINE, "flags", said["flags"]) if "flags" in said else None
        provided = _nested(said["provider"]) if "provider" in said else None
        return load(self.locations, flags=flags, provider=None if provided is None else lambda: provided)


def _nested(values: dict[str, object]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for name, value in values.items():
        *sections, leaf = name.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})  # type: ignore[assignment]  # sections hold sections
        node[leaf] = value
    return tree


def make_repository(place: Path) -> None:
    """Make what bounds a project; an empty ``.git`` does not, for a sandbox may hold the name."""
    (place / ".git").mkdir(parents=True)
    (place / ".git/HEAD").touch()


@pytest.fixture(name="house")
def _house(tmp_path: Path) -> House:
    root = tmp_path.resolve()
    make_repository(root / "home/repo")
    return House(root)


def _messages(act: Callable[[], object]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        act()
    assert all(problem.hint for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_without_any_file_there_are_only_defaults(house: House) -> None:
    files = settings_files(house.locations)
    assert load(house.locations) == Loaded(settings=EMPTY, documents=(), warnings=(), lock=None, files=files)


@pytest.mark.parametrize("number", [pytest.param(number, id=place) for number, place in enumerate(ORDER)])
def test_a_scalar_comes_from_the_highest_place(house: House, number: int) -> None:
    loaded = house.load(
        {place: {SEARCH_DEPTH.name: 1 + index % 10} for index, place in enumerate(ORDER) if index >= number}
    )
    found = loaded.settings.find(SEARCH_DEPTH)
    assert found.value == 1 + number % 10
    assert found.origin.layer is PLACES[ORDER[number]]
    assert [document.layer for document in loaded.documents] == list(PLACES.values())[number:]


def test_lists_of_all_places_are_joined_in_order(house: House) -> None:
    loaded = house.load({place: {EXCLUDED_COMMANDS.name: [f"from {place}", "everywhere"]} for place in ORDER})
    items = [item.value for item in loaded.settings.items(EXCLUDED_COMMANDS)]
    assert items == [f"from {ORDER[0]}", "everywhere", *(f"from {place}" for place in ORDER[1:])]


def test_objects_of_all_places_are_merged_per_key(house: House) -> None:
    loaded = house.load(
        {place: {IGNORE_VIOLATIONS.name: {"*": [place], place: ["x"]}} for place in ORDER if place != "flags"}
    )
    pairs = [pair.value for pair in loaded.settings.pairs(IGNORE_VIOLATIONS)]
    assert pairs == [pair for place in ORDER[1:] for pair in (("*", place), (place, "x"))]


@pytest.mark.parametrize("place", ORDER)
def test_policy_and_flag_lock_and_nobody_else(house: House, place: str) -> None:
    lock = house.load({place: {ALLOW_UNSANDBOXED.name: False}}).lock
    locks = PLACES[place] in (Layer.POLICY, Layer.FLAG)
    file = PROVIDER if place == "provider" else str(house.root / place)
    assert lock == (
        Lock(Origin(PLACES[place], file, ALLOW_UNSANDBOXED.path), (ALLOW_UNSANDBOXED.name,)) if locks else None
    )


@pytest.mark.parametrize("place", ["flags", "given.json"])
@pytest.mark.parametrize(
    "locker", ["etc/managed-settings.json", "etc/managed-settings.d/10.json", "flag.json", "provider"]
)
def test_under_a_lock_the_command_line_may_tighten_only(house: House, place: str, locker: str) -> None:
    lock: dict[str, object] = {ENABLED.name: True}
    loaded = house.load({locker: lock, place: {AUTO_ALLOW.name: False}})
    assert (loaded.settings.get(ENABLED), loaded.settings.get(AUTO_ALLOW)) == (True, False)
    file = "flags" if place == "flags" else str(house.root / place)
    with pytest.raises(LockedError, match=f"{file} would loosen sandbox.enabled, but .* locked by "):
        house.load({locker: lock, place: {ENABLED.name: False}})


@pytest.mark.parametrize("place", [place for place in ORDER if PLACES[place] < Layer.FLAG])
def test_under_a_lock_no_lower_file_lets_commands_out(house: House, place: str) -> None:
    loaded = house.load(
        {
            "etc/managed-settings.json": {ENABLED.name: True, EXCLUDED_COMMANDS.name: ["docker *"]},
            place: {EXCLUDED_COMMANDS.name: ["npm"], "sandbox.failIfUnavailable": False, DENY.name: ["Edit(./a)"]},
        }
    )
    managed = house.root / "etc/managed-settings.json"
    assert [item.value for item in loaded.settings.items(EXCLUDED_COMMANDS)] == ["docker *"]
    assert [item.value for item in loaded.settings.items(DENY)] == ["Edit(./a)"]
    assert loaded.settings.get(FAIL_IF_UNAVAILABLE) is True
    why = f"sandbox settings are locked by {managed} (policy)"
    assert [warning for warning in loaded.warnings if "ignored" in warning] == [
        f"{house.root / place}: ignored: sandbox.excludedCommands, sandbox.failIfUnavailable; {why}"
    ]


@pytest.mark.parametrize("place", [place for place in ORDER if PLACES[place] <= Layer.FLAG])
def test_below_a_lock_that_asks_for_each_command_no_file_allows_all(house: House, place: str) -> None:
    managed = house.root / "etc/managed-settings.json"
    said: dict[str, object] = {ALLOW.name: ["Bash(npm ci)", "Bash"]}
    loaded = house.load({"etc/managed-settings.json": {AUTO_ALLOW.name: False}, place: said})
    assert "Bash" not in [item.value for item in loaded.settings.items(ALLOW)]
    name = PROVIDER if place == "provider" else house.root / place
    why = f"sandbox settings are locked by {managed} (policy)"
    assert f'{name}: ignored: permissions.allow "Bash"; {why}' in loaded.warnings
    if place not in PROJECT_PLACES:
        assert [item.value for item in loaded.settings.items(ALLOW)] == ["Bash(npm ci)"]


def test_who_locks_so_may_still_allow_all(house: House) -> None:
    said = {AUTO_ALLOW.name: False, ALLOW.name: ["Bash"]}
    loaded = house.load({"etc/managed-settings.json": said})
    assert [item.value for item in loaded.settings.items(ALLOW)] == ["Bash"]
    assert not any("ignored" in warning for warning in loaded.warnings)


@pytest.mark.parametrize("place", ["flags", "given.json"])
def test_nor_does_the_command_line_allow_all_by_repeating_what_does_not_count(house: House, place: str) -> None:
    every: dict[str, object] = {ALLOW.name: ["Bash"]}
    with pytest.raises(LockedError, match=r"would loosen permissions\.allow"):
        house.load({"etc/managed-settings.json": {AUTO_ALLOW.name: False}, "flag.json": every, place: every})


def test_a_home_in_a_project_is_said_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    file = house.write(".stockade/settings.json", {"sandbox": {"filesystem": {"denyRead": ["./key"]}}})
    said = [warning for warning in load(house.locations).warnings if "HOME" in warning]
    assert len(said) == 1
    assert said[0].startswith(f"HOME is {house.root}/home, in a project ({file})")
    monkeypatch.setattr(home, "database_home", lambda: str(house.root / "home"))
    assert load(house.locations).warnings == ()


def test_a_deny_of_the_policy_holds_whatever_stands_above(house: House) -> None:
    said: dict[str, dict[str, object]] = {place: {DENY.name: []} for place in ("flags", "given.json")}
    loaded = house.load(said | {"etc/managed-settings.json": {DENY.name: ["Read(./x)"]}})
    assert [item.value for item in loaded.settings.items(DENY)] == ["Read(./x)"]


@pytest.mark.parametrize("place", PROJECT_PLACES)
def test_a_project_file_only_tightens_until_it_is_trusted(house: House, place: str) -> None:
    said = {"sandbox": {"excludedCommands": ["*"], "failIfUnavailable": False}, "permissions": {"deny": ["Read(./x)"]}}
    file = house.write(place, said)
    loaded = load(house.locations)
    assert loaded.documents == (Document(PLACES[place], str(file), {DENY.name: ("Read(./x)",)}),)
    ignored = "sandbox.excludedCommands, sandbox.failIfUnavailable"
    assert loaded.warnings == (f"{file} is not trusted; ignored: {ignored}. Read it, then run `stockade trust`",)
    house.trust(place)
    trusted = load(house.locations)
    assert [item.value for item in trusted.settings.items(EXCLUDED_COMMANDS)] == ["*"]
    assert trusted.warnings == ()
    file.write_text(file.read_text() + " ")
    assert load(house.locations) == loaded


def test_a_project_file_that_only_tightens_needs_no_trust(house: House) -> None:
    house.write("home/.stockade/trusted.json", "damaged, and never looked at")
    house.write(PROJECT_PLACES[0], {"permissions": {"deny": ["Read(./x)"]}})
    assert load(house.locations).warnings == ()


def test_enabling_by_an_untrusted_project_does_not_end_prompts(house: House) -> None:
    file = house.write("home/repo/.stockade/settings.json", {"sandbox": {"enabled": True}})
    loaded = load(house.locations)
    assert (loaded.settings.get(ENABLED), loaded.settings.get(AUTO_ALLOW)) == (True, False)
    assert loaded.warnings == (
        f"{file} is not trusted; commands still need approval. Read it, then run `stockade trust`",
    )


def test_untrusted_files_cannot_vouch_for_each_other(house: House) -> None:
    house.write("home/repo/.stockade/settings.json", {"sandbox": {"autoAllowBashIfSandboxed": True}})
    house.write("home/repo/.stockade/settings.local.json", {"sandbox": {"enabled": True}})
    settings_in_force = load(house.locations).settings
    assert (settings_in_force.get(ENABLED), settings_in_force.get(AUTO_ALLOW)) == (True, False)


def test_a_damaged_trust_store_stops(house: House) -> None:
    store = house.write("home/.stockade/trusted.json", "{")
    store.chmod(0o600)
    house.write(PROJECT_PLACES[0], {"sandbox": {"excludedCommands": ["*"]}})
    (message,) = _messages(lambda: load(house.locations))
    assert message.startswith(f"{store}: is not JSON: ")


_KINDS: dict[Kind, st.SearchStrategy[object]] = {
    Kind.FLAG: st.booleans(),
    Kind.NUMBER: st.integers(1, 10),
    Kind.TEXT: st.sampled_from(["a", "b"]),
    Kind.TEXTS: st.sampled_from([[], ["a"], ["a", "b"]]),
    Kind.ARGV: st.sampled_from([[], ["a"]]),
    Kind.TABLE: st.sampled_from([{}, {"*": ["a"]}, {"*": ["b"], "c": []}]),
}
_SAID = st.fixed_dictionaries({}, optional={name: _KINDS[key.kind] for name, key in CATALOG.items()})


def _grants(key: Key[object], in_force: Settings) -> set[object]:
    """Return what a setting opens, as a set that grows as it gets looser."""
    if key.kind in (Kind.TEXTS, Kind.TABLE):
        return {entry.value for entry in in_force.entries.get(key.name, ())}
    value = in_force.get(key)
    match key.loosens:
        case Loosens.WHEN_LESS:
            return set(range(int(str(value)), 11))
        case Loosens.ALWAYS:
            return {value}
        case _:
            return {"loose"} if value is (key.loosens is Loosens.WHEN_TRUE) else set()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(user=_SAID, projects=st.fixed_dictionaries({}, optional=dict.fromkeys(PROJECT_PLACES, _SAID)))
def test_an_untrusted_project_never_loosens_anything(
    house: House, user: dict[str, object], projects: dict[str, dict[str, object]]
) -> None:
    for place in PROJECT_PLACES:
        (house.root / place).unlink(missing_ok=True)
    house.write("home/.stockade/settings.json", _nested(user))
    before = load(house.locations).settings
    for place, said in projects.items():
        house.write(place, _nested(said))
    after = load(house.locations).settings
    for key in CATALOG.values():
        looser, tighter = (after, before) if key.loosens is Loosens.NEVER else (before, after)
        assert _grants(key, tighter) <= _grants(key, looser), key.name
    runs_unasked = after.get(ENABLED) and after.get(AUTO_ALLOW)
    assert not runs_unasked or before.get(ENABLED) or AUTO_ALLOW.name in before.entries


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda file: file.touch(), "is empty", id="empty"),
        pytest.param(lambda file: file.write_text(" \n"), "is empty", id="blank"),
        pytest.param(lambda file: file.mkdir(), "is a directory, not a file", id="directory"),
        pytest.param(os.mkfifo, "is a pipe, not a file", id="pipe"),
        pytest.param(lambda file: file.symlink_to("gone"), "is a link that leads nowhere", id="dangling link"),
        pytest.param(lambda file: file.symlink_to("/dev/zero"), "is a device, not a file", id="device"),
        pytest.param(lambda file: file.write_bytes(b"\xff"), "is not UTF-8 (byte 1)", id="not UTF-8"),
        pytest.param(lambda file: file.write_text("[]"), "must hold an object, not a list", id="no object"),
    ],
)
@pytest.mark.parametrize("place", [place for place in ORDER if "/" in place])
def test_a_file_that_cannot_be_used_stops(
    house: House, place: str, make: Callable[[Path], object], message: str
) -> None:
    file = house.root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    make(file)
    assert _messages(lambda: load(house.locations)) == [f"{file}: {message}"]


def test_problems_of_all_files_come_together(house: House) -> None:
    user = house.write("home/.stockade/settings.json", {"sandbox": {"enabled": 1, "x": 2}})
    theirs = house.write("home/.claude/settings.json", "")
    project = house.write("home/repo/.stockade/settings.json", {"permissions": {"deny": [""]}})

    def provider() -> dict[str, object]:
        message = "no \x1b network"
        raise ConnectionError(message)

    assert _messages(lambda: load(house.locations, provider=provider)) == [
        f"{PROVIDER}: failed: ConnectionError: no \\x1b network",
        f"{user}: $.sandbox.enabled: must be true or false, not 1",
        f"{user}: $.sandbox.x: is not a setting",
        f"{theirs}: is empty",
        f'{project}: $.permissions.deny[0]: must be a non-empty string, not ""',
    ]


@pytest.mark.parametrize(
    ("provided", "message"),
    [
        pytest.param({"sandbox": {"enabled": None}}, "$.sandbox.enabled: must be true or false, not null", id="null"),
        pytest.param({"sandbox": {"enable": True}}, "$.sandbox.enable: is not a setting", id="unknown key"),
        pytest.param(
            {"sandbox": object()}, "failed: TypeError: Object of type object is not JSON serializable", id="odd"
        ),
        pytest.param([], "must hold an object, not a list", id="no mapping"),
        pytest.param({"network": {}}, "$.network: is not a setting", id="flat shape"),
    ],
)
def test_a_provider_is_checked_like_a_file(house: House, provided: dict[str, object], message: str) -> None:
    assert _messages(lambda: load(house.locations, provider=lambda: provided)) == [f"{PROVIDER}: {message}"]


@pytest.mark.parametrize("field", ["settings_file", "flag_file"])
def test_a_file_that_somebody_named_must_be_there(house: House, field: str) -> None:
    locations = house.locations.but(**{field: "/no/such/file.json"})
    assert _messages(lambda: load(locations)) == ["/no/such/file.json: does not exist"]


def test_the_given_file_may_be_flat_and_no_other(house: House) -> None:
    flat = {"network": {"allowedDomains": ["a.io"]}}
    house.write("given.json", flat)
    assert [item.value for item in load(house.locations).settings.items(ALLOWED_DOMAINS)] == ["a.io"]
    user = house.write("home/.stockade/settings.json", flat)
    assert _messages(lambda: load(house.locations)) == [f"{user}: $.network: is not a setting"]


def test_warnings_of_files_come_first_and_in_order(house: House) -> None:
    user = house.write("home/.claude/settings.json", {"permissions": {"additionalDirectories": [".."]}})
    local = house.write(PROJECT_PLACES[0], {"permissions": {"allow": ["Bash"]}})
    shared = house.write(PROJECT_PLACES[2], {"permissions": {"allow": ["Edit"]}})
    assert load(house.locations).warnings == (
        f"{user}: $.permissions.additionalDirectories is not enforced by Stockade",
        f"{local} is not trusted; ignored: permissions.allow. Read it, then run `stockade trust`",
        f"{shared} is not trusted; ignored: permissions.allow. Read it, then run `stockade trust`",
    )


def test_a_managed_file_that_others_can_change_is_said(house: House) -> None:
    file = house.write("etc/managed-settings.json", {})
    file.chmod(0o666)
    (warning,) = load(house.locations).warnings
    assert warning.startswith(f"{file} is managed, but users besides root can change it")


MANAGED = "etc/managed-settings.json"


@pytest.mark.parametrize("place", ["flag.json", "provider"])
def test_under_a_lock_of_the_policy_the_flag_layer_lets_nobody_out(house: House, place: str) -> None:
    loaded = house.load(
        {
            MANAGED: {ENABLED.name: True},
            place: {EXCLUDED_COMMANDS.name: ["*"], "sandbox.network.httpProxyPort": 9, DENY.name: ["Read(./x)"]},
        }
    )
    assert loaded.settings.items(EXCLUDED_COMMANDS) == ()
    assert loaded.settings.get(HTTP_PROXY_PORT) is None
    assert [item.value for item in loaded.settings.items(DENY)] == ["Read(./x)"]
    file = PROVIDER if place == "provider" else str(house.root / place)
    assert loaded.warnings[-1] == (
        f"{file}: ignored: sandbox.excludedCommands, sandbox.network.httpProxyPort; "
        f"sandbox settings are locked by {house.root / MANAGED} (policy)"
    )


@pytest.mark.parametrize("text", ['{"sandbox": {"excludedCommands": ["*"]}}', "{", None])
def test_a_policy_can_say_that_the_variable_does_not_count(house: House, text: str | None) -> None:
    house.write(MANAGED, {"sandbox": {"allowFlagSettings": False}})
    locations = house.locations.but(flag_file=str(house.root / "flag.json"))
    if text is not None:
        house.write("flag.json", text)
    loaded = load(locations, provider=lambda: {"permissions": {"deny": ["Read(./x)"]}})
    assert loaded.settings.items(EXCLUDED_COMMANDS) == ()
    assert [item.value for item in loaded.settings.items(DENY)] == ["Read(./x)"], "a host program is no variable"
    assert loaded.warnings[0] == (
        f"STOCKADE_FLAG_SETTINGS does not count: {house.root / MANAGED} (policy) says sandbox.allowFlagSettings: "
        f"false; {house.root / 'flag.json'} was not read"
    )


def test_the_highest_managed_file_says_whether_the_variable_counts(house: House) -> None:
    said: dict[str, dict[str, object]] = {
        "etc/managed-settings.d/10.json": {ALLOW_FLAG_SETTINGS.name: True},
        MANAGED: {ALLOW_FLAG_SETTINGS.name: False},
        "flag.json": {DENY.name: ["Read(./x)"]},
    }
    assert [item.value for item in house.load(said).settings.items(DENY)] == ["Read(./x)"]


@pytest.mark.parametrize("place", [place for place in ORDER if PLACES[place] is not Layer.POLICY and place != "flags"])
@pytest.mark.parametrize("value", [True, False])
def test_nobody_else_says_whether_the_variable_counts(house: House, place: str, *, value: bool) -> None:
    managed: dict[str, dict[str, object]] = {} if not value else {MANAGED: {ALLOW_FLAG_SETTINGS.name: False}}
    flag: dict[str, dict[str, object]] = {
        "flag.json": {DENY.name: ["Read(./x)"], **({ALLOW_FLAG_SETTINGS.name: value} if "flag" in place else {})}
    }
    loaded = house.load(managed | {place: {ALLOW_FLAG_SETTINGS.name: value}} | flag)
    assert [item.value for item in loaded.settings.items(DENY)] == ([] if value else ["Read(./x)"])
    assert loaded.settings.get(ALLOW_FLAG_SETTINGS) is not value
    ignored = [warning for warning in loaded.warnings if "only managed settings can set it" in warning]
    assert len(ignored) == (0 if value and place == "flag.json" else 1)


@pytest.mark.parametrize("place", [place for place in ORDER if PLACES[place] < Layer.POLICY])
@pytest.mark.parametrize("deny", [{DENIED_DOMAINS.name: ["a.example"]}, {DENY.name: ["WebFetch(domain:a.example)"]}])
def test_where_the_policy_denies_domains_no_lower_file_names_a_proxy(
    house: House, place: str, deny: dict[str, object]
) -> None:
    port: dict[str, object] = {HTTP_PROXY_PORT.name: 9}
    assert house.load({place: port}).settings.get(HTTP_PROXY_PORT) == 9
    loaded = house.load({MANAGED: deny, place: port})
    assert loaded.settings.get(HTTP_PROXY_PORT) is None
    (warning,) = (warning for warning in loaded.warnings if "httpProxyPort" in warning)
    assert f"{house.root / MANAGED} (policy) denies domains" in warning
    assert house.load({MANAGED: deny | {HTTP_PROXY_PORT.name: 8}, place: port}).settings.get(HTTP_PROXY_PORT) == 8


@pytest.mark.parametrize("place", ["flags", "given.json"])
def test_nor_does_the_command_line(house: House, place: str) -> None:
    with pytest.raises(LockedError, match=r"sets sandbox.network.socksProxyPort, but .* denies domains"):
        house.load({MANAGED: {DENIED_DOMAINS.name: ["a.example"]}, place: {"sandbox.network.socksProxyPort": 9}})


LOOSE_AND_TIGHT = {
    "sandbox": {"excludedCommands": ["*"], "allowUnsandboxedCommands": False, "network": {"allowedDomains": ["a.b"]}},
    "permissions": {"deny": ["Read(./x)"]},
}


@pytest.mark.parametrize("folder", [".stockade", ".claude"])
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("nearer", ["nothing but a repository", "a settings file"])
@pytest.mark.parametrize("trusted", [True, False])
def test_what_stands_above_the_project_only_tightens(
    house: House, folder: str, name: str, nearer: str, *, trusted: bool
) -> None:
    place = f"home/repo/{folder}/{name}"
    file = house.write(place, LOOSE_AND_TIGHT)
    if trusted:
        house.trust(place)
    sub = house.root / "home/repo/sub"
    make_repository(sub)
    if nearer == "a settings file":
        house.write("home/repo/sub/.stockade/settings.json", {"sandbox": {"allowUnsandboxedCommands": True}})
    loaded = load(house.locations.but(cwd=str(sub)))
    assert loaded.settings.items(EXCLUDED_COMMANDS) == ()
    assert loaded.settings.items(ALLOWED_DOMAINS) == ()
    assert loaded.settings.get(ALLOW_UNSANDBOXED) is False, "whatever stands nearer and is not trusted"
    assert [item.value for item in loaded.settings.items(DENY)] == ["Read(./x)"]
    words = "stands above the project that you are in, where it can only tighten; ignored: sandbox.excludedCommands, "
    about = [warning for warning in loaded.warnings if str(file) in warning]
    assert about == ([f"{file} {words}sandbox.network.allowedDomains"] if trusted else [])


@pytest.mark.parametrize("held", ["", STAGE], ids=["empty", "with-a-stage"])
def test_a_git_that_a_sandbox_holds_bounds_no_project(house: House, held: str) -> None:
    place = "home/repo/.stockade/settings.json"
    house.write(place, LOOSE_AND_TIGHT)
    house.trust(place)
    sub = house.root / "home/repo/sub"
    (sub / ".git" / held).mkdir(parents=True)
    loaded = load(house.locations.but(cwd=str(sub)))
    assert loaded.settings.items(EXCLUDED_COMMANDS), "as if nothing was there"
    (sub / ".git/HEAD").touch()
    assert not load(house.locations.but(cwd=str(sub))).settings.items(EXCLUDED_COMMANDS)


def test_what_the_nearest_says_counts_whole_if_it_is_trusted(house: House) -> None:
    house.write("home/repo/.stockade/settings.json", {"sandbox": {"allowUnsandboxedCommands": False}})
    near = "home/repo/sub/.stockade/settings.json"
    house.write(near, {"sandbox": {"allowUnsandboxedCommands": True}})
    house.trust(near)
    loaded = load(house.locations.but(cwd=str(house.root / "home/repo/sub")))
    assert loaded.settings.get(ALLOW_UNSANDBOXED) is True


@pytest.mark.parametrize("trusted", [True, False])
def test_to_enable_from_above_does_not_end_prompts(house: House, *, trusted: bool) -> None:
    place = "home/repo/.stockade/settings.json"
    file = house.write(place, {"sandbox": {"enabled": True}})
    if trusted:
        house.trust(place)
    make_repository(house.root / "home/repo/sub")
    loaded = load(house.locations.but(cwd=str(house.root / "home/repo/sub")))
    assert (loaded.settings.get(ENABLED), loaded.settings.get(AUTO_ALLOW)) == (True, False)
    words = "stands above the project that you are in, where it can only tighten; commands still need approval"
    assert loaded.warnings == (f"{file} {words}",)


def test_a_broken_file_above_stops(house: House) -> None:
    file = house.write("home/repo/.stockade/settings.json", "{")
    make_repository(house.root / "home/repo/sub")
    (message,) = _messages(lambda: load(house.locations.but(cwd=str(house.root / "home/repo/sub"))))
    assert message.startswith(f"{file}: is not JSON")


def test_projects_that_are_left_out_are_named(house: House) -> None:
    file = house.write("home/repo/.stockade/settings.json", "{")
    loaded = load(house.locations.but(ignore_project=True))
    assert (loaded.settings, loaded.warnings) == (EMPTY, (f"left out, as you asked (--ignore-project): {file}",))
