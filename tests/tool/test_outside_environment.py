from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.tool.outside_environment import OutsideEnvironment, counts

if TYPE_CHECKING:
    from pathlib import Path


class Below:
    """Everything below a directory."""

    def __init__(self, top: str) -> None:
        self.top = top

    def __contains__(self, path: object) -> bool:
        return f"{os.path.normpath(str(path))}/".startswith(f"{self.top}/")


def made(variables: dict[str, str], directory: str = "/p") -> OutsideEnvironment:
    return OutsideEnvironment(variables, Below("/p"), directory)


DROPPED = {
    "NODE_OPTIONS": "--max-old-space-size=1 --require /p/.pnp.cjs",
    "GIT_SSH_COMMAND": "ssh -F '/p/config'",
    "GIT_SSH": "./ssh",
    "GIT_CONFIG_GLOBAL": "/p/gitconfig",
    "XDG_CONFIG_HOME": "/p/.config",
    "DOCKER_CONFIG": "/p/.docker",
    "PERL5OPT": "-I/p/lib -Mx",
    "LESSOPEN": "|/p/lesspipe %s",
    "PYTHONPYCACHEPREFIX": "/p/../p/cache",
    "BASH_ENV": "/p/env.sh",
    "ENV": "../p/env.sh",
    "JAVA_TOOL_OPTIONS": "-javaagent:/p/a.jar",
    "CLASSPATH": "/usr/share/java:/p/classes",
    "PYTHONPATH": "/p/src",
}
KEPT = {
    "HOME": "/p",
    "PWD": "/p/sub",
    "TMPDIR": "/p/tmp",
    "VIRTUAL_ENV": "/p/.venv",
    "TZ": "America/New_York",
    "LANG": "de_DE.UTF-8",
    "URL": "https://host/p/x",
    "EDITOR": "vim",
    "PAGER": "/usr/bin/less -R",
    "EMPTY": "",
    "LD_PRELOAD": "libjemalloc.so.2",
}


@pytest.mark.parametrize(("name", "value"), DROPPED.items(), ids=DROPPED)
def test_a_variable_that_leads_to_a_writable_place_is_dropped(name: str, value: str) -> None:
    assert name not in made({name: value}).safe("/bin/sh")


@pytest.mark.parametrize(("name", "value"), KEPT.items(), ids=KEPT)
def test_all_others_are_kept(name: str, value: str) -> None:
    assert made({name: value}).safe("/bin/sh")[name] == value


def test_of_a_search_path_only_the_entry_is_dropped() -> None:
    found = made(
        {
            "PATH": "/p/bin:/usr/bin:.::bin:/bin",
            "LD_LIBRARY_PATH": "/p/lib;/opt/lib:lib",
            "LD_PRELOAD": "/p/a.so /opt/b.so",
            "NODE_PATH": "/p/x:/opt/x",
        }
    ).safe("/bin/sh")
    assert found == {
        "PATH": "/usr/bin:/bin",
        "LD_LIBRARY_PATH": "/opt/lib",
        "LD_PRELOAD": "/opt/b.so",
        "NODE_PATH": "/opt/x",
        "SHELL": "/bin/sh",
    }


def test_an_empty_path_would_mean_the_working_directory() -> None:
    assert made({"PATH": "/p/bin"}).safe("/bin/sh")["PATH"] == os.defpath
    assert made({}).safe("/bin/sh") == {"PATH": os.defpath, "SHELL": "/bin/sh"}


def test_a_relative_path_counts_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "ssh").touch()
    variables = {"GIT_SSH": "tools/ssh", "TZ": "Europe/Paris"}
    found = OutsideEnvironment(variables, Below(str(tmp_path)), str(tmp_path)).safe("/bin/sh")
    assert "GIT_SSH" not in found
    assert found["TZ"] == "Europe/Paris"


def test_who_says_yes_gets_all_but_what_runs_before_any_program() -> None:
    variables = {"PATH": "/p/bin:/usr/bin", "PYTHONPATH": "/p/src", "BASH_ENV": "/p/env.sh", "LD_PRELOAD": "/p/a.so"}
    found = made(variables).approved("/bin/sh")
    assert found == {"PATH": "/p/bin:/usr/bin", "PYTHONPATH": "/p/src", "SHELL": "/bin/sh"}


def test_what_counts_on_a_search_path() -> None:
    assert counts("/usr/bin", Below("/p"))
    assert not any(counts(entry, Below("/p")) for entry in ("/p", "bin", "", "."))
