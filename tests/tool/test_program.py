"""Programs on a real disk: a project that commands may write, and a system that they may not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.tool.program import Lookup, Planted, Programs, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tool.conftest import Yard


class Machine:
    """A PATH that begins in the project, as with an activated environment."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.venv = yard.project / ".venv" / "bin"
        self.system = yard.outside / "bin"
        for folder in (self.venv, self.system):
            folder.mkdir(parents=True)
        self.environment = {"PATH": f"{self.venv}:{self.system}"}

    def put(self, folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def lookup(self, temporary: str = "", **settings: tuple[str, ...]) -> Lookup:
        rules = self.yard.policy(None, **settings).files
        return Lookup(rules, self.environment, str(self.yard.project), temporary)

    def why(self, line: str) -> str:
        return ", ".join(map(str, self.lookup().programs(line).planted))


@pytest.fixture
def machine(yard: Yard) -> Machine:
    return Machine(yard)


def test_a_name_means_the_program_that_commands_cannot_write(machine: Machine) -> None:
    planted = machine.put(machine.venv, "docker")
    real = machine.put(machine.system, "docker")
    lookup = machine.lookup()
    assert lookup.dropped == (str(machine.venv),)
    assert lookup.find("docker") == str(real)
    note = f'docker is "{real}" here: commands inside can write "{planted}"'
    shadowed = Planted("docker", f'is "{planted}", which commands inside can write')
    assert lookup.programs("docker ps") == Programs((), (shadowed,), (note,))
    assert lookup.environment.safe("")["PATH"] == str(machine.system)


def test_a_program_that_lies_in_a_writable_place_alone_is_planted(machine: Machine) -> None:
    path = machine.put(machine.venv, "pytest")
    why = f'is "{path}", which commands inside can write'
    found = (Planted("pytest", why),)
    assert machine.lookup().programs("pytest -q; pytest x") == Programs(found, found, whole_path=True)
    assert machine.why("pytest") == f"`pytest` {why}"


def test_what_is_nowhere_is_not_planted(machine: Machine) -> None:
    assert machine.lookup().programs("docker ps") == Programs()


@pytest.mark.parametrize("name", ["./deploy.sh", "bin/../deploy.sh", "{project}/deploy.sh", "{outside}/link.sh"])
def test_a_path_in_a_writable_place_is_planted(machine: Machine, name: str) -> None:
    target = machine.put(machine.yard.project, "deploy.sh")
    (machine.yard.outside / "link.sh").symlink_to(target)
    (machine.yard.project / "bin").mkdir()
    spelled = name.format(project=machine.yard.project, outside=machine.yard.outside)
    assert "which commands inside can write" in machine.why(spelled)


def test_a_link_in_a_writable_place_is_planted_wherever_it_leads(machine: Machine) -> None:
    real = machine.put(machine.system, "docker")
    (machine.yard.project / "docker").symlink_to(real)
    assert "which commands inside can write" in machine.why("./docker ps")
    (machine.yard.outside / "linked").symlink_to(machine.yard.project)
    machine.environment["PATH"] = f"{machine.yard.outside}/linked:{machine.system}"
    assert machine.lookup().find("docker") == str(real)


def test_a_path_that_is_protected_is_not_planted(machine: Machine) -> None:
    machine.put(machine.yard.project, "deploy.sh")
    assert not machine.lookup(filesystem__denyWrite=("./deploy.sh",)).programs("./deploy.sh now").planted


def test_a_way_that_the_line_itself_changes_is_not_followed(machine: Machine) -> None:
    assert "in the directory that the line goes to" in machine.why("cd sub && ../tool")


def test_the_interpreter_of_a_script_counts(machine: Machine) -> None:
    python = machine.put(machine.venv, "python")
    machine.put(machine.system, "tool", f"#!{python} -I\n")
    assert machine.why("tool x") == f'`tool` is run by "{python}", which commands inside can write'
    wrapped = machine.put(machine.system, "wrapped", f"#!{python}\n")
    machine.put(machine.system, "outer", f"#! {wrapped}\n")
    assert "is run by" in machine.why("outer")
    machine.put(machine.system, "relative", "#!.venv/bin/python\n")
    assert "is run by" in machine.why("relative")
    machine.put(machine.system, "plain", "#!/usr/bin/env python\n")
    assert not machine.why("plain")


@pytest.mark.parametrize(
    "line", ["python build.py", "python -c 'import x'", "python -m x", "python *.py", "python", "node -e 1", "sh -s"]
)
def test_a_script_that_commands_can_write_is_planted(machine: Machine, line: str) -> None:
    for name in ("python", "node", "sh"):
        machine.put(machine.system, name)
    assert machine.why(line)
    assert machine.lookup().programs(line).whole_path


def test_a_script_elsewhere_is_not(machine: Machine) -> None:
    machine.put(machine.system, "python3.11")
    script = machine.put(machine.yard.outside, "tool.py")
    assert not machine.why(f"python3.11 {script} --fast")
    assert not machine.why("python3.11 --version")
    assert machine.why(f"cd x; python3.11 {os.path.relpath(script, machine.yard.project)}")


def test_builtins_are_no_programs(machine: Machine) -> None:
    machine.put(machine.venv, "echo")
    found = machine.lookup().programs("echo x && cd /")
    assert (found.planted, found.notes, found.shown) == ((), (), "")


def test_who_says_yes_to_a_runner_sees_what_the_whole_path_finds(machine: Machine) -> None:
    machine.put(machine.system, "make")
    assert machine.lookup().programs("make test") == Programs(whole_path=True)
    path = machine.put(machine.venv, "docker")
    machine.put(machine.system, "docker")
    programs = machine.lookup().programs("make test; docker ps")
    assert not programs.planted
    assert programs.shown == f'`docker` is "{path}", which commands inside can write'
    assert machine.lookup().programs("docker ps").shown == ""


def test_in_a_line_that_is_not_understood_every_word_may_be_a_name(machine: Machine) -> None:
    machine.put(machine.venv, "pytest")
    machine.put(machine.venv, "docker")
    machine.put(machine.system, "docker")
    found = machine.lookup().programs('for x in 1; do docker ps; (pytest "$x"); done')
    assert [one.name for one in found.planted] == ["pytest"]
    assert found.whole_path
    assert "docker" in found.shown
    assert not machine.lookup().programs("(docker ps)").whole_path
    assert machine.lookup().programs("(make)").whole_path


def test_relative_and_empty_entries_do_not_count(machine: Machine) -> None:
    machine.environment["PATH"] = f".::bin:{machine.system}"
    lookup = machine.lookup()
    assert lookup.dropped == (".", "", "bin")
    assert lookup.environment.safe("")["PATH"] == str(machine.system)


def test_the_session_temporary_directory_is_written_by_commands(machine: Machine) -> None:
    folder = machine.yard.outside / "temporary"
    machine.environment["PATH"] = str(folder)
    lookup = machine.lookup(str(folder))
    assert lookup.dropped == (str(folder),)


def test_the_shell_is_none_that_commands_can_write(machine: Machine) -> None:
    own = machine.put(machine.venv, "zsh")
    bash = machine.put(machine.system, "bash")
    machine.put(machine.venv, "bash")
    machine.environment["SHELL"] = str(own)
    assert machine.lookup().shell() == (str(bash),)
    bash.unlink()
    with pytest.raises(UnavailableError):
        machine.lookup().shell()


def test_what_a_call_gets(machine: Machine) -> None:
    machine.put(machine.venv, "docker")
    machine.put(machine.system, "docker")
    machine.put(machine.system, "bash")
    rules, directory = machine.yard.policy().files, str(machine.yard.project)
    got = surroundings("docker ps", rules, machine.environment, directory)
    assert got.environment["PATH"] == str(machine.system)
    assert got.shell == (str(machine.system / "bash"),)
    assert got.environment["SHELL"] == got.shell[0]
    machine.put(machine.venv, "pytest")
    assert got.approved == got.environment
    asked = surroundings("pytest", rules, machine.environment, directory)
    assert asked.approved == machine.environment | {"SHELL": got.shell[0]}
    assert asked.environment == got.environment


def test_zsh_reads_no_start_up_file_that_commands_can_write(machine: Machine) -> None:
    zsh = machine.put(machine.system, "zsh")
    machine.environment |= {"SHELL": str(zsh), "HOME": str(machine.yard.outside)}
    assert machine.lookup().shell() == (str(zsh),)
    machine.environment["HOME"] = str(machine.yard.project)
    assert machine.lookup().shell() == (str(zsh), "-f")
    machine.environment["ZDOTDIR"] = str(machine.yard.outside)
    assert machine.lookup().shell() == (str(zsh),)


def test_a_program_on_path_is_judged_itself_too(machine: Machine) -> None:
    inner = machine.put(machine.yard.project, "docker")
    (machine.system / "docker").symlink_to(inner)
    why = f'is "{machine.system}/docker", which commands inside can write'
    found = (Planted("docker", why),)
    assert machine.lookup().programs("docker ps") == Programs(found, found, whole_path=True)
    opened = machine.put(machine.system, "tool")
    lookup = machine.lookup(filesystem__allowWrite=(str(opened),))
    assert [one.name for one in lookup.programs("tool").planted] == ["tool"]


def test_a_second_name_of_a_program_counts(machine: Machine) -> None:
    inner = machine.put(machine.yard.project, "docker")
    (machine.system / "docker").hardlink_to(inner)
    assert "which commands inside can write" in machine.why("docker ps")


@pytest.mark.parametrize(
    "line",
    [
        "timeout 60 python3 tools/x.py",
        "env python3 tools/x.py",
        "nice ./tools/x.py",
        "xargs ./tools/x.py",
        "timeout 60 $x",
        "awk -f tools/x.py",
        "java tools/x.py",
        "py tools/x.py",
        "env make",
        "cd sub; timeout 60 ../tools/x.py",
    ],
)
def test_what_a_wrapper_is_given_counts(machine: Machine, line: str) -> None:
    machine.put(machine.yard.project / "tools", "x.py")
    for name in ("timeout", "env", "nice", "xargs", "awk", "java", "python3"):
        machine.put(machine.system, name)
    (machine.system / "py").symlink_to(machine.system / "python3")
    assert machine.why(line)


def test_a_wrapper_of_a_program_elsewhere_is_not_planted(machine: Machine) -> None:
    for name in ("timeout", "docker"):
        machine.put(machine.system, name)
    assert not machine.why("timeout 60 docker ps")


@pytest.mark.parametrize(
    "line",
    [
        "python3 /dev/stdin",
        "python3 /dev/fd/0",
        "python3 /proc/self/cwd/x",
        "bash -v",
        "tclsh --version",
        "python3 -v",
        "deno run /usr/x.ts",
        "bun run x",
    ],
)
def test_what_an_interpreter_reads_elsewhere_is_not_known(machine: Machine, line: str) -> None:
    for name in ("python3", "bash", "tclsh", "deno", "bun"):
        machine.put(machine.system, name)
    assert machine.why(line)


def test_every_word_of_a_first_line_counts(machine: Machine) -> None:
    target = machine.put(machine.yard.project, "run")
    machine.put(machine.system, "tool", f"#!/usr/bin/env {target}\n")
    assert "is run by" in machine.why("tool")
    machine.put(machine.system, "other", f"#!/usr/bin/env -S python3 {target}\n")
    assert "is run by" in machine.why("other")


def test_an_assignment_that_leads_to_a_writable_place_counts(machine: Machine) -> None:
    machine.put(machine.system, "list")
    for line in ("PATH=bin:/usr/bin list", f"GIT_SSH={machine.yard.project}/x list", "LESSOPEN='|./x' list"):
        assert "names a place that commands inside can write" in machine.why(line)
    assert not machine.why("A=1 PATH=/usr/bin list")


def test_a_bypass_of_a_runner_is_planted(machine: Machine) -> None:
    machine.put(machine.system, "npm")
    lookup = machine.lookup()
    assert not lookup.programs("npm run test").planted
    assert [one.name for one in lookup.programs("npm run test", bypass=True).planted] == ["npm"]


def test_more_names_than_anybody_reads_are_not_looked_up(machine: Machine) -> None:
    found = machine.lookup().programs("; ".join(f"d{number}" for number in range(1000)))
    assert [str(one) for one in found.planted] == ["`d0` is one of 1000 programs, which are too many to look up"]


def test_guesses_see_through_quotes_and_know_paths(machine: Machine) -> None:
    machine.put(machine.venv, "docker")
    machine.put(machine.yard.project, "e.sh")
    shown = machine.lookup().programs('{ make; d"o"cker; }').shown
    assert "`docker` is" in shown
    assert "`./e.sh` is" in machine.lookup().programs("( ./e.sh )").shown
