"""Git works inside as it does outside, save for what its hooks and configuration could do to the host."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.enforcement.tools.conftest import Bench

CONTENT = "hello\n"
#: What covers hold inside, as long as a command runs; git ignores it.
COVERS = "".join(f"!! {name}/.gitignore\n" for name in (".claude", ".idea", ".mcp.json", ".vscode"))


class Repository:
    """The project as a repository with one commit, and git on the host."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = bench.project
        self.host("init", "--quiet")
        (self.path / "file").write_text(CONTENT)
        self.host("add", "-A")
        self.host("commit", "--quiet", "-m", "first")

    def host(self, *words: str, cwd: Path | None = None) -> str:
        """Run git on the host, without locks of its own that a command could stumble over."""
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=cwd or self.path,
            env=self.bench.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> str:
        return self.host("status", "--porcelain", "--untracked-files=all", "--ignored")


@pytest.fixture
def tools_repository(tools_bench: Bench) -> Repository:
    return Repository(tools_bench)


def _names(directory: Path) -> set[str]:
    return set(os.listdir(directory))


def test_git_init_in_a_subdirectory_and_a_first_commit(tools_bench: Bench) -> None:
    tools_bench.good("git init -q sub && cd sub && echo one >a && git add -A && git commit -qm one")
    log = tools_bench.good("cd sub && echo two >b && git add -A && git commit -qm two && git log --format=%s")
    assert log == "two\none\n"
    assert tools_bench.good("cd sub && git status --porcelain") == ""
    tools_bench.close()
    assert _names(tools_bench.project) == {"sub"}
    assert _names(tools_bench.project / "sub") == {".git", "a", "b"}


def test_git_clones_from_a_local_bare_repository_and_pushes_to_it(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    bare = bench.project / "bare.git"
    tools_repository.host("clone", "--quiet", "--bare", str(tools_repository.path), str(bare))
    bench.good("git clone -q bare.git clone && cd clone && echo more >more && git add -A && git commit -qm more")
    bench.good("cd clone && git push -q origin main && git fetch -q && git pull -q")
    assert tools_repository.host("log", "--format=%s", "main", cwd=bare) == "more\nfirst\n"


def test_a_clone_of_a_repository_that_cannot_be_written(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    bare = bench.home / "bare.git"
    tools_repository.host("clone", "--quiet", "--bare", str(tools_repository.path), str(bare))
    before = sorted(str(path) for path in bare.rglob("*"))
    bench.good(f"git clone -q {bare} clone && test -f clone/file")
    assert bench.run(f"cd clone && git push -q {bare} HEAD:other").exit_code != 0
    assert sorted(str(path) for path in bare.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "git switch -qc topic && echo 1 >one && git add -A && git commit -qm one && git switch -q main"
            " && echo 2 >two && git add -A && git commit -qm two && git merge -q topic -m merged"
            " && git log --format=%s --topo-order | sort",
            "first\nmerged\none\ntwo\n",
            id="branch and merge",
        ),
        pytest.param(
            "git switch -qc topic && echo 1 >one && git add -A && git commit -qm one && git switch -q main"
            " && echo 2 >two && git add -A && git commit -qm two && git rebase -q main topic && git log --format=%s",
            "one\ntwo\nfirst\n",
            id="rebase",
        ),
        pytest.param(
            "echo 1 >one && git add one && git commit -qm one && echo 2 >>one && git commit -qam two"
            " && GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -qi HEAD~2 && git log --format=%s && cat one",
            "one\nfirst\n1\n2\n",
            id="interactive rebase",
        ),
        pytest.param(
            "echo new >new && echo changed >file && git stash -q -u && git status --porcelain"
            " && test ! -e new && git stash pop -q && cat new file",
            "new\nchanged\n",
            id="stash of untracked files",
        ),
        pytest.param("git gc -q --prune=now && git fsck && git log --format=%s", "first\n", id="gc and fsck"),
        pytest.param("rm file && git checkout -q -- file && cat file", CONTENT, id="checkout of a file"),
        pytest.param("git tag -a v1 -m one && git describe", "v1\n", id="tag"),
        pytest.param("mkdir x && touch x/y && git clean -fdq && ls -I refs", "file\n", id="clean"),
        pytest.param("git mv file name && git commit -qm moved && git grep -n hello", "name:1:hello\n", id="mv, grep"),
    ],
)
def test_daily_work_in_the_repository_of_the_project(tools_repository: Repository, line: str, expected: str) -> None:
    assert tools_repository.bench.good(line) == expected
    rest = "git status --porcelain --ignored -uall | grep -vE ' (new|file)$' || true"
    assert tools_repository.bench.good(rest) == COVERS
    tools_repository.bench.close()
    assert [line for line in tools_repository.status().splitlines() if line[3:] not in ("new", "file")] == []


