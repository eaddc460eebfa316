from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.finding import Finding
from stockade.platforms.linux.aside import report
from stockade.platforms.linux.staging import NAME, Stage, Stages, open_stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def git(tmp_path: Path) -> Path:
    """A ``.git`` that is held, in a directory of its own."""
    path = tmp_path / "project" / ".git"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def stage(git: Path) -> Iterator[Stage]:
    opened = open_stage(str(git))
    assert opened is not None
    yield opened
    opened.close()


def make_repository(git: Path) -> None:
    """Make what ``git init`` makes, on the stage."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(git)}
    subprocess.run(["git", "init", "-q", "--bare", str(git / NAME)], check=True, env=environment)
    subprocess.run(["git", f"--git-dir={git / NAME}", "config", "core.bare", "false"], check=True, env=environment)


def test_it_lies_in_the_git_directory_that_it_stands_for(git: Path, stage: Stage) -> None:
    assert (stage.path, stage.holder) == (str(git / NAME), str(git.parent))
    assert stage.is_empty()
    assert stage.is_there()


def test_an_empty_one_goes_when_it_is_closed(git: Path, stage: Stage) -> None:
    stage.close()
    stage.close()
    assert list(git.iterdir()) == []


def test_one_with_something_in_it_stays(git: Path, stage: Stage) -> None:
    make_repository(git)
    stage.close()
    assert (git / NAME / "HEAD").exists()


def test_head_comes_last(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    assert stage.raise_up() == []
    assert (git / "config").exists()
    assert not (git / "HEAD").exists()
    assert stage.finish() == []
    assert (git / "HEAD").exists()
    assert not (git / NAME).exists()
    assert not stage.is_there()


def test_two_share_it_and_neither_has_it_alone(git: Path, stage: Stage) -> None:
    other = open_stage(str(git))
    assert other is not None
    assert other.path == stage.path
    assert not stage.take()
    stage.hold()
    assert not other.take()
    other.close()
    assert (git / NAME).exists()
    assert stage.take()


def test_one_that_rests_leaves_it_to_the_other(git: Path, stage: Stage) -> None:
    other = open_stage(str(git))
    assert other is not None
    stage.rest()
    assert other.take()
    other.rest()
    stage.hold()
    assert not other.take()
    other.close()


def test_one_that_somebody_else_finished_is_not_there(git: Path, stage: Stage) -> None:
    os.rmdir(git / NAME)
    assert not stage.is_there()
    assert not stage.take()


def test_where_the_host_has_a_repository_it_is_set_aside(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    assert stage.take()
    (found,) = stage.raise_up()
    assert found.path == str(git)
    assert found.kept == str(git / f"{NAME}.stockade-1")
    assert "already" in found.why
    assert (git / f"{NAME}.stockade-1/HEAD").exists()
    assert (git / "HEAD").read_text() == "ref: refs/heads/host\n"


def test_what_the_host_has_of_the_same_name_is_not_replaced(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "config").write_text("the host's")
    assert stage.take()
    (found,) = stage.raise_up()
    assert found.kept
    assert (git / "config").read_text() == "the host's"


def test_a_repository_that_the_host_makes_at_the_last_moment_stays_the_hosts(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    assert stage.raise_up() == []
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    (found,) = stage.finish()
    assert "already" in found.why
    assert (git / "HEAD").read_text() == "ref: refs/heads/host\n"


def test_what_cannot_be_moved_leaves_nothing_that_was(git: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(git)
    assert stage.take()
    rename = os.rename
    moved: list[str] = []

    def fail(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if len(moved) == 2 and old == new:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        moved.append(old)
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", fail)
    (found,) = stage.raise_up()
    assert found.kept == f"{git}.stockade-1"
    assert not git.exists()


def test_a_flood_of_entries_is_no_repository(git: Path, stage: Stage) -> None:
    for number in range(1001):
        (git / NAME / str(number)).touch()
    assert stage.take()
    (found,) = stage.raise_up()
    assert "more entries" in found.why


def test_a_directory_that_a_command_closed_moves_all_the_same(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / NAME / "refs").chmod(0)
    assert stage.take()
    assert stage.raise_up() == []
    assert stat.S_ISDIR((git / "refs").stat().st_mode)


def run_back(found: Finding) -> None:
    """Do what a user does who pastes the line of a remedy."""
    line = report(0, found).remedy.partition("run: ")[2].partition("; beware")[0]
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    subprocess.run(["bash", "-c", line], check=True, env=environment, stdout=subprocess.DEVNULL, timeout=30)


def is_repository(git: Path) -> bool:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    told = ["git", "-C", str(git.parent), "status", "--porcelain"]
    return subprocess.run(told, check=False, env=environment, capture_output=True, timeout=30).returncode == 0


def test_the_way_back_for_one_that_met_a_repository_of_the_hosts(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    assert stage.take()
    (found,) = stage.raise_up()
    run_back(found)
    assert is_repository(git)
    assert (git / "HEAD").read_text() != "ref: refs/heads/host\n"
    assert (git.parent / ".git.host/HEAD").read_text() == "ref: refs/heads/host\n"


def test_the_way_back_for_one_whose_look_failed(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    stage.raise_up()
    (found,) = stage.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    run_back(found)
    assert is_repository(git)
    assert os.listdir(git.parent) == [".git"]


def test_the_way_back_for_one_that_moved_halfway(git: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(git)
    assert stage.take()
    rename = os.rename

    def fail(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if old == new == "refs":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", fail)
    (found,) = stage.raise_up()
    assert (Path(found.kept) / NAME / "refs").is_dir()
    run_back(found)
    assert is_repository(git)
    assert NAME not in os.listdir(git)


def test_the_way_back_for_one_with_a_pipe_for_its_head(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / NAME / "HEAD").unlink()
    os.mkfifo(git / NAME / "HEAD")
    assert stage.take()
    stage.raise_up()
    (found,) = stage.finish()
    run_back(found)
    assert is_repository(git)


def test_the_way_back_for_a_flood(git: Path, stage: Stage) -> None:
    make_repository(git)
    for number in range(1001):
        (git / NAME / str(number)).touch()
    assert stage.take()
    (found,) = stage.raise_up()
    assert not git.exists(), "a command can make another repository there"
    git.mkdir()  # it is held again
    run_back(found)
    assert is_repository(git)
    assert os.listdir(git.parent) == [".git"]


def test_the_way_back_loses_nothing_if_something_is_there(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    stage.raise_up()
    (found,) = stage.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    git.mkdir()
    (git / "HEAD").write_text("the host's")
    with pytest.raises(subprocess.CalledProcessError):
        run_back(found)
    assert (git / "HEAD").read_text() == "the host's"
    assert (Path(found.kept) / "HEAD").exists()


def test_what_was_set_aside_in_it_goes_along(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    stage.raise_up()
    os.rename(git / "config", git / "config.stockade-1")
    found = [
        Finding(str(git / "config"), str(git / "config.stockade-1"), "why"),
        Finding(str(git / "hooks"), "", "why", "it could not be"),
        Finding(str(git.parent / "sub"), str(git.parent / "sub.stockade-1"), "why"),
    ]
    ended = stage.finish(found)
    config, hooks, other = stage.follow(found, ended)
    assert (config.path, config.kept) == (str(git / "config"), f"{git}.stockade-1/config.stockade-1")
    assert hooks.path == f"{git}.stockade-1/hooks"
    assert other == found[2]
    run_back(config)
    assert (git.parent / ".git.stockade-1/config").exists()


def test_after_a_look_that_failed_all_of_it_is_set_aside(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    stage.raise_up()
    (found,) = stage.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    assert found.kept == f"{git}.stockade-1"
    assert not git.exists()


def test_a_failure_elsewhere_does_not_matter(git: Path, stage: Stage) -> None:
    make_repository(git)
    assert stage.take()
    stage.raise_up()
    assert stage.finish([Finding(str(git.parent / "sub/.git/config"), "", "why", "it could not be")]) == []
    assert (git / "HEAD").exists()


def test_no_stage_behind_a_link_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    assert open_stage(str(tmp_path / "link")) is None
    assert open_stage(str(tmp_path / "file")) is None
    assert open_stage(str(tmp_path / "missing")) is None
    (tmp_path / "real" / NAME).symlink_to("..")
    assert open_stage(str(tmp_path / "real")) is None


def test_each_is_opened_once(tmp_path: Path) -> None:
    stages = Stages()
    first = stages.prepare([str(tmp_path)])
    assert first == {str(tmp_path): str(tmp_path / NAME)}
    assert stages.prepare([str(tmp_path)]) == first
    assert len(stages.descriptors) == 1
    stages.keep(())
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_have_one_is_left_out(tmp_path: Path) -> None:
    stages = Stages()
    assert stages.prepare([str(tmp_path / "missing")]) == {}
    assert stages.descriptors == ()


def test_one_that_is_gone_is_made_again(tmp_path: Path) -> None:
    stages = Stages()
    stages.prepare([str(tmp_path)])
    (tmp_path / NAME).rmdir()
    stages.prepare([str(tmp_path)])
    assert (tmp_path / NAME).is_dir()
    stages.keep([])


def test_only_those_that_hold_something_are_raised(tmp_path: Path) -> None:
    gits = [tmp_path / "one", tmp_path / "two"]
    for git in gits:
        git.mkdir()
    stages = Stages()
    stages.prepare(map(str, gits))
    assert stages.raise_up() == ([], [])
    (gits[0] / NAME / "HEAD").write_text("ref: refs/heads/main\n")
    (gits[0] / NAME / "config").touch()
    raised, found = stages.raise_up()
    assert ([stage.git for stage in raised], found) == ([str(gits[0])], [])
    assert (gits[0] / "config").exists()
    raised[0].finish()
    stages.keep(())


def test_one_that_fails_is_told(tmp_path: Path) -> None:
    stages = Stages()
    stages.prepare([str(tmp_path)])
    (tmp_path / NAME / "HEAD").touch()
    (tmp_path / "HEAD").touch()
    raised, found = stages.raise_up()
    assert raised == []
    assert len(found) == 1
    stages.keep(())
