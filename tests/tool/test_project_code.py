from __future__ import annotations

import pytest

from stockade.tool.project_code import asks_only, is_interpreter, is_runner, plain_name


@pytest.mark.parametrize(
    ("path", "name"), [("/usr/bin/python3.12", "python"), ("node", "node"), ("7", "7"), ("./x/perl5", "perl")]
)
def test_a_version_is_no_part_of_a_name(path: str, name: str) -> None:
    assert plain_name(path) == name


def test_what_runs_files_of_the_project() -> None:
    assert all(map(is_interpreter, ("python", "/usr/bin/python3", "bash", "node")))
    assert not any(map(is_interpreter, ("docker", "git", "make")))
    assert all(map(is_runner, ("make", "npm", "pytest", "/usr/bin/cargo", "pip3")))
    assert not any(map(is_runner, ("docker", "git", "python")))


@pytest.mark.parametrize(("words", "asks"), [(["--version"], True), (["-V"], True), (["-V", "x"], False), ([], False)])
def test_a_question_about_a_program_runs_nothing(words: list[str], *, asks: bool) -> None:
    assert asks_only(words) is asks
