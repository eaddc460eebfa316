from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Here

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


def test_all_mistakes_of_shape_come_at_once(here: Here) -> None:
    file = here.user(FIVE_MISTAKES.replace('"*.com"', "7"))
    result = here("check", str(file))
    lines = [line for line in result.err.splitlines() if line.startswith("stockade: ")]
    assert result.status == 1
    assert len(lines) == 5
    assert 'hint: Did you mean "enabled"?' in result.err or "enabled" in result.err
    for path in ("enabeld", "mandatoryDenySearchDepth", "httpProxyPort", "allowedDomains[0]", "allowWrite"):
        assert any(path in line for line in lines), path


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
        "$.permissions.deny[1]",
        "$.permissions.deny[0]",
        "$.sandbox.filesystem.denyRead[0]",
        "$.sandbox.network.allowedDomains[0]",
        "$.sandbox.network.allowedDomains[2]",
        "$.sandbox.excludedCommands[0]",
        "$.sandbox.excludedCommands[1]",
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
