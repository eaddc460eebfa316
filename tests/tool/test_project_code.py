from __future__ import annotations

import pytest

from stockade.tool.project_code import (
    asks_only,
    has_no_script,
    is_interpreter,
    is_runner,
    plain_name,
    runs_its_words,
)


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


@pytest.mark.parametrize(
    ("name", "words", "asks"),
    [
        ("/usr/bin/python3.11", ["--version"], True),
        ("python3", ["-V"], False),
        ("bash", ["-v"], False),
        ("tclsh", ["--version"], False),
        ("node", ["--version", "x"], False),
        ("node", [], False),
    ],
)
def test_a_question_about_a_program_runs_nothing(name: str, words: list[str], *, asks: bool) -> None:
    assert asks_only(name, words) is asks


def test_what_runs_its_words() -> None:
    assert all(map(runs_its_words, ("env", "/usr/bin/timeout", "xargs", "awk", "java")))
    assert not any(map(runs_its_words, ("docker", "python3", "bash")))
    assert has_no_script("deno")
    assert not has_no_script("python3")
