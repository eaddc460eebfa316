"""``allowProtected`` with real tools: what is lifted works, what is not stays closed, and nothing is set aside."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from tests.enforcement.tools.conftest import Bench


def _host(bench: Bench, *words: str, cwd: str = "") -> str:
    done = subprocess.run(
        ["git", *words], cwd=cwd or bench.project, env=bench.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def tools_library(tools_bench: Bench) -> str:
    """A project that is a repository, and another repository outside to take as a submodule and a remote."""
    library = tools_bench.root / "library"
    for place in (tools_bench.project, library):
        place.mkdir(exist_ok=True)
        _host(tools_bench, "init", "-q", cwd=str(place))
        (place / "file").write_text("content\n")
        _host(tools_bench, "add", "file", cwd=str(place))
        _host(tools_bench, "commit", "-qm", "first", cwd=str(place))
    return str(library)


def test_git_submodule_add(tools_bench: Bench, tools_library: str) -> None:
    tools_bench.sandbox(filesystem__allowProtected=(".gitmodules", ".git/config"))
    line = f"git -c protocol.file.allow=always submodule add -q {tools_library} lib && git commit -qm lib"
    tools_bench.good(line)
    tools_bench.good(f"git -c protocol.file.allow=always submodule add -q {tools_library} more && git commit -qm more")
    assert tools_bench.run("true").violations == ()
    tools_bench.close()
    assert _host(tools_bench, "submodule", "status").count(" (heads/main)") == 2
    assert _host(tools_bench, "status", "--porcelain") == ""
    assert sorted(_host(tools_bench, "config", "--get-regexp", "submodule.*url").split()) == sorted(
        ["submodule.lib.url", tools_library, "submodule.more.url", tools_library]
    )


def test_git_remote_add_and_push_with_upstream(tools_bench: Bench, tools_library: str) -> None:
    bare = tools_bench.root / "bare.git"
    _host(tools_bench, "clone", "-q", "--bare", tools_library, str(bare))
    tools_bench.sandbox(filesystem__allowProtected=(".git/config",), filesystem__allowWrite=(str(bare),))
    tools_bench.good(f"git remote add origin {bare} && git switch -qc topic && git push -qu origin topic")
    tools_bench.close()
    assert _host(tools_bench, "rev-parse", "--abbrev-ref", "topic@{upstream}") == "origin/topic\n"
    assert "topic" in _host(tools_bench, "branch", cwd=str(bare))


def test_a_hook_can_be_installed(tools_bench: Bench, tools_library: str) -> None:
    assert tools_library
    tools_bench.sandbox(filesystem__allowProtected=(".git/hooks",))
    hook = "printf '#!/bin/sh\\necho hooked >&2\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit"
    done = tools_bench.run(f"{hook} && echo y > file && git commit -qam second")
    assert (done.exit_code, done.stderr, done.violations) == (0, b"hooked\n", ())
    assert tools_bench.run("git config user.name eve").exit_code != 0
    tools_bench.good("echo >> .git/hooks/pre-commit")
    tools_bench.close()
    assert os.access(tools_bench.project / ".git/hooks/pre-commit", os.X_OK)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (".vscode", ".vscode/settings.json"),
        (".idea", ".idea/workspace.xml"),
        (".mcp.json", ".mcp.json"),
        (".claude/commands", ".claude/commands/go.md"),
        (".gitmodules", ".gitmodules"),
        (".bashrc", ".bashrc"),
    ],
)
@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
@pytest.mark.parametrize("place", [".", "sub"])
def test_a_lifted_name_can_be_made_and_changed(
    tools_bench: Bench, name: str, file: str, place: str, *, there: bool
) -> None:
    target = tools_bench.project / place / file
    (target if there else target.parent if "/" in name else target.parents[file.count("/")]).parent.mkdir(
        parents=True, exist_ok=True
    )
    if there:
        target.write_text("old\n")
    tools_bench.sandbox(filesystem__allowProtected=(name,))
    tools_bench.good(f"mkdir -p {place}/{os.path.dirname(file) or '.'} && echo new > {place}/{file}")
    done = tools_bench.run(f"echo newer > {place}/{file}")
    assert (done.exit_code, done.violations) == (0, ())
    tools_bench.close()
    assert target.read_text() == "newer\n"


def test_a_path_lifts_what_is_there_and_what_a_command_makes(tools_bench: Bench) -> None:
    (tools_bench.project / "sub/.vscode").mkdir(parents=True)
    (tools_bench.project / "other/.vscode").mkdir(parents=True)
    tools_bench.sandbox(filesystem__allowProtected=("./sub",))
    done = tools_bench.run("echo 1 > sub/.vscode/tasks.json && mkdir -p sub/x/.idea && echo 1 > sub/x/.idea/a")
    assert (done.exit_code, done.violations) == (0, ())
    assert tools_bench.run("echo 1 > other/.vscode/tasks.json").exit_code != 0
    assert tools_bench.run("echo 1 > .mcp.json").exit_code != 0
    tools_bench.close()
    assert (tools_bench.project / "sub/x/.idea/a").exists()


def test_a_remedy_makes_the_same_line_pass(tools_bench: Bench) -> None:
    (tools_bench.project / ".vscode").mkdir()
    sandbox = tools_bench.sandbox()
    refused = sandbox.run("echo {} > .vscode/settings.json")
    assert refused.exit_code != 0
    from stockade.policy.files import Access, judge
    from stockade.policy.places import Disk

    verdict = judge(tools_bench.policy().files, Access.WRITE, ".vscode/settings.json", Disk())
    name = verdict.remedy.partition('"')[2].partition('"')[0]
    tools_bench.close()
    tools_bench.sandbox(filesystem__allowProtected=(name,))
    tools_bench.good("echo {} > .vscode/settings.json")


def test_own_settings_stay_closed_under_every_path(tools_bench: Bench) -> None:
    (tools_bench.project / "sub/.stockade").mkdir(parents=True)
    (tools_bench.project / "sub/.stockade/settings.json").write_text("{}")
    tools_bench.sandbox(filesystem__allowProtected=(".",))
    assert tools_bench.run("echo x > sub/.stockade/settings.json").exit_code != 0
    tools_bench.good("mkdir .vscode && echo 1 > .vscode/tasks.json")


SETTINGS = (".claude/settings.json", ".claude/settings.local.json")


@pytest.mark.parametrize("spelling", [".claude", ".claude/", "./.claude", "./.claude/", "{project}/.claude"])
def test_a_missing_directory_is_made_by_whatever_spelling(tools_bench: Bench, spelling: str) -> None:
    named = spelling.format(project=tools_bench.project)
    tools_bench.sandbox(filesystem__allowProtected=(named,), filesystem__denyWrite=SETTINGS)
    tools_bench.good(
        "mkdir -p .claude/commands .claude/agents && echo new > .claude/commands/go.md && echo x > .claude/x"
    )
    for file in SETTINGS:
        assert tools_bench.run(f"echo bad > {file}").exit_code != 0
    assert tools_bench.run("mv .claude aside").exit_code != 0
    tools_bench.close()
    assert sorted(os.listdir(tools_bench.project / ".claude")) == ["agents", "commands", "x"]


@pytest.mark.parametrize("spelling", [".claude/commands", "./.claude/commands", "{project}/.claude/commands/"])
def test_of_a_missing_directory_only_what_is_named_is_made(tools_bench: Bench, spelling: str) -> None:
    named = spelling.format(project=tools_bench.project)
    tools_bench.sandbox(filesystem__allowProtected=(named,))
    done = tools_bench.run("mkdir -p .claude/commands && echo new > .claude/commands/go.md")
    assert (done.exit_code, done.violations, done.notes) == (0, (), ())
    for line in (
        "mkdir .claude/hooks",
        "echo x > .claude/hooks/x",
        "echo x > .claude/settings.json",
        "mkdir .vscode/x",
    ):
        assert tools_bench.run(line).exit_code != 0, line
    done = tools_bench.run("echo newer > .claude/commands/go.md")
    assert (done.exit_code, done.violations) == (0, ())
    tools_bench.close()
    assert os.listdir(tools_bench.project / ".claude") == ["commands"]
    assert (tools_bench.project / ".claude/commands/go.md").read_text() == "newer\n"


def test_a_missing_directory_is_missing_again_if_nobody_made_anything_in_it(tools_bench: Bench) -> None:
    tools_bench.sandbox(filesystem__allowProtected=(".claude/commands",))
    tools_bench.good("test -d .claude")
    tools_bench.close()
    assert os.listdir(tools_bench.project) == []


@pytest.mark.parametrize(
    ("path", "whole"), [(".vscode/settings.json", ".vscode"), (".claude/commands/go.md", ".claude/commands")]
)
def test_a_part_of_what_is_protected_as_a_whole_is_not_lifted_and_the_run_says_what_to_name(
    tools_bench: Bench, path: str, whole: str
) -> None:
    tools_bench.sandbox(filesystem__allowProtected=(f"./{path}",))
    done = tools_bench.run(f"mkdir -p {os.path.dirname(path)} && echo {{}} > {path}")
    assert done.exit_code != 0
    assert [note.partition(" in allowProtected ")[2] for note in done.notes] == [
        f"lifts nothing: {whole} is protected as a whole; name {whole} instead"
    ]
    tools_bench.close()
    assert os.listdir(tools_bench.project) == []


def test_a_directory_that_another_sandbox_only_keeps_becomes_a_real_one(tools_bench: Bench) -> None:
    keeping = BlockingSandbox(tools_bench.policy(), environment=tools_bench.environment)
    with keeping:
        assert keeping.run("mkdir .claude/commands").exit_code != 0
        tools_bench.sandbox(filesystem__allowProtected=(".claude/commands",))
        tools_bench.good("mkdir .claude/commands && echo new > .claude/commands/go.md")
        assert keeping.run("echo bad > .claude/commands/go.md").exit_code != 0
        assert keeping.run("mkdir .claude/hooks").exit_code != 0
        tools_bench.close()
    assert (tools_bench.project / ".claude/commands/go.md").read_text() == "new\n"
    assert os.listdir(tools_bench.project / ".claude") == ["commands"]
