from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Here

TOO_MUCH = '"*.com" is not a domain pattern: all of .com is too much to allow'
FIVE_MISTAKES = """{
  "sandbox": {
    "enabeld": true,
    "mandatoryDenySearchDepth": 99,
    "network": {"httpProxyPort": "8080", "allowedDomains": ["*.com"]},
    "filesystem": {"allowWrite": "out"}
  }
}"""


def test_a_right_file_is_valid(here: Here) -> None:
    file = here.user({"sandbox": {"enabled": True}, "permissions": {"deny": ["Read(~/.ssh)"]}})
    result = here("check", str(file))
    assert (result.status, result.out, result.err) == (0, f"{file}: valid\n", "")


@pytest.mark.parametrize("words", [("check", "FILE"), ("check",), ("status",), ("explain", "x.example"), ("list",)])
def test_five_mistakes_of_mixed_kinds_are_five_problems(here: Here, words: tuple[str, ...]) -> None:
    file = here.user(FIVE_MISTAKES)
    result = here(*(str(file) if word == "FILE" else word for word in words))
    assert result.status == (1 if words[0] == "check" else 125)
    assert [line for line in result.err.splitlines() if line.startswith("stockade: ")] == [
        f"stockade: {file}: $.sandbox.enabeld: is not a setting",
        f'stockade: {file}: $.sandbox.filesystem.allowWrite: must be a list of non-empty strings, not "out"',
        f"stockade: {file}: $.sandbox.mandatoryDenySearchDepth: must be a whole number from 1 to 10, not 99",
        f"stockade: {file}: $.sandbox.network.allowedDomains[0]: {TOO_MUCH}",
        f'stockade: {file}: $.sandbox.network.httpProxyPort: must be a whole number from 1 to 65535, not "8080"',
    ]
    assert "hint: Did you mean enabled?" in result.err


def test_rules_that_allow_nothing_are_told(here: Here) -> None:
    file = here.write(here.home / ".claude" / "settings.json", {"permissions": {"allow": ["Bash(cd x && npm test)"]}})
    result = here("check", str(file))
    assert (result.status, result.out) == (0, f"{file}: valid\n")
    assert '"Bash(cd x && npm test)" allows nothing' in result.err


def test_all_mistakes_of_meaning_come_at_once(here: Here) -> None:
    file = here.user(
        {
            "sandbox": {
                "network": {"allowedDomains": ["*", "ok.example", "https://x.example/"]},
                "excludedCommands": ["a && b", "*"],
                "filesystem": {"denyRead": ["~other/x"]},
            },
            "permissions": {"allow": ["Edit("], "deny": ["Read", "WebFetch(domain:a b)"]},
        }
    )
    result = here("check", str(file), "--json")
    assert result.status == 1
    problems = result.facts[str(file)]["problems"]
    assert [problem["path"] for problem in problems] == [
        "$.permissions.allow[0]",
        "$.permissions.deny[0]",
        "$.permissions.deny[1]",
        "$.sandbox.excludedCommands[0]",
        "$.sandbox.excludedCommands[1]",
        "$.sandbox.filesystem.denyRead[0]",
        "$.sandbox.network.allowedDomains[0]",
        "$.sandbox.network.allowedDomains[2]",
    ]
    assert all(problem["message"] and problem["hint"] for problem in problems)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("  \n", "is empty", id="blank"),
        pytest.param("{", "line 1", id="cut short"),
        pytest.param("[]", "object", id="a list"),
    ],
)
def test_files_that_say_nothing_are_wrong(here: Here, content: str, words: str) -> None:
    result = here("check", str(here.user(content)))
    assert result.status == 1
    assert words in result.err


def test_what_is_no_file_is_wrong(here: Here, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = here("check", str(pipe), str(tmp_path), str(tmp_path / "missing"))
    assert result.status == 1
    assert "is a pipe, not a file" in result.err
    assert "is a directory, not a file" in result.err
    assert "does not exist" in result.err


def test_without_a_name_the_files_in_force_are_checked(here: Here) -> None:
    assert here("check").out == "no settings files are in force here\n"
    user = here.user({"sandbox": {}})
    project = here.project_file({"sandbox": {"enabeld": 1}})
    result = here("check")
    assert result.status == 1
    assert result.out == f"{user}: valid\n"
    assert str(project) in result.err


def test_srt_shape_is_read(here: Here, tmp_path: Path) -> None:
    file = here.write(tmp_path / "srt.json", {"network": {"allowedDomains": ["a.example"]}, "filesystem": {}})
    assert here("check", str(file)).status == 0


def test_claude_files_keep_their_own_keys(here: Here) -> None:
    file = here.write(here.home / ".claude" / "settings.json", {"model": "x", "permissions": {"deny": ["Read(./s)"]}})
    assert here("check", str(file)).status == 0
