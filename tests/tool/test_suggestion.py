from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.command_pattern import CommandPattern
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.allowance import allowed_by
from stockade.tool.suggestion import suggested_patterns

OFFERED = {
    "a command": ("ls", ("ls:*",)),
    "options": ("ls -l /x", ("ls:*",)),
    "a subcommand": ("git commit -m x", ("git commit:*",)),
    "what is run": ("npm run test --watch", ("npm run test:*",)),
    "a file is no subcommand": ("cat a.txt", ("cat:*",)),
    "two": ("git add x && git commit -m 'a b'", ("git add:*", "git commit:*")),
    "the same twice": ("git add x; git add y", ("git add:*",)),
    "an interpreter": ("python build.py", ("python build.py:*",)),
    "an interpreter with its version": ("/usr/bin/python3.12 build.py a", ("/usr/bin/python3.12 build.py:*",)),
    "an interpreter that is run": ("uv run python x.py --fast", ("uv run python x.py:*",)),
}

NOTHING = {
    "nothing": "",
    "substitution": "ls $(x)",
    "a redirection": "ls > f",
    "a variable": "ls $x",
    "an assignment": "A=1 ls",
    "an interpreter with a program": "python -c 'import os'",
    "a shell with a line": "bash -c 'ls; rm x'",
    "a subshell": "(ls)",
    "what deletes": "rm x",
    "a wrapper": "sudo ls",
    "a wrapper of a shell": "busybox sh x",
    "a wrapper that is a builtin": "command rm x",
    "options before a subcommand": "git -C x status",
    "an interpreter with a version and a program": "python3.12 -c 1",
    "a shell that is run": "npm exec sh",
    "what runs others by an option": "tar -xf a",
    "a program as a word": "deno eval x",
    "more than anybody reads": "a; b; c; d; e; f",
    "a pattern of everything": "'*'",
    "an empty name": "'' x",
}


@pytest.mark.parametrize(("line", "patterns"), OFFERED.values(), ids=OFFERED)
def test_what_is_offered(line: str, patterns: tuple[str, ...]) -> None:
    assert suggested_patterns(line) == patterns


@pytest.mark.parametrize("line", NOTHING.values(), ids=NOTHING)
def test_what_no_rule_should_say(line: str) -> None:
    assert suggested_patterns(line) == ()


@pytest.mark.parametrize("line", ["npm run test", "make all", "ls; cargo build", "uv run python x.py"])
def test_for_outside_nothing_is_offered_that_runs_the_projects_own_code(line: str) -> None:
    assert suggested_patterns(line, outside=True) == ()


def test_for_outside_other_programs_are_offered() -> None:
    assert suggested_patterns("git push x; gh pr view", outside=True) == ("git push:*", "gh pr:*")


@pytest.mark.parametrize("line", ["read x", "printf -v x y", "export A=1", "set -e", "eval x", "hash -r", "test -v x"])
def test_no_builtin_that_assigns_or_evaluates_is_offered(line: str) -> None:
    assert suggested_patterns(line) == ()


WORDS = st.lists(st.sampled_from(["rm", "git", "push", "-f", "$x", "*", "'a b'", "&&", ";", "env", "A=1", ":*", "''"]))


@given(WORDS.map(" ".join) | st.text())
def test_what_is_offered_allows_the_line_and_never_everything(line: str) -> None:
    patterns = tuple(Sourced(CommandPattern.parse(text), Origin(Layer.LOCAL)) for text in suggested_patterns(line))
    assert not patterns or allowed_by(patterns, line).covered
    assert not any(pattern.value.is_universal for pattern in patterns)
