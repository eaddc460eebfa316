"""``git init`` and ``git clone URL .`` at the root of a project: they work, and git on the host obeys nothing of it.

Each row of ``ATTACKS`` is made twice, as in ``test_inspection``: on the host, where git then runs the payload (the
control), and behind walls.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import policy_for
from tests.enforcement.test_inspection import PREPARE, World

import stockade
from stockade.platforms.linux.staging import NAME
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.plumbing import PIPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.sandbox.blocking_process import BlockingProcess

HOOK = 'printf "#!/bin/sh\\n$PAYLOAD\\nexit 0\\n" >{0}; chmod +x {0}; '
COMMIT = "echo 1 >file && git add file && git commit -q -m made"
PATIENCE = 60.0


class Empty(World):
    """A directory in which nothing is, and a library beside it that can be cloned."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.library = folder / "library"
        shutil.move(self.project / "old", self.library)
        shutil.rmtree(self.project / ".git")
        self.environment |= {"LIBRARY": str(self.library), "PYTHONPATH": str(Path(stockade.__file__).parents[1])}
        self.host('git -C "$LIBRARY" commit -q --allow-empty -m more', check=True)

    def left(self) -> list[str]:
        """Return what lies in the project, without what is in a ``.git``."""
        found = sorted(path.relative_to(self.project) for path in self.project.rglob("*"))
        return [str(path) for path in found if ".git" not in path.parts[:-1]]

    def is_clean(self) -> bool:
        """Tell whether nothing of ours is left."""
        return not [path for path in self.project.rglob("*") if ".stockade" in path.name]

    def remains(self) -> list[str]:
        return sorted(str(path.relative_to(self.project)) for path in self.project.rglob("*.stockade-*"))


@pytest.fixture
def empty(tmp_path: Path) -> Empty:
    return Empty(tmp_path / "world")


ORDINARY = {
    "init": f"git init -q && {COMMIT}",
    "init with a name": f"git init -q && git config user.name me && git config user.email a@b && {COMMIT}",
    "init of a branch": f"git init -q -b trunk . && {COMMIT} && git branch other && git switch -q other",
    "init with sha256": f"git init -q --object-format=sha256 && {COMMIT}",
    "init twice": f"git init -q && git init -q && {COMMIT}",
    "a remote, and tracking": f'git init -q && {COMMIT} && git remote add up "$LIBRARY" && git fetch -q up',
    "stash, rebase, gc": f"git init -q && {COMMIT} && echo 2 >file && git stash -q && git stash pop -q && "
    "git commit -qam two && git rebase -q --force-rebase HEAD~1 && git gc -q",
    "a worktree": f"git init -q && {COMMIT} && git worktree add -q tree && cd tree && echo 3 >x && git add x && "
    "git commit -qm x",
    "a submodule": f'git init -q && {COMMIT} && git -c protocol.file.allow=always submodule -q add "$LIBRARY" lib '
    "&& git commit -qm lib",
    "clone": 'git clone -q "$LIBRARY" . && git log -1 && echo 1 >file && git add file && git commit -q -m made',
    "clone without a name for it": 'git clone -q --no-local --depth=1 "file://$LIBRARY" . && git fetch -q --unshallow',
}


@pytest.mark.parametrize("name", ORDINARY)
def test_a_repository_can_be_made_at_the_root(empty: Empty, name: str) -> None:
    said = empty.run(ORDINARY[name])
    assert "set aside" not in said
    assert empty.is_clean(), empty.remains()
    assert empty.host("git fsck --strict --no-dangling && git rev-list --count HEAD").strip().isdecimal()
    assert not [line for line in empty.host("git status --porcelain").splitlines() if line[3:] != "tree/"]


def test_one_that_was_left_half_made_is_in_nobody_s_way(empty: Empty) -> None:
    said = empty.run("mkdir -p .git/hooks .git/refs; touch .git/description")
    assert "set aside" in said
    assert "set aside" not in empty.run("git init -q && git status")
    assert empty.host("git status -s --untracked-files=no").split() == []


