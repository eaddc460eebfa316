from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.platforms.linux.test_staging import git, make_repository, stage

from stockade.filesystem.finding import Finding
from stockade.platforms.linux.adoption import Adoption
from stockade.platforms.linux.aside import report
from stockade.platforms.linux.staging import NAME, Stage

__all__ = ["git", "stage"]  # fixtures


def _taken(stage: Stage) -> Adoption:
    assert stage.take()
    return Adoption(stage)


def run_back(found: Finding) -> None:
    """Do what a user does who pastes the line of a remedy."""
    line = report(0, found).remedy.partition("run: ")[2].partition("; beware")[0]
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    subprocess.run(["bash", "-c", line], check=True, env=environment, stdout=subprocess.DEVNULL, timeout=30)


def is_repository(git: Path) -> bool:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    told = ["git", "-C", str(git.parent), "status", "--porcelain"]
    return subprocess.run(told, check=False, env=environment, capture_output=True, timeout=30).returncode == 0


def test_head_comes_last(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    assert adoption.raise_up() == []
    assert (git / "config").exists()
    assert not (git / "HEAD").exists()
    assert adoption.finish() == []
    assert (git / "HEAD").exists()
    assert not (git / NAME).exists()
    assert not stage.is_there()


def test_where_the_host_has_a_repository_it_is_set_aside(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    adoption = _taken(stage)
    (found,) = adoption.raise_up()
    assert found.path == str(git)
    assert found.kept == str(git / f"{NAME}.stockade-1")
    assert "already" in found.why
    assert (git / f"{NAME}.stockade-1/HEAD").exists()
    assert (git / "HEAD").read_text() == "ref: refs/heads/host\n"


def test_what_the_host_has_of_the_same_name_is_not_replaced(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "config").write_text("the host's")
    adoption = _taken(stage)
    (found,) = adoption.raise_up()
    assert found.kept
    assert (git / "config").read_text() == "the host's"


def test_a_repository_that_the_host_makes_at_the_last_moment_stays_the_hosts(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    assert adoption.raise_up() == []
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    (found,) = adoption.finish()
    assert "already" in found.why
    assert (git / "HEAD").read_text() == "ref: refs/heads/host\n"


def test_what_cannot_be_moved_leaves_nothing_that_was(git: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(git)
    adoption = _taken(stage)
    rename = os.rename
    moved: list[str] = []

    def fail(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if len(moved) == 2 and old == new:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        moved.append(old)
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", fail)
    (found,) = adoption.raise_up()
    assert found.kept == f"{git}.stockade-1"
    assert not git.exists()


def test_a_flood_of_entries_is_no_repository(git: Path, stage: Stage) -> None:
    for number in range(1001):
        (git / NAME / str(number)).touch()
    adoption = _taken(stage)
    (found,) = adoption.raise_up()
    assert "more entries" in found.why


def test_a_directory_that_a_command_closed_moves_all_the_same(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / NAME / "refs").chmod(0)
    adoption = _taken(stage)
    assert adoption.raise_up() == []
    assert stat.S_ISDIR((git / "refs").stat().st_mode)


def test_the_way_back_for_one_that_met_a_repository_of_the_hosts(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    adoption = _taken(stage)
    (found,) = adoption.raise_up()
    run_back(found)
    assert is_repository(git)
    assert (git / "HEAD").read_text() != "ref: refs/heads/host\n"
    assert (git.parent / ".git.host/HEAD").read_text() == "ref: refs/heads/host\n"


def test_the_way_back_for_one_whose_look_failed(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    adoption.raise_up()
    (found,) = adoption.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    run_back(found)
    assert is_repository(git)
    assert os.listdir(git.parent) == [".git"]


def test_the_way_back_for_one_that_moved_halfway(git: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(git)
    adoption = _taken(stage)
    rename = os.rename

    def fail(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if old == new == "refs":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", fail)
    (found,) = adoption.raise_up()
    assert (Path(found.kept) / NAME / "refs").is_dir()
    run_back(found)
    assert is_repository(git)
    assert NAME not in os.listdir(git)


def test_the_way_back_for_one_with_a_pipe_for_its_head(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / NAME / "HEAD").unlink()
    os.mkfifo(git / NAME / "HEAD")
    adoption = _taken(stage)
    adoption.raise_up()
    (found,) = adoption.finish()
    run_back(found)
    assert is_repository(git)


def test_the_way_back_for_one_without_a_head(git: Path, stage: Stage) -> None:
    make_repository(git)
    (git / NAME / "HEAD").unlink()
    adoption = _taken(stage)
    adoption.raise_up()
    (found,) = adoption.finish()
    assert not git.exists(), "a command can make another repository there"
    run_back(found)
    assert is_repository(git)


def test_the_way_back_for_a_flood(git: Path, stage: Stage) -> None:
    make_repository(git)
    for number in range(1001):
        (git / NAME / str(number)).touch()
    adoption = _taken(stage)
    (found,) = adoption.raise_up()
    assert not git.exists(), "a command can make another repository there"
    git.mkdir()  # it is held again
    run_back(found)
    assert is_repository(git)
    assert os.listdir(git.parent) == [".git"]


def test_the_way_back_loses_nothing_if_something_is_there(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    adoption.raise_up()
    (found,) = adoption.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    git.mkdir()
    (git / "HEAD").write_text("the host's")
    with pytest.raises(subprocess.CalledProcessError):
        run_back(found)
    assert (git / "HEAD").read_text() == "the host's"
    assert (Path(found.kept) / "HEAD").exists()


def test_what_was_set_aside_in_it_goes_along(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    adoption.raise_up()
    os.rename(git / "config", git / "config.stockade-1")
    found = [
        Finding(str(git / "config"), str(git / "config.stockade-1"), "why"),
        Finding(str(git / "hooks"), "", "why", "it could not be"),
        Finding(str(git.parent / "sub"), str(git.parent / "sub.stockade-1"), "why"),
    ]
    ended = adoption.finish(found)
    config, hooks, other = adoption.follow(found, ended)
    assert (config.path, config.kept) == (str(git / "config"), f"{git}.stockade-1/config.stockade-1")
    assert hooks.path == f"{git}.stockade-1/hooks"
    assert other == found[2]
    run_back(config)
    assert (git.parent / ".git.stockade-1/config").exists()


def test_after_a_look_that_failed_all_of_it_is_set_aside(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    adoption.raise_up()
    (found,) = adoption.finish([Finding(str(git / "config"), "", "why", "it could not be")])
    assert found.kept == f"{git}.stockade-1"
    assert not git.exists()


def test_a_failure_elsewhere_does_not_matter(git: Path, stage: Stage) -> None:
    make_repository(git)
    adoption = _taken(stage)
    adoption.raise_up()
    assert adoption.finish([Finding(str(git.parent / "sub/.git/config"), "", "why", "it could not be")]) == []
    assert (git / "HEAD").exists()
