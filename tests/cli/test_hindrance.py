"""A stranger's project that lets nothing start: its file and rule are named, and one can go on without it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from stockade.cli.hindrance import hint
from stockade.errors import StockadeError
from stockade.policy.compile import compile_policy
from stockade.policy.effective import WITHOUT_PROJECT
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from tests.cli.conftest import Here, Outside

NOT_STARTED = StockadeError("the command could not be started: exec: /bin/sh: Permission denied", "check it")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ls -l",), "'ls -l'"),
        (("FOO=bar", "env"), "'FOO=bar env'"),
        (("cd", "src"), "'cd src'"),
        (("a|b\x1b",), "'a|b\\x1b'"),
        (("lss", "-l"), ""),
        (("./a=b",), ""),
    ],
)
def test_what_only_a_shell_understands_is_told(outside: Outside, words: tuple[str, ...], expected: str) -> None:
    status, _, err = outside.run("run", *words)
    assert status == 127
    assert ("for a line of the shell: stockade run -c" in err) == bool(expected)
    assert err.endswith(f"{expected}\n")


def denying(place: str) -> dict[str, Any]:
    return {"sandbox": {"filesystem": {"denyRead": [place]}}}


@pytest.mark.parametrize("place", ["/", ".", "/usr", "/lib64", "/proc", "/dev/null", "/bin"])
def test_who_lets_nothing_start_is_named_and_can_be_left_out(here: Here, outside: Outside, place: str) -> None:
    file = here.project_file(denying(place))
    if place == "/lib64" and not os.path.exists(place):
        pytest.skip("this system has no /lib64")
    status, out, err = outside.run("run", "-c", "echo started")
    assert (status in (125, 126), out) == (True, "")
    assert f'"{place}" of {file} (project)' in err
    assert err.endswith(f"{WITHOUT_PROJECT}\n")
    status, out, err = outside.run("run", "--ignore-project", "-c", "echo started")
    assert (status, out) == (0, "started\n")
    assert err == f"stockade: warning: left out, as you asked (--ignore-project): {file}\n"


@pytest.mark.parametrize("text", ["{", "", '{"sandbox": {"enabeld": true}}', '{"permissions": {"deny": ["Read("]}}'])
def test_a_broken_file_of_a_project_can_be_left_out(here: Here, outside: Outside, text: str) -> None:
    file = here.project_file(text)
    status, _, err = outside.run("run", "--", "true")
    assert status == 125
    assert str(file) in err
    assert WITHOUT_PROJECT in err
    assert outside.run("run", "--ignore-project", "--", "true")[0] == 0


def test_the_users_own_rule_is_not_left_out(here: Here, outside: Outside) -> None:
    here.user(denying("/usr"))
    status, _, err = outside.run("run", "--ignore-project", "--", "true")
    assert status == 127
    assert WITHOUT_PROJECT not in err
    here.user({})
    here.project_file(denying("/usr"))
    status, _, err = outside.run("run", "--", "true")
    assert status == 127
    assert WITHOUT_PROJECT in err


@pytest.mark.parametrize(
    ("layer", "file", "place", "error", "expected"),
    [
        pytest.param(
            Layer.PROJECT,
            "/p/.stockade/settings.json",
            os.path.dirname(shutil.which("true") or ""),
            NOT_STARTED,
            WITHOUT_PROJECT,
            id="the program",
        ),
        pytest.param(Layer.PROJECT, "/p/.stockade/settings.json", "/p", NOT_STARTED, WITHOUT_PROJECT, id="directory"),
        pytest.param(Layer.PROJECT, "/p/.stockade/settings.json", "/q", NOT_STARTED, "check it", id="another place"),
        pytest.param(Layer.USER, "/h/.stockade/settings.json", "/usr", NOT_STARTED, "check it", id="the user's rule"),
        pytest.param(
            Layer.PROJECT,
            "/p/.stockade/settings.json",
            "/usr",
            StockadeError("no descriptor left", "close files"),
            "close files",
            id="another failure",
        ),
    ],
)
def test_only_a_rule_of_a_project_that_hides_what_is_needed_is_blamed(
    layer: Layer, file: str, place: str, error: StockadeError, expected: str
) -> None:
    settings = merge([Document(layer, file, {"sandbox.filesystem.denyRead": (place,)})])
    policy = compile_policy(settings, cwd="/p", home="/h")
    assert hint(error, policy, ["true"]).endswith(expected)