def test_clean_of_ignored_files_removes_all_but_covers_and_says_so(tools_repository: Repository) -> None:
    """With ``-x`` git does not walk past them; it goes on, and ends with 1."""
    (tools_repository.path / ".gitignore").write_text("built\n")
    tools_repository.host("add", ".gitignore")
    done = tools_repository.bench.run("mkdir x built && touch x/y built/z && git clean -fdxq")
    assert done.exit_code == 1
    covers = [line.removeprefix("!! ") for line in COVERS.splitlines()]
    said = [f"warning: failed to remove {cover}: Permission denied" for cover in covers]
    assert done.stderr.decode().splitlines() == said
    tools_repository.bench.close()
    assert _names(tools_repository.path) == {".git", ".gitignore", "file"}


def test_no_ghost_files_are_seen_by_git_inside_or_on_the_host_while_commands_run(
    tools_repository: Repository,
) -> None:
    bench = tools_repository.bench
    bench.sandbox()
    seen: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(tools_repository.status())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        inside = [bench.good("git status --porcelain -uall; sleep 0.05") for _ in range(20)]
        ignored = bench.good("git status --porcelain -uall --ignored")
        bench.good("git add -A && git diff --cached --exit-code")
    finally:
        over.set()
        watcher.join()
    assert (set(inside), ignored) == ({""}, COVERS)
    assert len(seen) > 5
    assert set(seen) == {""}
    bench.close()
    assert tools_repository.status() == ""
    assert _names(tools_repository.path) == {".git", "file"}


