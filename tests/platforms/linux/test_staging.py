from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.staging import NAME, Stage, Stages, open_stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_the_last_who_shows_it_removes_it_although_it_rests(git: Path, stage: Stage) -> None:
    others = [open_stage(str(git)), open_stage(str(git))]
    stage.rest()
    for other in others:
        assert other is not None
        other.close()
        assert stage.is_there()
    stage.close()
    assert list(git.iterdir()) == []


def test_of_many_who_close_at_once_one_removes_it(git: Path) -> None:
    for _ in range(50):
        stages = [stage for stage in (open_stage(str(git)) for _ in range(4)) if stage is not None]
        assert len(stages) == 4
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(Stage.close, stages))
        assert list(git.iterdir()) == []


def test_they_know_when_one_of_them_is_gone(git: Path) -> None:
    stages = Stages()
    assert stages.are_there()
    stages.prepare([str(git)])
    assert stages.are_there()
    (git / NAME).rename(git / "elsewhere")
    assert not stages.are_there()
    assert stages.prepare([str(git)]) == {str(git): str(git / NAME)}
    assert stages.are_there()
    stages.keep(())


def test_one_that_somebody_else_finished_is_not_there(git: Path, stage: Stage) -> None:
    os.rmdir(git / NAME)
    assert not stage.is_there()
    assert not stage.take()


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
    assert ([adoption.stage.git for adoption in raised], found) == ([str(gits[0])], [])
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
