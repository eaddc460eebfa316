from __future__ import annotations

import subprocess
import sys
from errno import EMFILE
from typing import TYPE_CHECKING

import pytest

import stockade
from stockade.cli.registry import COMMANDS

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_version(here: Here) -> None:
    result = here("--version")
    assert (result.status, result.out) == (0, f"stockade {stockade.__version__}\n")


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_command(here: Here, words: list[str]) -> None:
    result = here(*words)
    assert result.status == 0
    for command in COMMANDS.values():
        assert f"  {command.name} " in result.out
        assert command.summary in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(here: Here, name: str) -> None:
    result = here(name, "--help")
    assert result.status == 0
    assert result.out.startswith(f"usage: stockade {name}")
    assert here("help", name).out == result.out


@pytest.mark.parametrize(
    ("words", "line", "hint"),
    [
        pytest.param(["chekc"], "unknown command: chekc", "did you mean check?", id="misspelt command"),
        pytest.param(["zzz"], "unknown command: zzz", "see `stockade --help`", id="no such command"),
        pytest.param(["--versoin"], "unknown option: --versoin", "did you mean --version?", id="misspelt option"),
        pytest.param(["status", "--jsn"], "unknown option: --jsn", "did you mean --json?", id="misspelt flag"),
        pytest.param(["status", "--js"], "unknown option: --js", "did you mean --json?", id="no abbreviations"),
        pytest.param(
            ["status", "--qqqq=1"], "unknown option: --qqqq", "see `stockade status --help`", id="no such flag"
        ),
        pytest.param(
            ["schema", "x\x1b[31m"], "unexpected argument: x\\x1b[31m", "see `stockade schema --help`", id="escape"
        ),
        pytest.param(
            ["allow"], "the following arguments are required: PATH", "see `stockade allow --help`", id="missing"
        ),
    ],
)
def test_mistakes_get_one_line_and_a_hint(here: Here, words: list[str], line: str, hint: str) -> None:
    result = here(*words)
    assert (result.status, result.out) == (125, "")
    assert result.err == f"stockade: {line}\n  hint: {hint}\n"


def test_a_bug_is_one_line_without_a_traceback(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, object]:
        message = "boom\nsecond line"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("stockade.settings.schema.schema", broken)
    result = here("schema")
    assert result.status == 125
    assert result.err.startswith("stockade: internal error: ZeroDivisionError: boom\\x0asecond line\n  hint: ")
    monkeypatch.setenv("STOCKADE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        here("schema")


def test_a_process_without_descriptors_is_no_bug(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, object]:
        raise OSError(EMFILE, "Too many open files", "settings.json")

    monkeypatch.setattr("stockade.settings.schema.schema", broken)
    result = here("schema")
    assert result.status == 125
    assert result.err.startswith("stockade: this process has no file descriptor left")


def test_interrupt_is_130(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("stockade.settings.schema.schema", interrupted)
    assert here("schema").status == 130


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    # head closes the pipe after one line of a long output.
    script = f"'{sys.executable}' -m stockade schema | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
@pytest.mark.parametrize("words", ["schema", "--version", "--help"])
def test_an_output_that_cannot_be_written_is_one_line(words: str) -> None:
    script = f"exec '{sys.executable}' -m stockade {words} >/dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        125,
        [
            "stockade: the output cannot be written: No space left on device",
            "  hint: see where it goes: is the disk full?",
        ],
    )


@pytest.mark.parametrize(("closed", "status"), [("schema >&-", 0), ("schemma 2>&-", 125), ("--version >&- 2>&-", 0)])
def test_streams_may_be_closed(closed: str, status: int) -> None:
    done = subprocess.run(
        ["bash", "-c", f"exec '{sys.executable}' -m stockade {closed}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