def test_a_run_beside_a_session_that_waits_takes_no_stage_away(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        assert sandbox.run("true").ok
        assert empty.run("true") == ""
        done = sandbox.run("git init -q && git status")
        assert done.ok, done.stderr
        assert empty.host("git status -s").split() == []
    assert empty.is_clean(), empty.remains()


def test_a_session_whose_stage_somebody_took_away_makes_another(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        assert sandbox.run("true").ok
        (empty.project / ".git" / NAME).rmdir()
        done = sandbox.run("git init -q && git status")
        assert done.ok, done.stderr
    assert empty.host("git status -s").split() == []
    assert empty.is_clean(), empty.remains()


@pytest.mark.parametrize("name", ORDINARY)
def test_so_it_can_in_a_session_and_the_next_command_finds_it(empty: Empty, name: str) -> None:
    with empty.sandbox() as sandbox:
        sandbox.run("true")
        done = sandbox.run(PREPARE + ORDINARY[name])
        left = [one for one in done.violations if one.operation.value == "leave"]
        assert (done.exit_code, left) == (0, []), done.stderr
        assert empty.host("git rev-list --count HEAD").strip().isdecimal()
        after = sandbox.run("git status -s && echo 9 >more && git add more && git commit -qm more")
        assert after.exit_code == 0, after.stderr
        refused = sandbox.run("echo evil >>.git/config; echo evil >.git/hooks/post-commit; git config user.name x")
        assert refused.exit_code
    assert empty.is_clean(), empty.remains()
    assert "evil" not in (empty.project / ".git/config").read_text()
    assert not (empty.project / ".git/hooks/post-commit").exists()


ATTACKS = {
    "fsmonitor": (f'git init -q; {COMMIT}; git config core.fsmonitor "$PAYLOAD"', "git status"),
    "a hook": (
        f"git init -q; {HOOK.format('.git/hooks/post-commit')}{COMMIT}; true",
        "git commit -q --allow-empty -m x",
    ),
    "a directory of hooks": (
        f"git init -q; mkdir h; {HOOK.format('h/post-commit')} git config core.hooksPath $PWD/h",
        "git commit -q --allow-empty -m x",
    ),
    "hooks behind a link": (
        f"git init -q; rm -r .git/hooks; mkdir h; {HOOK.format('h/post-commit')} ln -s ../h .git/hooks",
        "git commit -q --allow-empty -m x",
    ),
    "a config behind a link": (
        'git init -q; git config core.fsmonitor "$PAYLOAD"; mv .git/config c; ln -s ../c .git/config',
        "git status",
    ),
    "an include": (
        'git init -q; git config -f other core.fsmonitor "$PAYLOAD"; git config include.path ../other',
        "git status",
    ),
    "a template": (
        f"mkdir -p t/hooks; {HOOK.format('t/hooks/post-commit')} git init -q --template=$PWD/t",
        "git commit -q --allow-empty -m x",
    ),
    "a filter of a clone": (
        'git clone -q "$LIBRARY" .; git config filter.x.clean "$PAYLOAD"; echo "* filter=x" >.gitattributes; echo 1 >f',
        "git add f",
    ),
    "an alias": ('git init -q; git config alias.st "!$PAYLOAD"', "git st"),
    "another repository, by commondir": (
        f"git init -q; git init -q far; {HOOK.format('far/.git/hooks/post-commit')} echo ../far/.git >.git/commondir",
        "git commit -q --allow-empty -m x",
    ),
    "a config of a worktree": (
        (
            "git init -q; git config extensions.worktreeConfig true; "
            'git config -f .git/config.worktree core.fsmonitor "$PAYLOAD"'
        ),
        "git status",
    ),
    "a gitlink": (
        f'git init -q; {COMMIT}; link sub; git -C sub config core.fsmonitor "$PAYLOAD"',
        "git status",
    ),
    "a submodule": (
        (
            'git init -q; git -c protocol.file.allow=always submodule -q add "$LIBRARY" lib; '
            'git -C lib config core.fsmonitor "$PAYLOAD"'
        ),
        "git status",
    ),
    "a worktree": (
        f'git init -q; {COMMIT}; git worktree add -q tree; git config core.fsmonitor "$PAYLOAD"',
        "git -C tree status",
    ),
    "a rebase under way": (
        (
            "git init -q; mkdir .git/rebase-merge; echo '$(touch $TRACE)' >.git/rebase-merge/msgnum; "
            "echo 1 >.git/rebase-merge/end"
        ),
        (
            "TRACE=${PAYLOAD#touch }; export TRACE=${TRACE%;*}; "
            'bash --norc -ic \'. /usr/lib/git-core/git-sh-prompt; __git_ps1 "x" "y"; echo "${PS1@P}"\''
        ),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_git_on_the_host_obeys_nothing_in_it(empty: Empty, tmp_path: Path, name: str) -> None:
    attack, trigger = ATTACKS[name]
    control = Empty(tmp_path / "control")
    control.host(attack, check=False)
    control.was_attacked()
    control.host(trigger, check=False)
    assert control.was_attacked(), "an attack that does not work outside proves nothing"

    said = empty.run(attack)
    empty.was_attacked()
    empty.host(trigger, check=False)

    assert not empty.was_attacked()
    assert "set aside" in said


@pytest.mark.parametrize("name", ATTACKS)
def test_nor_while_the_command_runs_on(empty: Empty, name: str) -> None:
    attack, trigger = ATTACKS[name]
    with empty.sandbox() as sandbox, _going_on(sandbox, attack):
        empty.was_attacked()
        empty.host(trigger, check=False)
        empty.host("git -C .git status; git -C .git/* status; git init -q x; git -C x status", check=False)
        assert not empty.was_attacked()
        assert not (empty.project / ".git/HEAD").exists()


@contextmanager
def _going_on(sandbox: BlockingSandbox, line: str) -> Iterator[BlockingProcess]:
    """Run a line, and go on when it has done its work but has not ended; it ends with the block."""
    with sandbox.spawn(f"{PREPARE}{line}; echo made; read line", stdin=PIPE, stdout=PIPE) as running:
        assert running.stdout is not None
        while b"made" not in running.stdout.readline():
            pass
        yield running
        running.kill()
        running.wait()


def test_alternates_that_lead_out_are_set_aside(empty: Empty) -> None:
    said = empty.run('git clone -q -s "$LIBRARY" .')
    assert "alternates" in said
    assert not (empty.project / ".git/objects/info/alternates").exists()


#: What a command leaves where git on the host writes, and what the user does then.
WRITTEN = {
    "the log": ("rm .git/logs/HEAD; ln -s $VICTIM .git/logs/HEAD", "git commit -q --allow-empty -m x"),
    "the log of a branch": (
        "rm .git/logs/refs/heads/main; ln -s $VICTIM .git/logs/refs/heads/main",
        "git commit -q --allow-empty -m x",
    ),
    "the log of a branch with the name that it would get": (
        (
            "git switch -q -c y.stockade-1; rm .git/logs/refs/heads/*; ln -s $VICTIM .git/logs/refs/heads/y; "
            "ln -s $VICTIM .git/logs/refs/heads/y.stockade-1"
        ),
        "git commit -q --allow-empty -m x",
    ),
    "all logs": (
        (
            "rm -r .git/logs; ln -s ${VICTIM%/*}/.git-logs .git/logs; mkdir $PWD/logs; ln -s $VICTIM logs/HEAD; "
            "rm .git/logs; mv -T logs .git/logs"
        ),
        "git commit -q --allow-empty -m x",
    ),
    "a message": ("ln -sf $VICTIM .git/COMMIT_EDITMSG", "git commit -q --allow-empty -m x"),
    "what was fetched": ("ln -s $VICTIM .git/FETCH_HEAD", 'git fetch -q "$LIBRARY"'),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("new", [True, False])
def test_git_on_the_host_writes_nowhere_else(empty: Empty, tmp_path: Path, name: str, new: bool) -> None:  # noqa: FBT001
    attack, trigger = WRITTEN[name]
    made = f"git init -q && {COMMIT}; "
    for world in (Empty(tmp_path / "control"), empty):
        victim = world.home / ".bashrc"
        victim.write_text("mine")
        world.environment["VICTIM"] = str(victim)
        if not new:
            world.host(made)
        line = f"{made if new else ''}{attack}"
        said = world.run(line) if world is empty else world.host(line)
        world.host(trigger, check=False)
        assert (victim.read_text() == "mine") == (world is empty)
    assert "set aside" in said


def test_it_does_not_wait_for_a_pipe(empty: Empty) -> None:
    for name in ("HEAD", "packed-refs", "index", "MERGE_HEAD"):
        said = empty.run(f"git init -q; rm -f .git/{name}; mkfifo .git/{name}")
        assert "set aside" in said, name
        subprocess.run(["git", "status"], cwd=empty.project, env=empty.environment, check=False, timeout=PATIENCE)
        for left in empty.project.iterdir():
            shutil.rmtree(left)


OBJECTS = {
    "a list": "echo $LIBRARY/.git/objects >.git/objects/info/alternates",
    "a list that leads there by a link": (
        "ln -s $LIBRARY/.git/objects .git/foo; echo $PWD/.git/foo >.git/objects/info/alternates"
    ),
    "a link to packs": "rmdir .git/objects/pack; ln -s $LIBRARY/.git/objects/pack .git/objects/pack",
    "links to directories": "for each in $LIBRARY/.git/objects/??; do ln -s $each .git/objects/; done",
}


@pytest.mark.parametrize("name", OBJECTS)
def test_it_takes_objects_from_nowhere_else(empty: Empty, tmp_path: Path, name: str) -> None:
    for world in (Empty(tmp_path / "control"), empty):
        if "packs" in name:
            world.host("git -C $LIBRARY gc -q")
        commit = world.host("git -C $LIBRARY rev-parse HEAD").strip()
        line = f"git init -q; {OBJECTS[name]}"
        world.run(line) if world is empty else world.host(line)
        assert (commit in world.host(f"git rev-parse --verify {commit}^{{commit}}", check=False)) == (
            world is not empty
        )


def _back(remedy: str) -> str:
    """Return the line that a remedy offers to be pasted."""
    return remedy.partition("run: ")[2].partition("; beware")[0]


#: What one command prepares, and the next one moves to where git on the host looks.
MOVED = {
    "a list": (
        "mkdir info; echo $LIBRARY/.git/objects >info/alternates",
        "rm -rf $STORE/objects/info; mv -T info $STORE/objects/info",
    ),
    "all objects": (
        "cp -a $STORE/objects objects; echo $LIBRARY/.git/objects >objects/info/alternates",
        "mv $STORE/objects old; mv objects $STORE/objects",
    ),
}
STORES = {"at the root": ".git", "nested": "sub/.git", "of a submodule": ".git/modules/lib"}
MAKE_STORES = (
    f'git init -q && {COMMIT} && git init -q sub && git -c protocol.file.allow=always submodule -q add "$LIBRARY" lib '
    "&& git commit -qm lib && rm -f .git/modules/lib/objects/info/alternates"
)


@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", MOVED)
def test_a_list_that_is_older_than_the_command_is_found(
    empty: Empty,
    name: str,
    store: str,
    session: bool,  # noqa: FBT001
) -> None:
    empty.host(MAKE_STORES)
    empty.environment["STORE"] = STORES[store]
    prepare, move = MOVED[name]
    if session:
        with empty.sandbox() as sandbox:
            assert sandbox.run(prepare).exit_code == 0
            time.sleep(0.1)
            done = sandbox.run(move)
            assert done.exit_code == 0, done.stderr
            told = [one.target for one in done.violations if one.operation.value == "leave"]
    else:
        empty.run(prepare)
        time.sleep(0.1)
        said = empty.run(move)
        assert said.count("set aside") == 1
        told = [said]
    assert len(told) == 1
    assert f"{STORES[store]}/objects/info/alternates" in told[0]
    assert not (empty.project / STORES[store] / "objects/info/alternates").exists()


def test_a_list_of_the_hosts_stays_whatever_a_command_does_beside_it(empty: Empty) -> None:
    empty.host(f"git init -q && {COMMIT} && echo $LIBRARY/.git/objects >.git/objects/info/alternates")
    time.sleep(0.1)
    work = "echo $RANDOM >more && git add more && git commit -qm more && git commit-graph write && git gc -q"
    with empty.sandbox() as sandbox:
        for _ in range(2):
            done = sandbox.run(work)
            assert (done.exit_code, [one for one in done.violations if one.operation.value == "leave"]) == (0, [])
    assert "set aside" not in empty.run(work)
    assert (empty.project / ".git/objects/info/alternates").exists()


def test_a_list_that_the_user_takes_back_stays(empty: Empty) -> None:
    empty.host(f"git init -q && {COMMIT}")
    work = "echo $RANDOM >more && git add more && git commit -qm more && git commit-graph write"
    with empty.sandbox() as sandbox:
        sandbox.run("mkdir info; echo $LIBRARY/.git/objects >info/alternates")
        time.sleep(0.1)
        done = sandbox.run("rm -rf .git/objects/info; mv -T info .git/objects/info")
        (told,) = [one for one in done.violations if one.operation.value == "leave"]
        empty.host(_back(told.remedy), check=True)
        time.sleep(0.1)
        done = sandbox.run(work)
        assert (done.exit_code, [one for one in done.violations if one.operation.value == "leave"]) == (0, [])
    assert (empty.project / ".git/objects/info/alternates").exists()


@pytest.mark.parametrize("names", ["", "many", "link"])
def test_it_takes_no_remote_from_old_files(empty: Empty, names: str) -> None:
    more = {
        "many": "for i in $(seq 1001); do echo >.git/remotes/$i; done",
        "link": "mv .git/remotes rem; ln -s ../rem .git/remotes",
    }
    line = f"git init -q; {COMMIT}; mkdir .git/remotes; echo URL: /elsewhere >.git/remotes/up; {more.get(names, '')}"
    assert "set aside" in empty.run(line)
    assert "/elsewhere" not in empty.host("git remote get-url up; git ls-remote up 2>&1", check=False)


def test_a_submodule_may_have_any_name(empty: Empty, tmp_path: Path) -> None:
    """The names of a repository's own directories are no others'."""
    attack = (
        'git init -q; git -c protocol.file.allow=always submodule -q add --name info "$LIBRARY" lib; git commit -qm x; '
        f"{HOOK.format('.git/modules/info/hooks/post-checkout')} rm -rf lib"
    )
    trigger = "git -c protocol.file.allow=always submodule -q update --init --force"
    control = Empty(tmp_path / "control")
    control.host(attack)
    control.host(trigger, check=False)
    assert control.was_attacked()
    assert "set aside" in empty.run(attack)
    empty.host(trigger, check=False)
    assert not empty.was_attacked()


def test_a_name_of_ours_on_the_stage_leaves_nothing_that_nobody_looked_at(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        sandbox.run("true")
        sandbox.run(f'git init -q; git config core.fsmonitor "$PAYLOAD"; mkdir .git/{NAME}')
        sandbox.run("echo ref: refs/heads/main >.git/HEAD; mkdir -p .git/objects .git/refs")
    empty.host("git status", check=False)
    assert not empty.was_attacked()


def test_what_a_sandbox_around_it_put_on_a_stage_is_no_older_than_the_commands(empty: Empty) -> None:
    inner = empty.project / "inner"
    inner.mkdir()
    stage = inner / ".git" / NAME
    with empty.sandbox() as around:
        made = around.run(
            f"mkdir -p {stage} && git init -q --bare {stage} && cd {stage} && git config core.bare false && "
            "echo $LIBRARY/.git/objects >objects/info/alternates && mkdir remotes && echo URL: /x >remotes/up"
        )
        assert made.exit_code == 0, made.stderr
    assert stage.exists()
    time.sleep(0.1)
    with BlockingSandbox(policy_for(inner, empty.home), environment=empty.environment) as sandbox:
        sandbox.run("true")
    assert (inner / ".git/HEAD").exists()
    assert not (inner / ".git/objects/info/alternates").exists()
    assert not (inner / ".git/remotes/up").exists()


def test_one_that_was_moved_up_and_not_looked_at_is_looked_at_without_a_journal(empty: Empty) -> None:
    """The machine was switched off in that moment."""
    empty.host(f'git init -q; git config core.fsmonitor "$PAYLOAD"; mkdir .git/{NAME}; mv .git/HEAD .git/{NAME}')
    empty.run("cp .git/*/HEAD .git/HEAD; true")
    empty.host("git status", check=False)
    assert not empty.was_attacked()
    assert (empty.project / ".git/HEAD").exists()


def test_what_the_host_puts_into_a_placeholder_meanwhile_is_the_hosts(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        with _going_on(sandbox, "true"):
            empty.host("echo {} >.vscode/settings.json")
            time.sleep(0.5)
        sandbox.run("true")
    assert (empty.project / ".vscode/settings.json").exists()
    assert empty.left() == [".vscode", ".vscode/settings.json"]


def test_dot_git_stays_a_directory(empty: Empty) -> None:
    said = empty.run("rm -rf .git; mv .git away; echo gitdir: x >.git; ln -sfn /elsewhere .git; true")
    assert not os.path.lexists(empty.project / ".git/HEAD"), said
    assert not (empty.project / ".git").is_symlink()
    assert not (empty.project / ".git").is_file()


def test_nothing_is_left_where_no_repository_was_made(empty: Empty) -> None:
    empty.run("ls -A; stat .git; true")
    assert os.listdir(empty.project) == []


def test_a_repository_that_the_host_made_meanwhile_stays_the_hosts(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        with _going_on(sandbox, f"git init -q; {COMMIT}"):
            empty.host("git init -q && git commit -q --allow-empty -m hosts")
        assert empty.host("git log --format=%s").split() == ["hosts"]
        sandbox.run("true")
    kept = [path for path in (empty.project / ".git").iterdir() if path.name.startswith(NAME)]
    assert len(kept) == 1
    assert (kept[0] / "HEAD").exists()


def test_the_line_that_brings_one_back_works_beside_a_repository_of_the_hosts(empty: Empty) -> None:
    with empty.sandbox() as sandbox:
        with _going_on(sandbox, f"git init -q; {COMMIT}"):
            empty.host("git init -q && git commit -q --allow-empty -m hosts")
        told = [one for one in sandbox.violations if one.operation.value == "leave"]
    (one,) = told
    assert "beware" in one.remedy
    empty.host(_back(one.remedy), check=True)
    assert empty.host("git log --format=%s").split() == ["made"]
    assert empty.host("git --git-dir=.git.host log --format=%s").split() == ["hosts"]


REFUSED = {
    "a pipe": f"git init -q; {COMMIT}; rm .git/HEAD; mkfifo .git/HEAD",
    "a flood": f"git init -q; {COMMIT}; (cd .git && seq 1001 | xargs touch)",
    "a name of ours": f"git init -q; {COMMIT}; mkdir .git/{NAME}",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_line_that_brings_one_back_works_and_another_can_be_made_meanwhile(empty: Empty, name: str) -> None:
    with empty.sandbox() as sandbox:
        done = sandbox.run(PREPARE + REFUSED[name])
        told = [one for one in done.violations if one.target == str(empty.project / ".git")]
        assert len(told) == 1, done.violations
        assert "beware" in told[0].remedy
        assert sandbox.run("git init -q && git log").exit_code == 128  # a new one, without a commit
    shutil.rmtree(empty.project / ".git")
    empty.host(_back(told[0].remedy), check=True)
    assert empty.host("git log --all --format=%s").split() == ["made"]


def test_while_another_sandbox_is_at_work_the_repository_waits(empty: Empty) -> None:
    """A command of the other one may have a file of it open, and write it after we looked."""
    with empty.sandbox() as one, empty.sandbox() as other:
        with _going_on(other, "exec 9>>.git/config"):
            one.run(f"git init -q && {COMMIT}")
            assert not (empty.project / ".git/HEAD").exists()
            assert one.run("git log --format=%s").stdout.strip() == b"made"
        assert empty.host("git log --format=%s").strip() == "made"


def _killed(empty: Empty, line: str, *, keepers: bool) -> None:
    """Run a line that never ends, and kill its owner, with or without the helpers."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "stockade", "run", "-c", f"{PREPARE}{line}; echo made; sleep 1000"],
        cwd=empty.project,
        env=empty.environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert owner.stdout is not None
    while b"made" not in owner.stdout.readline():
        pass
    if keepers:
        os.killpg(owner.pid, signal.SIGKILL)
    owner.kill()
    owner.wait()
    owner.stdout.close()


@pytest.mark.parametrize("keepers", [True, False])
def test_kill_9_loses_no_repository(empty: Empty, keepers: bool) -> None:  # noqa: FBT001
    _killed(empty, f"git init -q; {COMMIT}", keepers=keepers)
    if not keepers:
        _until((empty.project / ".git/HEAD").exists)  # one of them lives on, and finishes it
    told = empty.run("true")
    assert told.count("left a repository") == 1, told
    assert str(empty.project) in told
    assert "left a repository" not in empty.run("true")
    assert empty.host("git log --format=%s").strip() == "made"
    assert empty.is_clean(), empty.remains()


def test_nor_does_it_let_an_attack_pass(empty: Empty) -> None:
    _killed(empty, f'git init -q; {COMMIT}; git config core.fsmonitor "$PAYLOAD"', keepers=False)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not (empty.project / ".git/HEAD").exists():
        empty.host("git status", check=False)
    assert 'config" (set aside as "config.stockade-1"' in empty.run("true")
    empty.host("git status", check=False)
    assert not empty.was_attacked()


def test_what_is_set_aside_after_a_kill_is_told_with_the_way_back(empty: Empty) -> None:
    _killed(empty, f"git init -q; {COMMIT}; mkdir .git/{NAME}", keepers=True)
    told = empty.run("true")
    (note,) = [line for line in told.splitlines() if "left a repository" in line]
    assert ".git.stockade-1" in note
    empty.host(_back(note), check=True)
    assert empty.host("git log --all --format=%s").split() == ["made"]


WORKTREES = {
    "a worktree of the host's": ("git worktree add -q tree", "git worktree remove tree"),
    "a worktree of the host's, with files": ("git worktree add -q tree; echo 1 >tree/x", "git worktree remove -f tree"),
    "a nested repository": ("git init -q tree; echo 1 >tree/x", "rm -rf tree"),
    "a nested repository with a space": ("git init -q 'tree it'", "rm -rf 'tree it'"),
}


@pytest.mark.parametrize("name", WORKTREES)
def test_what_cannot_be_removed_from_inside_is_said_with_what_removes_it(empty: Empty, name: str) -> None:
    prepare, remove = WORKTREES[name]
    empty.host(f"git init -q && {COMMIT} && {prepare}")
    with empty.sandbox() as sandbox:
        done = sandbox.run(remove)
        assert done.exit_code
    told = [one for one in done.violations if "run outside the sandbox: rm -rf" in one.remedy]
    assert told, done.violations
    assert len(done.violations) <= 4
    line = told[0].remedy.partition("run outside the sandbox: ")[2].partition("; or ")[0]
    empty.host(line, check=True)
    assert not [path for path in empty.project.iterdir() if path.name.startswith("tree")]
    assert len(empty.host("git worktree list").splitlines()) == 1


def test_a_worktree_of_an_earlier_command_is_like_one_of_the_hosts(empty: Empty) -> None:
    empty.host(f"git init -q && {COMMIT}")
    with empty.sandbox() as sandbox:
        assert sandbox.run("git worktree add -q tree").exit_code == 0
        done = sandbox.run("git worktree remove tree")
    (told,) = [one for one in done.violations if one.target == str(empty.project / "tree/.git")]
    empty.host(told.remedy.partition("run outside the sandbox: ")[2].partition("; or ")[0], check=True)
    assert not (empty.project / "tree").exists()
    assert len(empty.host("git worktree list").splitlines()) == 1


def test_a_worktree_of_the_command_can_be_removed_by_it(empty: Empty) -> None:
    empty.host(f"git init -q && {COMMIT}")
    with empty.sandbox() as sandbox:
        done = sandbox.run("git worktree add -q tree && echo 1 >tree/x && git worktree remove -f tree")
        assert (done.exit_code, done.violations) == (0, ()), done.stderr
    assert not (empty.project / "tree").exists()


def test_sandboxes_of_two_policies_in_one_directory(empty: Empty) -> None:
    """One of them does not let commands write there, and is no hindrance."""
    policy = policy_for(empty.project, empty.home)
    closed = policy_for(empty.project, empty.home, filesystem__denyWrite=(str(empty.project),))
    with BlockingSandbox(closed, environment=empty.environment) as other:
        other.run("true")
        with BlockingSandbox(policy, environment=empty.environment) as one:
            assert one.run(f"git init -q && {COMMIT}").exit_code == 0
        assert empty.host("git log --format=%s").strip() == "made"


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)
