"""What a command leaves in one of many repositories is found when it ends, and not only once its turn comes."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import PATIENCE

from stockade import PIPE, Sandbox
from stockade.filesystem.inotify import Event, Inotify

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

    from stockade.sandbox.blocking import BlockingSandbox

MANY = 30
COMMIT = "git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m x"


@pytest.fixture
def projects(ground: Ground) -> list[Path]:
    first = ground.project / "p00"
    subprocess.run(["git", "init", "-q", "-b", "main", str(first)], check=True)
    subprocess.run(COMMIT.split(), cwd=first, check=True)
    others = [ground.project / f"p{number:02}" for number in range(1, MANY)]
    for other in others:
        shutil.copytree(first, other, symlinks=True)
    return [first, *others]


#: What a command does in a repository, and whether git on the host would take what is left for its own.
LEFT = {
    "a log that is a link": ("ln -sf {victim} .git/logs/refs/heads/main", ".git/logs/refs/heads/main"),
    "a ref that is a pipe": ("mkfifo .git/refs/heads/pipe", ".git/refs/heads/pipe"),
    "a log in a new directory": (
        "mkdir .git/logs/refs/heads/team; ln -s {victim} .git/logs/refs/heads/team/a",
        ".git/logs/refs/heads/team/a",
    ),
    "logs that were moved there": (
        "mkdir logs; ln -s {victim} logs/HEAD; mv .git/logs old; mv logs .git/logs",
        ".git/logs/HEAD",
    ),
    "a list of other objects": (
        "echo {outside}/.git/objects >.git/objects/info/alternates",
        ".git/objects/info/alternates",
    ),
    "a list that was moved there": (
        "mkdir info; echo {outside}/.git/objects >info/alternates; rm -r .git/objects/info; mv info .git/objects/",
        ".git/objects/info/alternates",
    ),
    "a link among objects": ("ln -s {outside}/.git/objects/ab .git/objects/ab", ".git/objects/ab"),
}


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("when", ["early in a session", "after others in other repositories"])
def test_it_is_set_aside_before_the_result_is_returned(
    ground: Ground, projects: list[Path], name: str, when: str
) -> None:
    line, left = LEFT[name]
    line = line.format(victim=ground.home / ".bashrc", outside=ground.outside)
    sandbox = ground.sandbox()
    assert sandbox.run("mkdir p02/.git/refs/heads/new; touch p29/file").ok
    if when.startswith("after"):
        for project in projects[5:12]:
            assert sandbox.run(COMMIT, cwd=str(project)).ok
    for project in (projects[25], projects[1]):
        result = sandbox.run(line, cwd=str(project))
        assert result.ok
        assert [violation.target for violation in result.violations] == [str(project / left)]
        assert not os.path.lexists(project / left)


@pytest.mark.parametrize("name", LEFT)
def test_nor_is_it_left_by_the_only_command_of_a_program(ground: Ground, projects: list[Path], name: str) -> None:
    line, left = LEFT[name]
    line = line.format(victim=ground.home / ".bashrc", outside=ground.outside)
    words = [sys.executable, "-m", "stockade", "run", "-c", f"cd {projects[25]}; {line}"]
    environment = {**os.environ, "HOME": str(ground.home)}
    done = subprocess.run(words, cwd=ground.project, env=environment, capture_output=True, check=True)
    assert b"set aside" in done.stderr
    assert not os.path.lexists(projects[25] / left)


def test_a_directory_that_came_since_is_watched_as_well(ground: Ground, projects: list[Path]) -> None:
    def plant(sandbox: BlockingSandbox, at: str) -> list[str]:
        done = sandbox.run(f"ln -s {ground.home}/.bashrc {at}/link", cwd=str(projects[20]))
        assert done.ok
        return [violation.target.removeprefix(f"{projects[20]}/") for violation in done.violations]

    sandbox = ground.sandbox()
    assert sandbox.run("mkdir -p .git/refs/heads/a/b", cwd=str(projects[20])).ok
    assert plant(sandbox, ".git/refs/heads/a/b") == [".git/refs/heads/a/b/link"]
    (projects[20] / ".git/logs/refs/heads/of-the-host").mkdir()
    assert plant(sandbox, ".git/logs/refs/heads/of-the-host") == [".git/logs/refs/heads/of-the-host/link"]


def test_a_list_that_is_written_over_is_set_aside(ground: Ground, projects: list[Path]) -> None:
    (projects[20] / ".git/objects/info/alternates").write_text(f"{projects[0]}/.git/objects\n")
    sandbox = ground.sandbox()
    assert sandbox.run("true").violations == ()
    done = sandbox.run(f"echo {ground.outside} >>p20/.git/objects/info/alternates")
    assert [violation.target for violation in done.violations] == [f"{projects[20]}/.git/objects/info/alternates"]


#: What one command does, and the next one: of the two, the last leaves a list that leads to objects outside.
CHAINS = {
    "a list of lists": (
        "true",
        "mkdir -p x/info; echo {outside}/.git/objects >x/info/alternates; echo $PWD/x >.git/objects/info/alternates",
    ),
    "a link in the place of a directory": (
        "mkdir x; echo $PWD/x >.git/objects/info/alternates",
        "rmdir x; ln -s {outside}/.git/objects x",
    ),
    "a list in a directory that is named already": (
        "mkdir -p x/info; echo $PWD/x >.git/objects/info/alternates",
        "echo {outside}/.git/objects >x/info/alternates",
    ),
    "links in it": (
        "mkdir -p x/info; echo $PWD/x >.git/objects/info/alternates",
        "for each in {outside}/.git/objects/??; do ln -s $each x/; done",
    ),
    "a directory that was moved there": (
        "mkdir -p y/info x; echo {outside}/.git/objects >y/info/alternates; echo $PWD/x >.git/objects/info/alternates",
        "rmdir x; mv y x",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("how", ["in a session", "alone"])
def test_no_list_leads_to_objects_outside_by_what_it_leads_through(
    ground: Ground, projects: list[Path], name: str, how: str
) -> None:
    subprocess.run(["git", "init", "-q", str(ground.outside)], check=True)
    (ground.outside / "secret").write_text("secret\n")
    add = ["git", "hash-object", "-w", "secret"]
    blob = subprocess.run(add, cwd=ground.outside, check=True, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, "HOME": str(ground.home)}
    control = projects[1]
    for line in CHAINS[name]:
        subprocess.run(["sh", "-c", line.format(outside=ground.outside)], cwd=control, check=True)
    show = ["git", "cat-file", "-p", blob]
    assert subprocess.run(show, cwd=control, env=environment, capture_output=True, check=True).stdout == b"secret\n"
    (control / ".git/objects/info/alternates").unlink()
    sandbox = ground.sandbox() if how == "in a session" else None
    for line in CHAINS[name]:
        inner = line.format(outside=ground.outside)
        if sandbox is not None:
            assert sandbox.run(inner, cwd=str(projects[25])).ok
        else:
            words = [sys.executable, "-m", "stockade", "run", "-c", f"cd {projects[25]}; {inner}"]
            subprocess.run(words, cwd=ground.project, env=environment, check=True, capture_output=True)
    assert subprocess.run(show, cwd=projects[25], env=environment, capture_output=True, check=False).returncode


def test_a_list_of_the_host_s_stays_although_a_command_works_beside_it(ground: Ground, projects: list[Path]) -> None:
    subprocess.run(["git", "init", "-q", str(ground.outside)], check=True)
    inner = ground.project / "store"
    inner.mkdir()
    lists = [projects[number] / ".git/objects/info/alternates" for number in (3, 4)]
    for listed, place in zip(lists, (f"{ground.outside}/.git/objects", str(inner)), strict=True):
        listed.write_text(f"{place}\n")
    time.sleep(0.05)
    sandbox = ground.sandbox()
    for number in (3, 4):
        assert sandbox.run(f"{COMMIT}; touch ../store/file", cwd=str(projects[number])).violations == ()
    (inner / "info").mkdir()
    (inner / "info/alternates").write_text(f"{ground.outside}/.git/objects\n")
    time.sleep(0.05)
    assert sandbox.run(COMMIT, cwd=str(projects[4])).violations == ()
    assert all(listed.exists() for listed in lists)


def test_what_the_host_made_between_two_commands_stays(ground: Ground, projects: list[Path]) -> None:
    sandbox = ground.sandbox()
    assert sandbox.run("true").ok
    link = projects[20] / ".git/logs/refs/heads/mine"
    link.symlink_to(ground.home / "log")
    (projects[3] / ".git/objects/info/alternates").write_text(f"{ground.outside}\n")
    time.sleep(0.05)  # the clock of the disk is coarse: what is a little older than a command counts as its own
    for _ in range(3):
        assert sandbox.run("true").violations == ()
    assert sandbox.run(COMMIT, cwd=str(projects[20])).violations == ()
    assert link.is_symlink()
    assert (projects[3] / ".git/objects/info/alternates").exists()


def test_beside_a_command_that_runs_on_it_is_set_aside_once_none_runs(ground: Ground, projects: list[Path]) -> None:
    team = projects[20] / ".git/logs/refs/heads/team"

    async def work() -> list[str]:
        async with Sandbox(ground.policy()) as sandbox:
            async with await sandbox.spawn("read end", stdin=PIPE) as job:
                await sandbox.run(f"mkdir {team}; ln -s {ground.home}/.bashrc {team}/a")
                await sandbox.run("sleep 0.3")  # there are looks meanwhile
                assert job.stdin is not None
                job.stdin.write(b"\n")
                assert (await job.wait()).ok
            return [violation.target for violation in sandbox.violations]

    assert asyncio.run(work()) == [f"{team}/a"]
    assert not os.path.lexists(team / "a")


def linked_in(holder: Path, target: Path) -> tuple[str, list[str]]:
    """Return a line that leaves a link and a list in a repository, and what is set aside for it."""
    log, others = holder / ".git/logs/refs/heads/main", holder / ".git/objects/info/alternates"
    return f"ln -sf {target} {log}; echo {target} >{others}", [str(log), str(others)]


def test_in_a_repository_where_only_a_later_policy_lets_commands_write_it_is_set_aside(
    ground: Ground, projects: list[Path]
) -> None:
    second = ground.root / "second"
    shutil.copytree(projects[0], second / "one", symlinks=True)
    line, left = linked_in(second / "one", ground.home / ".bashrc")
    sandbox = ground.sandbox()
    assert sandbox.run("true").ok
    assert sandbox.run("true").ok
    sandbox.update(ground.policy(filesystem__allowWrite=(str(second),)))
    done = sandbox.run(line)
    assert done.ok
    assert sorted(violation.target for violation in done.violations) == left


def test_nor_does_it_stay_if_a_command_of_the_earlier_policy_runs_on(ground: Ground, projects: list[Path]) -> None:
    second = ground.root / "second"
    shutil.copytree(projects[0], second / "one", symlinks=True)
    line, left = linked_in(second / "one", ground.home / ".bashrc")
    before, others = linked_in(projects[20], ground.home / ".bashrc")

    async def work() -> list[str]:
        async with Sandbox(ground.policy()) as sandbox:
            assert (await sandbox.run("true")).ok
            async with await sandbox.spawn(f"{before}; echo; read end", stdin=PIPE, stdout=PIPE) as job:
                assert job.stdin is not None
                assert job.stdout is not None
                await job.stdout.readline()
                await sandbox.update(ground.policy(filesystem__allowWrite=(str(second),)))
                assert (await sandbox.run(line)).ok
                job.stdin.write(b"\n")
                assert (await job.wait()).ok
            return [violation.target for violation in sandbox.violations]

    assert sorted(asyncio.run(work())) == sorted(left + others)


def test_nor_does_it_where_events_were_lost_while_the_command_ran(
    ground: Ground, projects: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, left = linked_in(projects[20], ground.home / ".bashrc")

    async def work() -> list[str]:
        async with Sandbox(ground.policy()) as sandbox:
            assert (await sandbox.run("true")).ok
            async with await sandbox.spawn(f"read go; {line}", stdin=PIPE) as job:
                lost = asyncio.Event()
                with monkeypatch.context() as patch:

                    def lose(_: Inotify) -> list[Event]:
                        lost.set()
                        return [Event(-1, "", overflow=True)]

                    patch.setattr(Inotify, "read", lose)
                    await asyncio.wait_for(lost.wait(), PATIENCE)
                assert job.stdin is not None
                job.stdin.write(b"\n")
                assert (await job.wait()).ok
            return [violation.target for violation in sandbox.violations]

    assert sorted(asyncio.run(work())) == left
