from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stockade.errors import LockedError, SettingsError, StockadeError
from stockade.policy.effective import WITHOUT_PROJECT, Diagnosis, diagnose, effective, load_policy
from stockade.settings.decode import examine
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.problem import Problem
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    return tmp_path.resolve()


def at(root: Path) -> Locations:
    return Locations(str(root / "repo"), str(root), str(root / "etc" / "managed.json"))


def write(file: Path, settings: object) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return str(file)


def test_settings_become_a_policy_that_guards_them(root: Path) -> None:
    user = write(root / ".stockade" / "settings.json", {"sandbox": {"enabled": True}})
    found = effective(at(root))
    assert found.policy.mode.enabled
    assert user in [rule.value.path for rule in found.policy.files.write_deny]
    assert found.warnings == ()


def test_warnings_of_settings_come_before_notes_on_rules(root: Path) -> None:
    user = write(root / ".claude" / "settings.json", {"permissions": {"allow": ["Bash(a && b)"]}})
    project = write(root / "repo/.stockade/settings.json", {"sandbox": {"excludedCommands": ["x"]}})
    assert [warning.split(" ")[0] for warning in effective(at(root)).warnings] == [project, f"{user}:"]


def test_every_problem_of_every_file_of_either_kind_comes_at_once(root: Path) -> None:
    bad = {
        "sandbox": {"enabled": 1, "network": {"allowedDomains": ["*.com", 7, "x/y"]}},
        "permissions": {"deny": ["Read"]},
    }
    user = write(root / ".stockade/settings.json", bad)
    local = write(root / ".stockade/settings.local.json", "")
    # Not trusted, and all the same told: what it says is a mistake whoever says it.
    project = write(root / "repo/.stockade/settings.json", {"sandbox": {"network": {"allowedDomains": ["*.com"]}}})
    flags = Document(Layer.COMMAND_LINE, "", {"sandbox.filesystem.allowWrite": ("",)})
    with pytest.raises(SettingsError) as caught:
        effective(at(root), flags=flags)
    assert sorted((problem.file, problem.path) for problem in caught.value.problems) == sorted(
        [
            ("command line", "$.sandbox.filesystem.allowWrite[0]"),
            (local, "$"),
            (user, "$.permissions.deny[0]"),
            (user, "$.sandbox.enabled"),
            (user, "$.sandbox.network.allowedDomains[0]"),
            (user, "$.sandbox.network.allowedDomains[1]"),
            (user, "$.sandbox.network.allowedDomains[2]"),
            (project, "$.sandbox.network.allowedDomains[0]"),
        ]
    )


def test_problems_of_one_file_come_by_path(root: Path) -> None:
    commands = ["ok", *(["a;b"] * 1), *(f"x{number} > y" for number in range(10))]
    write(root / ".stockade/settings.json", {"sandbox": {"zzz": 1, "excludedCommands": commands, "a": 1}})
    with pytest.raises(SettingsError) as caught:
        effective(at(root))
    assert [problem.path for problem in caught.value.problems] == [
        "$.sandbox.a",
        *(f"$.sandbox.excludedCommands[{number}]" for number in range(1, 12)),
        "$.sandbox.zzz",
    ]


def test_a_damaged_trust_store_is_told_with_the_rest(root: Path) -> None:
    store = write(root / ".stockade/trusted.json", "{")
    write(root / "repo/.stockade/settings.json", {"sandbox": {"excludedCommands": ["x"]}})
    with pytest.raises(SettingsError) as caught:
        effective(at(root))
    assert [problem.file for problem in caught.value.problems] == [store]


def test_a_lock_is_told_once_the_files_are_right(root: Path) -> None:
    write(root / "etc/managed.json", {"sandbox": {"enabled": True}})
    with pytest.raises(LockedError) as caught:
        effective(at(root), flags=Document(Layer.COMMAND_LINE, "", {"sandbox.enabled": False}))
    assert caught.value.message.startswith("the command line would loosen sandbox.enabled, but ")


@pytest.mark.parametrize(
    ("text", "diagnosis"),
    [
        pytest.param("{}", Diagnosis(()), id="nothing to say"),
        pytest.param(
            '{"permissions": {"allow": ["Bash(a;b)"]}}',
            Diagnosis((), ('f: "Bash(a;b)" allows nothing: it is not the plain words of one command',)),
            id="a note",
        ),
        pytest.param(
            '{"permissions": {"deny": [null]}}',
            Diagnosis(
                (
                    Problem(
                        "f",
                        "$.permissions.deny[0]",
                        "must be a non-empty string, not null",
                        "Leave the key out instead.",
                    ),
                )
            ),
            id="one place, one problem",
        ),
    ],
)
def test_a_document_by_itself(text: str, diagnosis: Diagnosis) -> None:
    decoded = examine(text.encode(), Layer.USER, "f")
    assert diagnose(decoded.document, decoded.problems, cwd="/w", home="/h") == diagnosis


def test_a_flat_file_is_complained_about_as_it_is_written() -> None:
    decoded = examine(b'{"network": {"allowedDomains": ["*"], "x": 1}}', Layer.COMMAND_LINE, "f", flat=True)
    found = diagnose(decoded.document, decoded.problems, cwd="/w", home="/h")
    assert [problem.path for problem in found.problems] == ["$.network.allowedDomains[0]", "$.network.x"]


def test_the_policy_of_a_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = write(root / "given.json", {"network": {"allowedDomains": ["a.example"]}})
    environ = {"HOME": str(root)}
    policy = load_policy(
        root / "repo", settings_file=given, provider=lambda: {"sandbox": {"failIfUnavailable": False}}, environ=environ
    )
    assert (policy.cwd, policy.home, policy.mode.fail_if_unavailable) == (str(root / "repo"), str(root), False)
    assert [rule.value.text for rule in policy.network.allowed] == ["a.example"]
    monkeypatch.chdir(root / "repo")
    monkeypatch.setenv("HOME", str(root))
    assert load_policy() == load_policy("../repo", environ=environ)


def test_a_directory_that_is_gone_is_our_own_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StockadeError, match="does not exist any more"):
        load_policy()


def test_what_is_wrong_with_a_project_can_be_left_out(root: Path) -> None:
    user = write(root / ".stockade/settings.json", {"sandbox": {"enabled": 1}})
    broken = write(root / "repo/.claude/settings.json", "{")
    wrong = write(root / "repo/.stockade/settings.json", {"permissions": {"deny": ["Read("]}})
    locations = Locations.here({"HOME": str(root)}, str(root / "repo"))
    with pytest.raises(SettingsError) as caught:
        effective(locations)
    offered = {problem.file: WITHOUT_PROJECT in problem.hint for problem in caught.value.problems}
    assert offered == {user: False, broken: True, wrong: True}
    with pytest.raises(SettingsError) as caught:
        effective(locations.but(ignore_project=True))
    assert [problem.file for problem in caught.value.problems] == [user]
