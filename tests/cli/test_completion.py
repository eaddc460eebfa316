from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.cli.completion import SCRIPTS, command_flags
from stockade.cli.registry import COMMANDS

if TYPE_CHECKING:
    from tests.cli.conftest import Here


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_name_every_command_and_flag(here: Here, shell: str) -> None:
    script = here("completion", shell).out
    for name, flags in command_flags().items():
        assert name in script
        for flag in flags:
            assert flag.lstrip("-") in script


@pytest.mark.parametrize("shell", [shell for shell in SCRIPTS if shutil.which(shell)])
def test_the_shell_takes_its_script(here: Here, shell: str) -> None:
    script = here("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes(here: Here) -> None:
    script = here("completion", "bash").out
    probe = "COMP_WORDS=(stockade allow-); COMP_CWORD=1; _stockade; echo ${COMPREPLY[@]}\n"
    probe += "COMP_WORDS=(stockade status --js); COMP_CWORD=2; _stockade; echo ${COMPREPLY[@]}\n"
    done = subprocess.run(["bash"], input=script + probe, text=True, capture_output=True, check=True)
    assert done.stdout == "allow-domain\n--json\n"


def test_all_commands_are_there() -> None:
    assert set(command_flags()) == set(COMMANDS)
