"""A name is a name: nothing in it is a pattern, an option, a separator or a text in some encoding."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.compile import BUILT_IN, compile_policy
from stockade.policy.path_pattern import PathPattern
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.layer import Sourced
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

    from stockade.policy.files import FileRules
    from stockade.policy.model import SandboxPolicy

NAMES = [
    pytest.param("with space", id="space"),
    pytest.param(" leading and trailing ", id="outer spaces"),
    pytest.param("two\nlines", id="newline"),
    pytest.param("tab\tand\rreturn", id="tab"),
    pytest.param("*", id="star"),
    pytest.param("**", id="two stars"),
    pytest.param("a[bc]d", id="brackets"),
    pytest.param("[", id="open bracket"),
    pytest.param("what?", id="question mark"),
    pytest.param("back\\slash", id="backslash"),
    pytest.param("\\", id="only a backslash"),
    pytest.param("trailing\\", id="trailing backslash"),
    pytest.param("octal\\040text", id="octal text"),
    pytest.param("-rf", id="leading dash"),
    pytest.param("--bind", id="option"),
    pytest.param("~", id="tilde"),
    pytest.param("$HOME", id="dollar"),
    pytest.param("quo'te\"s", id="quotes"),
    pytest.param("semi;colon&|", id="shell"),
    pytest.param("com,ma:co=lon", id="mount options"),
    pytest.param(os.fsdecode(b"\xff\xfe not utf-8 \x80"), id="not UTF-8"),
    pytest.param("\u00fcml\u00e4ut \U0001f600", id="beyond ASCII"),
    pytest.param("...", id="dots"),
    pytest.param("x" * 255, id="the longest name"),
    pytest.param("\x01\x1b[31m", id="control characters"),
    pytest.param("#hash!", id="hash"),
]
#: What a pattern of the same text would match; it must be treated as a stranger.
STRANGERS = ("ab", "abd", "acd", "whatX", "backXslash", "with", "octal text", "x")


class Scene:
    """A project whose name is odd, with a neighbour that a pattern would match."""

    def __init__(self, ground: Ground, name: str) -> None:
        self.ground = ground
        self.odd = ground.outside / name
        self.odd.mkdir()
        self.strangers = [ground.outside / stranger for stranger in STRANGERS if stranger != name]
        for stranger in self.strangers:
            stranger.mkdir()

    def policy(self, cwd: Path, **files: Any) -> SandboxPolicy:
        policy = compile_policy(merge([]), cwd=str(cwd), home=str(self.ground.home))
        return policy.but(files=policy.files.but(**files))

    def literal(self, path: Path) -> tuple[Sourced[PathPattern], ...]:
        return (Sourced(PathPattern.literal(str(path)), BUILT_IN),)

    def rules(self) -> FileRules:
        return self.policy(self.odd).files


@pytest.fixture
def scene(ground: Ground, name: str) -> Scene:
    return Scene(ground, name)


def _run(sandbox: BlockingSandbox, *words: str | Path) -> int | None:
    return sandbox.run([str(word) for word in words]).exit_code


def _that(sandbox: BlockingSandbox, command: str, *paths: Path) -> list[bytes]:
    """Return the paths with which a command succeeds."""
    loop = f'for path; do {command} "$path" >/dev/null 2>&1 && printf "%s\\0" "$path"; done'
    return sandbox.run(["sh", "-c", loop, "sh", *map(str, paths)]).stdout.split(b"\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_as_the_project(scene: Scene) -> None:
    odd = scene.odd
    (odd / ".git" / "hooks").mkdir(parents=True)
    with BlockingSandbox(scene.policy(odd)) as sandbox:
        assert _run(sandbox, "touch", "--", "made") == 0
        assert sandbox.run(["pwd"]).stdout == os.fsencode(odd) + b"\n"
        protected = [odd / place for place in (".git/hooks/pre-commit", ".mcp.json", ".git/config")]
        assert _that(sandbox, "true >>", *protected, *(stranger / "made" for stranger in scene.strangers)) == []
        assert _that(sandbox, "touch --", *(place / "made" for place in protected)) == []
        assert _that(sandbox, "rmdir --", *protected) == []
        assert _run(sandbox, "mv", "--", odd / ".git", odd / "aside") == 1
    assert sorted(os.listdir(odd)) == [".git", "made"]
    assert [os.listdir(stranger) for stranger in scene.strangers] == [[] for _ in scene.strangers]
    for words in (["touch", ".mcp.json"], ["touch", ".git/hooks/pre-commit"], ["mv", ".git", "aside"]):
        assert subprocess.run(words, cwd=odd, check=True).returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_that_is_denied(scene: Scene) -> None:
    odd, project = scene.odd, scene.ground.project
    (odd / "secret").write_text("secret")
    inner = project / odd.name
    inner.mkdir()
    (inner / "kept").write_text("unchanged")
    policy = scene.policy(project, read_deny=scene.literal(odd), write_deny=scene.literal(inner))
    with BlockingSandbox(policy) as sandbox:
        done = sandbox.run(["cat", "--", str(odd / "secret")])
        assert (done.exit_code, done.stdout, b"Permission denied" in done.stderr) == (1, b"", True)
        assert _run(sandbox, "sh", "-c", 'echo x > "$1"', "sh", inner / "kept") != 0
        assert _run(sandbox, "mv", "--", inner, project / "aside") == 1
        assert len(_that(sandbox, "ls --", *scene.strangers)) == len(scene.strangers)
    assert (inner / "kept").read_text() == "unchanged"
    assert subprocess.run(["cat", "--", odd / "secret"], capture_output=True, check=True).stdout == b"secret"


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_that_holds_a_repository(scene: Scene) -> None:
    project = scene.ground.project
    repository = project / scene.odd.name
    (repository / ".git" / "hooks").mkdir(parents=True)
    with BlockingSandbox(scene.policy(project)) as sandbox:
        assert _run(sandbox, "touch", "--", repository / "made") == 0
        assert _run(sandbox, "touch", "--", repository / ".git" / "hooks" / "pre-commit") == 1
        assert _run(sandbox, "mv", "--", repository, project / "aside") == 1
    assert os.listdir(repository / ".git" / "hooks") == []
    assert subprocess.run(["touch", "--", repository / ".git" / "hooks" / "x"], check=True).returncode == 0


@pytest.mark.parametrize("name", ["with space", "two\nlines", "-rf", "quo'te\"s", "back\\slash"])
def test_an_odd_name_in_settings(ground: Ground, name: str) -> None:
    """Settings can name such places; a backslash takes the meaning of a pattern away."""
    place = ground.outside / name
    place.mkdir()
    text = str(place).replace("\\", "\\\\")
    sandbox = ground.sandbox(filesystem__allowWrite=(text,))
    assert _run(sandbox, "touch", "--", place / "made") == 0
    held = place / ".mcp.json"
    assert _that(sandbox, "true >>", place / "other", held) == [os.fsencode(place / "other")]
    assert _that(sandbox, "touch --", held / "made") == []
    assert _that(sandbox, "rmdir --", held) == []
