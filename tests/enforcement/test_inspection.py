"""What a command leaves for git, editors and agents of the host is set aside, and ordinary work is not.

Each row of ``ATTACKS`` is made twice: on the host, where git then runs the payload (the control), and behind walls,
where git on the host then does the same and runs nothing. Everything runs as whoever runs the tests.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import policy_for

from stockade.platforms.linux import inspector
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.plumbing import PIPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PREPARE = """
repo() { git init -q "$1" && git -C "$1" commit -q --allow-empty -m x; }
link() { repo "$1" && git add "$1" 2>/dev/null; }
"""
FSMONITOR = 'git -C {0} config core.fsmonitor "$PAYLOAD"'
DEEP = "a/b/c/d/e/f"

#: The name of an attack, what the command does (in the project, which is a repository), and what the user does then.
ATTACKS = {
    "fsmonitor of a gitlink": ("link sub; " + FSMONITOR.format("sub"), "git status"),
    "fsmonitor of a gitlink, by diff": ("link sub; " + FSMONITOR.format("sub"), "git diff"),
    "fsmonitor of a gitlink far below": (f"link {DEEP}; " + FSMONITOR.format(DEEP), "git status"),
    "fsmonitor of a gitlink in a gitlink": (
        f"link sub; cd sub; link {DEEP}; " + FSMONITOR.format(DEEP),
        "git -C sub status",
    ),
    "a gitlink whose mode has other bits": (
        (
            f'link {DEEP}; {FSMONITOR.format(DEEP)}; python3 -c \'import pathlib; p = pathlib.Path(".git/index"); '
            'd = bytearray(p.read_bytes()); d[d.find(b"\\0\\0\\xe0\\0") + 3] = 0x5a; p.write_bytes(d)\''
        ),
        "git status",
    ),
    "a gitlink in a split index": (
        f"git update-index --split-index; link {DEEP}; " + FSMONITOR.format(DEEP),
        "git status",
    ),
    "a gitlink in an index of version 4": (
        f"git update-index --index-version 4; link {DEEP}; " + FSMONITOR.format(DEEP),
        "git status",
    ),
    "a nested repository": ("repo sub; " + FSMONITOR.format("sub"), "cd sub && git status"),
    "a nested repository within the depth": ("repo a/b/c; " + FSMONITOR.format("a/b/c"), "cd a/b/c && git status"),
    "hooks": (
        'repo sub; printf "#!/bin/sh\\n$PAYLOAD\\n" >sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit',
        "cd sub && git commit --allow-empty -m y",
    ),
    "hooks by a link": (
        (
            'repo sub; rm -rf sub/.git/hooks; mkdir other; printf "#!/bin/sh\\n$PAYLOAD\\n" >other/pre-commit; '
            "chmod +x other/pre-commit; ln -s ../../other sub/.git/hooks"
        ),
        "cd sub && git commit --allow-empty -m y",
    ),
    "hooks elsewhere": (
        (
            'repo sub; mkdir other; printf "#!/bin/sh\\n$PAYLOAD\\n" >other/pre-commit; chmod +x other/pre-commit; '
            'git -C sub config core.hooksPath "$PWD/other"'
        ),
        "cd sub && git commit --allow-empty -m y",
    ),
    "an included config": (
        'repo sub; printf "[core]\\nfsmonitor = $PAYLOAD\\n" >other; git -C sub config include.path "$PWD/other"',
        "cd sub && git status",
    ),
    "the config of a worktree": (
        (
            "repo sub; git -C sub config extensions.worktreeConfig true; "
            'git -C sub config --worktree core.fsmonitor "$PAYLOAD"'
        ),
        "cd sub && git status",
    ),
    "an alias": ('repo sub; git -C sub config alias.st "!$PAYLOAD"', "cd sub && git st"),
    "a config that is a link": (
        (
            'repo sub; cp sub/.git/config other; git config --file other core.fsmonitor "$PAYLOAD"; '
            "ln -sf ../../other sub/.git/config"
        ),
        "cd sub && git status",
    ),
    "a .git file that leads elsewhere": (
        "repo far/away/from/all/of/it; "
        + FSMONITOR.format("far/away/from/all/of/it")
        + '; mkdir sub; echo "gitdir: $PWD/far/away/from/all/of/it/.git" >sub/.git',
        "cd sub && git status",
    ),
    "a .git file through a link": (
        "repo far/away/from/all/of/it; "
        + FSMONITOR.format("far/away/from/all/of/it")
        + '; ln -s far/away/from/all/of/it way; mkdir sub; echo "gitdir: $PWD/way/.git" >sub/.git',
        "cd sub && git status",
    ),
    "a .git that is a link": (
        "repo far/away/from/all/of/it; "
        + FSMONITOR.format("far/away/from/all/of/it")
        + "; mkdir sub; ln -s ../far/away/from/all/of/it/.git sub/.git",
        "cd sub && git status",
    ),
    "a commondir": (
        "repo far/away/from/all/of/it; "
        + FSMONITOR.format("far/away/from/all/of/it")
        + '; repo sub; echo "$PWD/far/away/from/all/of/it/.git" >sub/.git/commondir',
        "cd sub && git status",
    ),
    "a commondir that looks like a placeholder": (
        (
            "repo sub; cp -r sub/.git copy; mv copy sub/.git/a; "
            'git --git-dir=sub/.git/a config core.fsmonitor "$PAYLOAD"; '
            "echo a >sub/.git/commondir; chmod 444 sub/.git/commondir"
        ),
        "cd sub && git status",
    ),
    "a commondir in a repository that was there": (
        "repo far/away/from/all/of/it; "
        + FSMONITOR.format("far/away/from/all/of/it")
        + '; echo "$PWD/far/away/from/all/of/it/.git" >old/.git/commondir',
        "cd old && git status",
    ),
    "a bare repository": (
        'git init -q --bare sub; git -C sub config alias.st "!$PAYLOAD"',
        "cd sub && git st",
    ),
    "a bare repository by its commondir": (
        (
            'git init -q --bare a/b/c/d/e/far; git -C a/b/c/d/e/far config alias.st "!$PAYLOAD"; mkdir sub; '
            'echo "ref: refs/heads/main" >sub/HEAD; echo "$PWD/a/b/c/d/e/far" >sub/commondir'
        ),
        "cd sub && git st",
    ),
    "a remote far below with hooks": (
        (
            'git init -q --bare a/b/c/d/e/far; printf "#!/bin/sh\\n$PAYLOAD\\n" >a/b/c/d/e/far/hooks/update; '
            "chmod +x a/b/c/d/e/far/hooks/update; git clone -q a/b/c/d/e/far sub 2>/dev/null; "
            "git -C sub commit -q --allow-empty -m x"
        ),
        "cd sub && git push origin HEAD",
    ),
    "the repository of a submodule to come": (
        (
            "mkdir .git/modules; repo other; mv other/.git .git/modules/lib; rmdir other; "
            'git --git-dir=.git/modules/lib config core.fsmonitor "$PAYLOAD"'
        ),
        'mkdir lib && echo "gitdir: ../.git/modules/lib" >lib/.git && cd lib && git status',
    ),
    "a driver of a linked worktree": (
        (
            'repo sub; git -C sub worktree add -q ../tree; git -C sub config diff.x.textconv "$PAYLOAD"; '
            'echo "* diff=x" >tree/.gitattributes; echo 1 >tree/f; git -C tree add f; echo 2 >tree/f'
        ),
        "cd tree && git --no-pager diff",
    ),
}


class World:
    """A project that is a repository, a home, and a payload that leaves a trace."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home, self.trace = folder / "project", folder / "home", folder / "traces" / "ran"
        for each in (self.project, self.home, self.trace.parent):
            each.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(
            "[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n"
            "[safe]\ndirectory = *\n[advice]\naddEmbeddedRepo = false\n"
        )
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "PAYLOAD": f"touch {self.trace}; false",
            "SHELL": "/bin/sh",
        }
        self.host("git init -q && git commit -q --allow-empty -m first; repo old")

    def host(self, line: str, *, check: bool = True) -> str:
        done = subprocess.run(
            ["bash", "-c", PREPARE + line],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def run(self, line: str, *options: str) -> str:
        """Run a line by ``stockade run``; return what it said on standard error.

        A line that takes longer than it should may find that what it has just made was set aside already.
        """
        done = subprocess.run(
            [sys.executable, "-m", "stockade", "run", *options, "-c", PREPARE + line],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or "set aside" in done.stderr, done.stderr
        return done.stderr

    def sandbox(self, **settings: object) -> BlockingSandbox:
        return BlockingSandbox(policy_for(self.project, self.home, **settings), environment=self.environment)

    def asides(self) -> list[str]:
        """Return all names that were set aside, without their numbers."""
        found = self.project.rglob("*.stockade-*")
        return sorted(str(path.relative_to(self.project)).rpartition(".stockade-")[0] for path in found)

    def was_attacked(self) -> bool:
        found = self.trace.exists()
        self.trace.unlink(missing_ok=True)
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.mark.parametrize("name", ATTACKS)
def test_git_on_the_host_runs_nothing_that_a_command_left(world: World, tmp_path: Path, name: str) -> None:
    attack, trigger = ATTACKS[name]
    control = World(tmp_path / "control")
    control.host(attack)
    control.host(trigger, check=False)
    assert control.was_attacked(), "an attack that does not work outside proves nothing"

    said = world.run(attack)
    world.host(trigger, check=False)

    assert not world.was_attacked()
    assert "set aside" in said


@pytest.mark.parametrize("name", ATTACKS)
def test_nor_what_a_command_of_a_session_left(world: World, name: str) -> None:
    attack, trigger = ATTACKS[name]
    with world.sandbox() as sandbox:
        sandbox.run("true")
        done = sandbox.run(PREPARE + attack)
        world.host(trigger, check=False)
        assert not world.was_attacked()
        assert [one for one in done.violations if one.operation.value == "leave"], done.stderr
        assert not [one for one in sandbox.run("true").violations if one.operation.value == "leave"]


ORDINARY = {
    "init": "git init -q sub && cd sub && echo 1 >f && git add f && git commit -q -m x",
    "init with its name and address": "repo sub && git -C sub config user.name x && git -C sub config user.email y@z",
    "init of every kind": "git init -q --bare one && git init -q --shared two && "
    "git init -q --object-format=sha256 three && git init -q --separate-git-dir=store four",
    "clone": "git clone -q . sub && git -C sub fetch -q && git -C sub checkout -q -b more && "
    "git -C sub push -q origin more",
    "clone of every kind": "git clone -q --bare . one && git clone -q --mirror . two && "
    "git clone -q --depth=1 . three && git clone -q --sparse . four && git clone -q -b main -o up . five",
    "submodule": "git clone -q . other && repo sub && git -C sub -c protocol.file.allow=always "
    "submodule --quiet add ../other lib && git -C sub commit -q -m x && git -C sub submodule --quiet update --init",
    "worktree": "repo sub && git -C sub worktree add -q ../tree && cd tree && echo 1 >f && git add f && "
    "git commit -q -m x",
    "branches and remotes": "repo sub && cd sub && git remote add up https://example.org/x.git && git branch -q b && "
    "git branch -q -u b && git remote set-url --push up git@example.org:x.git && git config branch.b.description words",
    "gitlink": "link sub && git commit -q -m x && git status",
    "samples of hooks": "repo sub && cp /dev/null sub/.git/hooks/mine.sample",
    "other settings of an editor": "mkdir -p pkg/.vscode && echo '{}' >pkg/.vscode/extensions.json",
    "maintenance": "repo sub && git -C sub gc -q && git -C sub config gc.auto 0 && "
    "git -C sub config core.autocrlf input",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_work_is_left_alone(world: World, name: str) -> None:
    (world.project / "more").mkdir()
    said = world.run(ORDINARY[name])
    assert (world.asides(), "set aside" in said) == ([], False)
    shutil.rmtree(world.project)
    again = World(world.project.parent / "again")
    with again.sandbox() as sandbox:
        done = sandbox.run(PREPARE + ORDINARY[name])
        assert done.exit_code == 0, done.stderr
        assert (again.asides(), done.violations) == ([], ())


LEFT = {
    ".vscode/tasks.json": "mkdir -p packages/x/.vscode && echo {} >packages/x/.vscode/tasks.json",
    ".vscode/settings.json": "mkdir -p packages/x/.vscode && echo {} >packages/x/.vscode/settings.json",
    ".vscode": "mkdir -p other packages/x && echo {} >other/tasks.json && ln -s ../../other packages/x/.vscode",
    ".mcp.json": "mkdir -p packages/x && echo {} >packages/x/.mcp.json",
    ".idea": "mkdir -p packages/x/.idea && echo 1 >packages/x/.idea/workspace.xml",
    ".claude/commands": "mkdir -p packages/x/.claude/commands && echo 1 >packages/x/.claude/commands/go.md",
    ".claude/agents": "mkdir -p packages/x/.claude/agents && echo 1 >packages/x/.claude/agents/go.md",
}


@pytest.mark.parametrize("name", LEFT)
def test_settings_of_editors_and_agents_are_set_aside_below_the_root(world: World, name: str) -> None:
    (world.project / "packages/x").mkdir(parents=True)
    said = world.run(LEFT[name])
    path = world.project / "packages/x" / name
    assert not os.path.lexists(path)
    assert world.asides() == [f"packages/x/{name}"]
    assert f'leave behind "{path}"' in said
    assert f"mv -nT -- {path}.stockade-1 {path}" in said


UNKEPT = {
    ".helix": "mkdir .helix; echo >.helix/languages.toml",
    ".zed": "mkdir .zed; echo '{}' >.zed/settings.json",
    ".cursor/mcp.json": "mkdir .cursor; echo '{}' >.cursor/mcp.json",
    ".gemini/settings.json": "mkdir .gemini; echo '{}' >.gemini/settings.json",
    ".codex/config.toml": "mkdir .codex; echo >.codex/config.toml",
}


@pytest.mark.parametrize("name", UNKEPT)
def test_names_that_no_placeholder_keeps_are_set_aside_at_the_root(world: World, name: str) -> None:
    """Made by a command they do not stay; what is there when a command starts cannot be changed."""
    said = world.run(UNKEPT[name])
    assert not (world.project / name).exists()
    assert world.asides() == [name]
    assert f'leave behind "{world.project / name}"' in said
    world.host(f"mv {name}.stockade-1 {name}")
    world.run(f"echo evil >>{name} || echo evil >>{name}/languages.toml || echo evil >>{name}/settings.json || true")
    world.run(f"mv {name} away || true")
    assert (world.project / name).exists()
    assert "evil" not in world.host(f"cat {name} {name}/* 2>/dev/null", check=False)


def test_what_was_there_before_is_left(world: World) -> None:
    world.host(";".join(LEFT[name] for name in LEFT if name != ".vscode"))
    world.host("link sub; " + FSMONITOR.format("sub") + f"; link {DEEP}; " + FSMONITOR.format(DEEP))
    world.host('git init -q --bare bare; git -C bare config alias.st "!true"; echo 1 >bare/hooks/update')
    world.run("touch x packages/x/y sub/z bare/z; git -C bare gc -q")
    assert world.asides() == []


def test_a_bare_repository_that_was_there_is_looked_at_where_it_changed(world: World) -> None:
    world.host("git init -q --bare bare; echo 1 >bare/hooks/update")
    world.run('git -C bare config alias.st "!$PAYLOAD"')
    assert world.asides() == ["bare/config"]


def test_a_repository_of_an_earlier_command_is_looked_at_again(world: World) -> None:
    with world.sandbox() as sandbox:
        assert not sandbox.run(PREPARE + "repo sub").violations
        sandbox.run("true")
        line = f"cd sub; link {DEEP}; " + FSMONITOR.format(DEEP)
        assert [one.operation.value for one in sandbox.run(PREPARE + line).violations] == ["leave"]
        assert world.asides() == [f"sub/{DEEP}/.git/config"]


def test_what_a_setting_allows_is_left(world: World) -> None:
    attack = ATTACKS["a nested repository"][0] + ";" + LEFT[".mcp.json"]
    with world.sandbox(filesystem__allowProtected=("sub", "packages/*")) as sandbox:
        assert not sandbox.run(PREPARE + attack).violations
    with world.sandbox(filesystem__allowGitConfig=True) as sandbox:
        assert not sandbox.run(PREPARE + ATTACKS["a nested repository"][0].replace("sub", "other")).violations
    assert world.asides() == []


def test_nothing_is_overwritten_and_nothing_is_lost(world: World) -> None:
    (world.project / "sub").mkdir()
    world.run("cd sub; echo one >.mcp.json; echo kept >.mcp.json.stockade-1; mkdir .mcp.json.stockade-2")
    kept = {path.name: path.read_text() for path in (world.project / "sub").iterdir() if path.is_file()}
    assert kept == {".mcp.json.stockade-1": "kept\n", ".mcp.json.stockade-3": "one\n"}


def test_the_line_that_takes_it_back_works(world: World) -> None:
    odd = 'it\'s \\ "odd" \x1b[1m'
    with world.sandbox() as sandbox:
        done = sandbox.run(["sh", "-c", 'mkdir "$1" && echo one >"$1/.mcp.json"', "sh", odd])
        (told,) = done.violations
        assert "\x1b" not in told.text()
        line = told.remedy.partition("to take it back, run: ")[2]
        world.host(line)
        assert (world.project / odd / ".mcp.json").read_text() == "one\n"


def test_a_directory_that_a_command_closed_is_opened_to_set_something_aside(world: World) -> None:
    world.run("mkdir sub; echo 1 >sub/.mcp.json; chmod 555 sub")
    assert world.asides() == ["sub/.mcp.json"]
    assert stat.S_IMODE((world.project / "sub").stat().st_mode) == 0o555
    (world.project / "sub").chmod(0o755)


def test_a_hostile_tree_is_looked_at_without_waiting(world: World) -> None:
    world.run(
        "repo sub; rm sub/.git/config; mkfifo sub/.git/config; repo two; rm -rf two/.git/hooks; mkfifo two/.git/hooks; "
        "mkdir three four; mkfifo three/.git; truncate -s 100G four/.git; repo five; "
        "truncate -s 100G five/.git/config; "
        "repo six; truncate -s 100G six/.git/index; repo seven; ln -s / seven/.git/modules; mkdir eight; "
        "ln -s eight eight/.git; mkdir -p nine/.git; ln -s .. nine/.git/.git",
    )
    assert world.asides() == [
        "eight/.git",
        "five/.git/config",
        "nine/.git/.git",
        "seven/.git/modules",
        "six/.git/index",
        "sub/.git/config",
        "two/.git/hooks",
    ]


def _until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_command_that_runs_on_is_looked_at_meanwhile(world: World) -> None:
    line = "link sub; sleep 0.5; " + FSMONITOR.format("sub") + "; read end"
    process = subprocess.Popen(
        [sys.executable, "-m", "stockade", "run", "-c", PREPARE + line],
        cwd=world.project,
        env=world.environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _until(lambda: world.asides() == ["sub/.git/config"])
    assert process.poll() is None
    world.host("git status", check=False)
    assert not world.was_attacked()
    assert b"set aside" in process.communicate(b"\n")[1]


def test_a_background_job_is_looked_at_beside_other_commands(world: World) -> None:
    async def work() -> None:
        policy = policy_for(world.project, world.home)
        async with Sandbox(policy, environment=world.environment) as sandbox:
            line = "repo sub; read go; " + FSMONITOR.format("sub") + "; read end"
            async with await sandbox.spawn(PREPARE + line, stdin=PIPE) as job:
                await sandbox.run("while ! [ -e sub/.git/HEAD ]; do sleep 0.01; done")
                # By now a plan covers the config for every command but the job.
                await sandbox.run("true")
                assert job.stdin is not None
                job.stdin.write(b"\n")
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, _until, lambda: world.asides() == ["sub/.git/config"])
                job.stdin.write(b"\n")
                assert (await job.wait()).exit_code == 0
            assert [one.operation.value for one in sandbox.violations] == ["leave"]

    asyncio.run(work())


def test_what_commands_left_that_end_with_the_session_is_set_aside(world: World) -> None:
    line = PREPARE + "repo sub; " + FSMONITOR.format("sub") + "; echo up; sleep 600"
    with world.sandbox() as sandbox, sandbox.spawn(line) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        sandbox.close()
    assert world.asides() == ["sub/.git/config"]


def test_what_a_visitor_left_is_set_aside(world: World) -> None:
    with world.sandbox() as sandbox:
        wrapped = sandbox.wrap(PREPARE + ATTACKS["a nested repository"][0])
        subprocess.run(wrapped.argv, env=world.environment, check=True, capture_output=True)
        deadline = time.monotonic() + 60
        while not world.asides() and time.monotonic() < deadline:
            sandbox.session.pump()
        assert world.asides() == ["sub/.git/config"]


def test_threads_that_swap_directories_for_links_lead_nowhere(world: World) -> None:
    outside = world.home / "outside"
    shutil.copytree(world.project / ".git", outside / "sub" / ".git")
    shutil.copytree(world.project / ".git", outside / "x" / ".git")
    (outside / "sub/.git/config").write_text("[core]\nfsmonitor = true\n")
    (outside / "sub/.git/hooks/pre-commit").write_text("")
    (outside / "sub/.mcp.json").write_text("")
    before = sorted(str(path) for path in outside.rglob("*"))
    swap = """
import os, sys, threading, time
outside = sys.argv[1]
end = time.monotonic() + 4
def swap(name, target):
    while time.monotonic() < end:
        try:
            os.rename(name, name + ".real")
            os.symlink(target, name)
            os.unlink(name)
            os.rename(name + ".real", name)
        except OSError:
            pass
for name, target in [("a/sub", outside + "/sub"), ("a", outside), ("a/sub/.git", outside + "/sub/.git")]:
    threading.Thread(target=swap, args=(name, target)).start()
while time.monotonic() < end:
    for path in ("a/sub/.git/config", "a/sub/.mcp.json"):
        try:
            open(path, "w").write("[core]\\nfsmonitor = true\\n")
        except OSError:
            pass
    time.sleep(0.001)
"""
    script = f"cat >swap.py <<'END'\n{swap}\nEND\n{sys.executable} swap.py {outside}"
    world.run(f"mkdir a; repo a/sub; {script}")
    assert sorted(str(path) for path in outside.rglob("*")) == before


#: Makes of a file's entry in the index a gitlink, in mapped memory: no call writes anything.
MAPPED = r"""
import hashlib, mmap
with open("old/.git/index", "r+b") as file, mmap.mmap(file.fileno(), 0) as index:
    at = index.find(b"a/b/c/d/e") - 62
    index[at + 24 : at + 28] = (0o160000).to_bytes(4, "big")
    index[-20:] = hashlib.sha1(index[:-20]).digest()
"""


def test_an_index_that_was_written_in_mapped_memory_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name changed in any directory that is watched, and there is no look while the command runs."""
    monkeypatch.setattr(inspector, "INTERVAL", 600.0)
    world.host("cd old && mkdir -p a/b/c/d && touch a/b/c/d/e && git add a && git commit -q -m file")
    line = 'cd old && rm a/b/c/d/e && repo a/b/c/d/e && git -C a/b/c/d/e config core.fsmonitor "$PAYLOAD"'
    with world.sandbox() as sandbox:
        for _ in range(2):
            assert sandbox.run("true").ok
        made = sandbox.run(PREPARE + line)
        assert (made.exit_code, made.violations) == (0, ()), made
        for _ in range(2):
            assert sandbox.run("true").ok
        mapped = sandbox.run(["python3", "-c", MAPPED])
        assert [one.operation.value for one in mapped.violations] == ["leave"], mapped
    assert "160000" in world.host("git -C old ls-files --stage a")
    world.host("cd old; git status; git diff", check=False)
    assert not world.was_attacked()
