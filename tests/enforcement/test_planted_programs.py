"""Programs that one call plants where the next one, outside and unasked, would look for them."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.live import LivePolicy
from stockade.settings.sources import Locations
from stockade.tool.call import ShellCall
from stockade.tool.request import ApprovalAnswer, ApprovalChoice
from stockade.tool.shell_tool import ShellTool

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.tool.request import ApprovalRequest
    from stockade.tool.shell_result import ShellResult

YES = ApprovalAnswer(ApprovalChoice.ONCE)
NO = ApprovalAnswer(ApprovalChoice.NO)


class Workshop:
    """A project with an activated environment, a system with its own programs, and rules that let some out."""

    def __init__(self, root: Path) -> None:
        self.project, self.home, self.system = root / "project", root / "home", root / "system"
        self.venv = self.project / ".venv" / "bin"
        for folder in (self.venv, self.home / ".stockade", self.system):
            folder.mkdir(parents=True)
        self.mark = root / "mark"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("STOCKADE_")}
        self.environment |= {"PATH": f"{self.venv}:{self.system}:/usr/bin:/bin", "TMPDIR": str(self.home)}
        self.asked: list[ApprovalRequest] = []
        self.answer = NO
        self.rules("dockr*", "printf:*", "list:*", "test:*", "read:*")

    def rules(self, *patterns: str) -> None:
        settings = {
            "sandbox": {"enabled": True, "excludedCommands": patterns},
            "permissions": {"allow": [f"Bash({pattern})" for pattern in patterns]},
        }
        (self.home / ".stockade" / "settings.json").write_text(json.dumps(settings))

    def program(self, folder: Path, name: str, text: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def evil(self) -> str:
        """A line that leaves a mark where no command inside may."""
        return f"echo evil >{self.mark}"

    def run(self, *lines: str, **call: Any) -> list[ShellResult]:
        async def approve(request: ApprovalRequest) -> ApprovalAnswer:
            self.asked.append(request)
            return self.answer

        async def main() -> list[ShellResult]:
            locations = Locations(str(self.project), str(self.home), managed=str(self.home / "no-managed.json"))
            policy = LivePolicy(locations)
            async with ShellTool(policy, approve=approve, locations=locations, environment=self.environment) as tool:
                *before, last = lines
                results = [await tool.run(ShellCall(line)) for line in before]
                return [*results, await tool.run(ShellCall(last, **call))]

        return asyncio.run(main())


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path.resolve())


def plant(workshop: Workshop, path: Path | str) -> str:
    """Return the line that writes an evil program inside."""
    return f"printf '#!/bin/sh\\n{workshop.evil()}\\n' >{path} && chmod +x {path} && echo planted"


def test_the_same_program_runs_outside_where_commands_cannot_write_it(workshop: Workshop) -> None:
    """The control: what is planted here would leave its mark."""
    workshop.program(workshop.system, "dockr", workshop.evil())
    (done,) = workshop.run("dockr ps")
    assert done.ok
    assert done.placement is not None
    assert done.placement.gate == "excluded"
    assert workshop.mark.read_text() == "evil\n"
    assert workshop.asked == []


def test_a_planted_name_is_not_what_runs_outside(workshop: Workshop) -> None:
    workshop.program(workshop.system, "dockr", "echo real: $PATH; helper || :")
    planted = workshop.venv / "dockr"
    before, done = workshop.run(f"{plant(workshop, planted)}; cp {planted} {workshop.venv}/helper", "dockr ps")
    assert before.output == "planted\n"
    assert done.output.startswith(f"real: {workshop.system}:/usr/bin:/bin\n")
    assert f'dockr is "{workshop.system}/dockr" here: commands inside can write "{planted}"' in done.for_model
    assert not workshop.mark.exists()
    assert workshop.asked == []


def test_a_name_that_is_only_planted_is_asked_for(workshop: Workshop) -> None:
    planted = workshop.venv / "dockr"
    _, refused = workshop.run(plant(workshop, planted), "dockr ps")
    assert refused.refusal
    assert not workshop.mark.exists()
    (asked,) = workshop.asked
    assert f'`dockr` is "{planted}", which commands inside can write' in asked.text()
    assert [one.answer.choice for one in asked.suggestions] == [ApprovalChoice.ONCE, ApprovalChoice.NO]


def test_somebody_who_says_yes_gets_what_they_were_shown(workshop: Workshop) -> None:
    workshop.answer = YES
    workshop.program(workshop.venv, "dockr", "echo mine; helper")
    workshop.program(workshop.venv, "helper", "echo helps")
    (done,) = workshop.run("dockr ps")
    assert done.output == "mine\nhelps\n"


@pytest.mark.parametrize("shell", ["zsh", "fish", "bash"])
def test_a_planted_shell_reads_no_line_outside(workshop: Workshop, shell: str) -> None:
    workshop.program(workshop.system, "dockr", "echo real")
    workshop.environment["SHELL"] = str(workshop.venv / shell)
    lines = [plant(workshop, workshop.venv / name) for name in (shell, "bash", "sh")]
    before, done = workshop.run(" && ".join(lines), "dockr ps")
    assert before.output == "planted\n" * 3
    assert done.output == "real\n"
    assert not workshop.mark.exists()


def test_a_planted_interpreter_runs_no_script_outside(workshop: Workshop) -> None:
    interpreter = workshop.venv / "interpreter"
    (workshop.system / "dockr").write_text(f"#!{interpreter}\n")
    (workshop.system / "dockr").chmod(0o755)
    _, refused = workshop.run(plant(workshop, interpreter), "dockr ps")
    assert refused.refusal
    assert "is run by" in workshop.asked[0].text()
    assert not workshop.mark.exists()


@pytest.mark.parametrize("folder", ["n/.vscode", "n/.profile", "sub"])
@pytest.mark.parametrize(
    "line", ["python3 tools/x.py", "timeout 60 python3 tools/x.py", "./tools/x.sh", "env ./tools/x.sh"]
)
def test_no_name_of_a_directory_makes_what_lies_in_it_safe(workshop: Workshop, folder: str, line: str) -> None:
    workshop.rules(line)
    code = f"open(\\'{workshop.mark}\\', \\'w\\')"
    make = f"mkdir -p {folder}/tools && cd {folder} && printf %s '{code}' >tools/x.py".replace("\\'", '"')
    before, done = workshop.run(f"{make} && {plant(workshop, 'tools/x.sh')}", line)
    assert before.output == "planted\n"
    assert done.refusal
    assert not workshop.mark.exists()
    assert workshop.asked[0].approval.by == "planted"


def test_a_link_of_the_system_that_leads_inside_is_asked_for(workshop: Workshop) -> None:
    (workshop.system / "dockr").symlink_to(workshop.project / "dockr")
    _, done = workshop.run(plant(workshop, "dockr"), "dockr ps")
    assert done.refusal
    assert not workshop.mark.exists()


def test_variables_lead_what_runs_outside_to_no_code_of_a_command(workshop: Workshop) -> None:
    workshop.program(workshop.system, "dockr", 'echo "$BASH_ENV|$NODE_OPTIONS|$PYTHONPATH|$KEPT"')
    project = workshop.project
    workshop.environment |= {
        "BASH_ENV": f"{project}/env.sh",
        "NODE_OPTIONS": f"--require {project}/x.cjs",
        "PYTHONPATH": str(project),
        "KEPT": "yes",
    }
    _, done = workshop.run(f"{workshop.evil()!r}; echo {workshop.evil()!r} >env.sh", "dockr ps")
    assert done.output == "|||yes\n"
    assert not workshop.mark.exists()


def test_a_rule_that_was_meant_for_inside_lets_no_code_of_the_project_out(workshop: Workshop) -> None:
    workshop.rules("list:*")
    settings = {"sandbox": {"enabled": True}, "permissions": {"allow": ["Bash(make:*)"]}}
    (workshop.home / ".stockade" / "settings.json").write_text(json.dumps(settings))
    _, done = workshop.run(
        f"printf 'all:\\n\\t{workshop.evil()}\\n' >Makefile", "make all", dangerously_disable_sandbox=True
    )
    assert done.refusal
    assert "runs what files of the project say" in workshop.asked[0].text()
    assert not workshop.mark.exists()


@pytest.mark.parametrize("line", ["dockr/../evil.sh", "dockrd/x", "cd sub && dockr/x", "./dockr"])
def test_a_star_in_a_name_leads_to_no_directory(workshop: Workshop, line: str) -> None:
    workshop.rules("dockr*", "cd:*", "./dockr")
    (workshop.project / "sub" / "dockr").mkdir(parents=True)
    for folder in ("dockr", "dockrd"):
        (workshop.project / folder).mkdir()
    targets = ("evil.sh", "dockrd/x", "sub/dockr/x")
    lines = [plant(workshop, target) for target in targets]
    if line == "./dockr":
        lines.append(f"rmdir dockr && {plant(workshop, 'dockr')}")
    _, done = workshop.run(" && ".join(lines), line)
    assert not workshop.mark.exists()
    outside = done.placement is not None and done.placement.gate == "excluded"
    assert bool(done.refusal) is outside  # a path that is spelled may leave, and is asked for


@pytest.mark.parametrize(
    "line",
    [
        "printf -v PATH {venv}; list",
        "printf -v PATH %s {venv}; list",
        "read PATH; list",
        "printf -v 'BASH_CMDS[list]' {venv}/list; list",
        "test -v 'c[$'\"$Z\"'(list)]'",
        "printf -v 'c[$'\"$Z\"'(list)]' x",
        "printf -v b 'c[\\x24({venv}/list)]'; printf -v 'a[b]' x",
        "PATH={venv} list",
    ],
)
@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/zsh"])
def test_no_builtin_turns_a_plain_name_into_another_program(workshop: Workshop, line: str, shell: str) -> None:
    workshop.program(workshop.venv, "list", workshop.evil())
    workshop.program(workshop.system, "list", "echo real")
    workshop.environment |= {"SHELL": shell, "Z": ""}
    (done,) = workshop.run(line.format(venv=workshop.venv))
    assert done.placement is not None
    assert done.placement.gate == "walls"
    assert not workshop.mark.exists()


@pytest.mark.parametrize("background", [False, True])
def test_a_bypass_gets_the_same_path(workshop: Workshop, *, background: bool) -> None:
    workshop.answer = YES
    workshop.program(workshop.system, "tool", f"echo real >{workshop.home}/out")
    _, done = workshop.run(
        plant(workshop, workshop.venv / "tool"),
        f"tool; while test ! -e {workshop.home}/out; do sleep 0.01; done",
        dangerously_disable_sandbox=True,
        run_in_background=background,
    )
    assert not done.refusal
    assert not workshop.mark.exists()
