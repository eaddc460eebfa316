from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from stockade.cli.prompt import user_shell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Here, Outside, Seat

#: Start-up files: one that sets the prompt, one that makes it anew each time and shows the last status.
SET = "PS1='own> '\n"
ANEW_IN_BASH = "PROMPT_COMMAND='PS1=\"own[$?]> \";'\n"
ANEW_IN_BASH_LIST = "PROMPT_COMMAND=(: 'PS1=\"own[$?]> \"')\n"
ANEW_IN_ZSH = 'precmd() { PS1="own[$?]> " }\n'


def at_work(outside: Outside, here: Here, shell: str, files: dict[str, str]) -> Seat:
    for name, text in files.items():
        (here.home / name).write_text(text)
    outside.environment |= {"SHELL": shutil.which(shell) or shell, "TERM": "xterm"}
    return outside.seat(*outside.words, "shell")


@pytest.mark.parametrize(
    ("shell", "files", "expected"),
    [
        pytest.param("bash", {}, r"\(stockade\) [^\n]*[$#] ", id="bash without files"),
        pytest.param("bash", {".bashrc": SET}, r"\(stockade\) own> ", id="bash"),
        pytest.param("bash", {".bashrc": "set -u\n" + SET}, r"\(stockade\) own> ", id="bash that is strict"),
        pytest.param("bash", {".bashrc": ANEW_IN_BASH}, r"\(stockade\) own\[3\]> ", id="bash, each time anew"),
        pytest.param("bash", {".bashrc": ANEW_IN_BASH_LIST}, r"\(stockade\) own\[", id="bash, by a list"),
        pytest.param("zsh", {}, r"\(stockade\) ready\$ ", id="zsh without files"),
        pytest.param("zsh", {".zshrc": SET}, r"\(stockade\) own> ", id="zsh"),
        pytest.param("zsh", {".zshrc": ANEW_IN_ZSH}, r"\(stockade\) own\[3\]> ", id="zsh, each time anew"),
        pytest.param("zsh", {".zshenv": "ZDOTDIR=$HOME\n", ".zshrc": SET}, r"\(stockade\) own> ", id="zsh elsewhere"),
        pytest.param("dash", {}, r"\(stockade\) ready\$ ", id="dash"),
    ],
)
def test_the_prompt_says_where_it_is(
    outside: Outside, here: Here, shell: str, files: dict[str, str], expected: str
) -> None:
    seat = at_work(outside, here, shell, files)
    seat.sees(r"\(stockade\) ")
    seat.type("(exit 3)\r")
    seat.sees(r"exit 3\).*" + expected)
    seat.type("echo $0; exit 7\r")
    seat.sees(rf"\n[^\n]*{shell}")
    assert seat.status() == 7


def test_another_mark_or_none(outside: Outside, here: Here) -> None:
    outside.environment["STOCKADE_PROMPT"] = "[it's walled] "
    seat = at_work(outside, here, "bash", {".bashrc": SET})
    seat.sees(r"\[it's walled\] own> ")
    outside.environment["STOCKADE_PROMPT"] = ""
    seat = at_work(outside, here, "bash", {".bashrc": SET})
    assert "stockade" not in seat.sees("own> ").partition("own> ")[0]


def test_a_history_that_cannot_be_written_is_read_and_no_refusal(outside: Outside, here: Here) -> None:
    outside.environment["HISTFILE"] = str(here.home / "history")
    seat = at_work(outside, here, "bash", {".bashrc": SET, "history": "echo remembered\n"})
    seat.sees("own> ")
    seat.type("history | grep -c 'echo rem[e]mbered'; exit\r")
    seat.sees(r"[\r\n]1\r\n")
    assert seat.status() == 0
    assert "refusal" not in seat.screen()


def test_fish_gets_its_mark_by_a_line_of_its_own(tmp_path: Path) -> None:
    fish = tmp_path / "fish"
    fish.write_text("#!/bin/sh\n")
    fish.chmod(0o755)
    order = user_shell({"SHELL": str(fish), "STOCKADE_PROMPT": "it's "}, str(tmp_path), prompt=True)
    program, flag, script = order.command
    assert (program, flag) == (str(fish), "--init-command")
    assert "printf '%s' 'it\\'s '" in script


@pytest.mark.parametrize(
    ("own", "expected"),
    [("/bin/bash", "/bin/bash"), ("bash", "bash"), ("/bin/false", "bash"), ("/nowhere/fish", "bash"), ("", "bash")],
)
def test_the_shell_is_the_user_s_if_it_is_one(tmp_path: Path, own: str, expected: str) -> None:
    order = user_shell({"SHELL": own, "PATH": os.environ["PATH"]}, str(tmp_path), prompt=False)
    (program,) = order.command
    assert program.endswith(expected)
    assert (order.environment, list(tmp_path.iterdir())) == (None, [])
