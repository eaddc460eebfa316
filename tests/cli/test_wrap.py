from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Here, Outside


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("-c", "echo 'a b' | wc -w; pwd"), "2\n{project}\n", id="a line"),
        pytest.param(("--", "printf", "%s|", "it's", "$HOME", "-c"), "it's|$HOME|-c|", id="words"),
        pytest.param(("--memory=1G", "--timeout=30", "--", "true"), "", id="limits"),
    ],
)
def test_the_line_means_the_same_from_anywhere(
    outside: Outside, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    status, line, err = outside.run("wrap", *arguments)
    assert (status, err) == (0, "")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # Who prepared a directory must not choose what Python imports there.
    for name in ("stockade", "argparse"):
        (elsewhere / f"{name}.py").write_text("raise SystemExit('imported from where it was started')")
    ran = subprocess.run(
        ["sh", "-c", line], cwd=elsewhere, env=outside.environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, expected.format(project=outside.project), "")


def test_everything_that_was_asked_for_is_in_the_words(here: Here) -> None:
    settings = here.write(here.project / "own.json", {"sandbox": {"enabled": True}})
    asked = (
        "-s",
        str(settings),
        "--ignore-project",
        "--allow-write",
        "./x",
        "--deny-read",
        "./y",
        "--timeout",
        "3",
        "--open-files",
        "9",
    )
    result = here("wrap", "--json", *asked, "--publish=0:80", "--violations=json", "--", "ls", "--json")
    assert (result.status, result.err) == (0, "")
    assert result.facts["argv"] == [
        *(sys.executable, "-P", "-m", "stockade", "run", "-C", str(here.project), "--settings", str(settings)),
        *(
            "--ignore-project",
            "--allow-write=./x",
            "--deny-read=./y",
            "--publish=0:80",
            "--timeout=3.0",
            "--open-files=9",
        ),
        *("--violations=json", "--", "ls", "--json"),
    ]
    assert result.facts["line"].endswith(" -- ls --json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((), "give one command", id="nothing"),
        pytest.param(("--lss", "ls"), "unknown option: --lss", id="a slip"),
        pytest.param(("--publish=x", "--", "ls"), "not a pair of ports", id="no ports"),
        pytest.param(("-s", "nowhere.json", "--", "ls"), "nowhere.json", id="settings that are not there"),
    ],
)
def test_mistakes(here: Here, arguments: tuple[str, ...], message: str) -> None:
    result = here("wrap", *arguments)
    assert (result.status, result.out) == (125, "")
    assert message in result.err