def test_add_all_and_commit_take_what_was_made_and_nothing_else(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    bench.good("mkdir dir && echo 1 >dir/one && echo 2 >two && git add -A && git commit -qm more")
    assert tools_repository.host("ls-files") == "dir/one\nfile\ntwo\n"
    assert tools_repository.status() == ""


@pytest.mark.parametrize("where", ["project", "sub"])
def test_git_config_of_a_protected_repository_fails_cleanly_and_blocks_nothing(
    tools_repository: Repository, where: str
) -> None:
    bench = tools_repository.bench
    directory = bench.project if where == "project" else bench.project / "sub"
    if where == "sub":
        tools_repository.host("init", "--quiet", "sub")
    before = (directory / ".git/config").read_bytes()
    for _ in range(2):
        done = bench.run("git config user.name eve", cwd=str(directory))
        assert done.exit_code not in (0, None)
        assert done.stderr.decode().count("\n") == 1
        assert "config" in done.stderr.decode()
    assert (directory / ".git/config").read_bytes() == before
    assert not (directory / ".git/config.lock").exists()
    bench.close()
    tools_repository.host("config", "user.name", "ada", cwd=directory)


def test_git_config_works_where_a_setting_lifts_the_protection(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    bench.sandbox(filesystem__allowGitConfig=True)
    bench.good("git config user.nickname lovelace && git branch -q topic && git switch -q topic")
    bench.good("git remote add origin /nowhere && git config branch.topic.remote origin")
    assert tools_repository.host("config", "user.nickname") == "lovelace\n"


def test_hooks_of_the_repository_run_but_cannot_be_written(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    hook = tools_repository.path / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho hooked >&2\n")
    hook.chmod(0o755)
    done = bench.run("echo x >x && git add -A && git commit -qm x; echo evil >.git/hooks/pre-commit")
    assert b"hooked" in done.stderr
    assert done.exit_code != 0
    assert hook.read_text() == "#!/bin/sh\necho hooked >&2\n"


def _worktree(repository: Repository) -> Path:
    """Make the project a linked worktree of a repository that lies in the home, where nothing is writable."""
    bench = repository.bench
    main = bench.home / "main"
    repository.path.rename(main)
    repository.host("worktree", "add", "--quiet", str(bench.project), "-b", "topic", cwd=main)
    return main


def test_commit_in_a_worktree_whose_repository_lies_outside(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    main = _worktree(tools_repository)
    bench.good("echo 1 >one && git add -A && git commit -qm one && git status --porcelain")
    bench.good("git switch -qc other && git commit -q --allow-empty -m two && git stash list")
    assert tools_repository.host("log", "--format=%s", "other", cwd=main) == "two\none\nfirst\n"
    assert tools_repository.host("status", "--porcelain", cwd=main) == ""
    assert bench.run(f"echo x >{main}/file").exit_code != 0
    assert bench.run(f"echo x >{main}/.git/hooks/pre-commit").exit_code != 0
    assert bench.run("git config user.name eve").exit_code != 0
    assert (main / "file").read_text() == CONTENT
    bench.close()
    assert "eve" not in (main / ".git/config").read_text()
    assert tools_repository.status() == ""


def test_a_worktree_made_inside_a_writable_root(tools_repository: Repository) -> None:
    bench = tools_repository.bench
    bench.good("git worktree add -q tree -b topic && cd tree && echo 1 >one && git add -A && git commit -qm one")
    assert bench.good("cd tree && echo 2 >two && git add -A && git commit -qm two && git log --format=%s") == (
        "two\none\nfirst\n"
    )
    assert tools_repository.host("log", "--format=%s", "topic") == "two\none\nfirst\n"


@pytest.fixture
def tools_library(tools_bench: Bench) -> Path:
    """A repository to be a submodule."""
    path = tools_bench.root / "library"
    path.mkdir()
    commands: tuple[tuple[str, ...], ...] = (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "library"))
    for words in commands:
        subprocess.run(["git", *words], cwd=path, env=tools_bench.environment, check=True)
    return path


def test_a_submodule_added_and_updated_in_a_new_repository(tools_bench: Bench, tools_library: Path) -> None:
    local = "git -c protocol.file.allow=always"
    tools_bench.good(
        f"git init -q app && cd app && {local} submodule --quiet add {tools_library} lib && git commit -qm app"
        f" && cd .. && {local} clone -q --recurse-submodules app copy"
    )
    assert tools_bench.good("cd copy/lib && git log --format=%s && git status --porcelain") == "library\n"
    log = tools_bench.good("cd copy/lib && echo 1 >a && git add -A && git commit -qm more && git log --format=%s")
    assert log == "more\nlibrary\n"
    assert tools_bench.good("cd copy && git commit -qam moved && git submodule status").startswith(" ")


def test_submodules_of_a_clone_are_filled_when_the_configuration_may_be_written(
    tools_repository: Repository, tools_library: Path
) -> None:
    bench = tools_repository.bench
    local = ("-c", "protocol.file.allow=always")
    tools_repository.host(*local, "submodule", "--quiet", "add", str(tools_library), "lib")
    tools_repository.host("commit", "--quiet", "-m", "with a library")
    tools_repository.host("clone", "--quiet", ".", "copy")
    bench.sandbox(filesystem__allowGitConfig=True)
    bench.good("cd copy && git -c protocol.file.allow=always submodule --quiet update --init")
    assert bench.good("cd copy/lib && git log --format=%s") == "library\n"


def test_a_commit_in_a_submodule_of_the_project(tools_repository: Repository, tools_library: Path) -> None:
    bench = tools_repository.bench
    tools_repository.host("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tools_library), "lib")
    tools_repository.host("commit", "--quiet", "-m", "with a library")
    bench.good("cd lib && echo 1 >a && git add -A && git commit -qm more && cd .. && git commit -qam moved")
    assert tools_repository.host("log", "--format=%s", "-1", cwd=tools_repository.path / "lib") == "more\n"
    assert tools_repository.status() == ""
    assert bench.run("cd lib && git config user.name eve").exit_code != 0
    assert "eve" not in (tools_repository.path / ".git/modules/lib/config").read_text()


def test_many_commands_at_once_and_git_on_the_host_do_not_disturb_each_other(tools_repository: Repository) -> None:
    """Git refuses to work when somebody else holds a lock; the walls themselves must never hold one."""
    bench = tools_repository.bench
    commit: Callable[[int], str] = lambda n: bench.good(  # noqa: E731 - one line, used once
        f"echo {n} >n{n} && git add n{n} && git commit -qm {n} && git log --format=%s -1"
    )
    assert [commit(number) for number in range(10)] == [f"{number}\n" for number in range(10)]
    assert tools_repository.status() == ""


def test_a_project_that_is_a_directory_of_a_larger_repository(tools_repository: Repository) -> None:
    """What is kept from being made as ``.git`` in the project must not hide the repository above it."""
    bench = tools_repository.bench
    sandbox = bench.sandbox()
    part = tools_repository.path / "part"
    part.mkdir()
    sandbox.update(bench.policy_at(part))
    assert bench.good("git status --porcelain -uall && git log --format=%s && git rev-parse --show-prefix") == (
        "first\npart/\n"
    )
    done = bench.run("echo 1 >one && git add -A")
    assert done.exit_code not in (0, None)
    assert b"Read-only file system" in done.stderr
    bench.close()
    assert tools_repository.status() == "?? part/one\n"
