from __future__ import annotations

import pytest

from stockade.errors import InvalidTextError
from stockade.policy.home_names import AT_HOME
from stockade.policy.protected_entry import names_lifted_by
from stockade.policy.protected_names import CONFIGS, INNER, NAMES, OWN

EVERY = [*AT_HOME, *NAMES, *(f"{first}/{entry}" for first in INNER if first != OWN for entry in INNER[first])]


def test_every_name_that_is_protected_can_be_lifted_in_any_case() -> None:
    for name in EVERY:
        for spelling in (name, name.upper(), f"{name}/"):
            assert {one.casefold() for one in names_lifted_by(spelling)} >= {name.casefold()}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(".git/config", CONFIGS, id="config-and-that-of-a-worktree"),
        pytest.param(".claude/", {name for name in EVERY if name.startswith(".claude/")}, id="all-in-a-directory"),
        pytest.param(".Gemini", {name for name in EVERY if name.startswith(".gemini/")}, id="all-in-another"),
        pytest.param("refs", {"refs", "objects", "HEAD"}, id="parts-of-a-repository"),
        pytest.param("head", {"refs", "objects", "HEAD"}, id="any-part"),
        pytest.param("sub", set(), id="path"),
        pytest.param(".", set(), id="here"),
        pytest.param("./.x", set(), id="dotted-path"),
        pytest.param("../x", set(), id="above"),
        pytest.param("~/.ssh", set(), id="in-home"),
        pytest.param("/p/.vscode", set(), id="absolute"),
        pytest.param("packages/*", set(), id="pattern"),
        pytest.param(".*/x", set(), id="dotted-pattern"),
    ],
)
def test_a_name_or_a_path(text: str, names: set[str]) -> None:
    assert names_lifted_by(text) == names


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param(".vscod", "is not the name of anything", "Did you mean .vscode? For a path, write ./", id="typo"),
        pytest.param("vscode", "is not the name of anything", "Did you mean .vscode?", id="no-dot"),
        pytest.param("git/hooks", "is not the name of anything", "Did you mean .git/hooks?", id="no-dot-and-slash"),
        pytest.param(".git", "is not the name", "Name what is meant in it: .git/hooks, .git/config", id="whole"),
        pytest.param(".vscode/settings.json", "is not the name", "Name .vscode, which is protected", id="a-part"),
        pytest.param(".claude/commands/a.md", "is not the name", "Name .claude/commands, which is", id="a-deep-part"),
        pytest.param(".xyzzy", "is not the name of anything", "Names are .gitconfig, ", id="nothing-like-it"),
        pytest.param(".a\x1b", '".a\\x1b" is not', "Names are", id="unseen"),
        pytest.param(".stockade", "cannot be lifted", "settings and its installation stay closed", id="own"),
        pytest.param(".Stockade/settings.json", "cannot be lifted", "change them outside", id="own-file"),
    ],
)
def test_what_is_neither_is_an_error_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidTextError) as raised:
        names_lifted_by(text)
    assert message in raised.value.message
    assert hint in raised.value.hint
