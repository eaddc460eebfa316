from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from tests.platforms.linux.test_staging import git, make_repository, stage

from stockade.filesystem.finding import Finding
from stockade.platforms.linux.adoption import Adoption
from stockade.platforms.linux.recovery import recover, take, words
from stockade.platforms.linux.staging import NAME, Stage, open_stage

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["git", "stage"]  # fixtures


@pytest.fixture
def journals(tmp_path: Path) -> str:
    (tmp_path / "journals").mkdir()
    return str(tmp_path / "journals")


@pytest.mark.parametrize("steps", range(9))
def test_a_death_after_any_step_loses_nothing(
    git: Path, journals: str, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    stage = open_stage(str(git))
    assert stage is not None
    make_repository(git)
    expected = sorted(os.listdir(git / NAME))
    rename, left = os.rename, [steps]

    def dying(*arguments: object, **options: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        rename(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", dying)
    try:
        stage.take()
        adoption = Adoption(stage)
        adoption.raise_up()
        adoption.finish()
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    os.close(stage.fileno())  # as the kernel closes what a dead process had

    recover(str(git), journals)

    assert sorted(os.listdir(git)) == expected
    told = take([str(git.parent)], journals)
    assert len(told) == (steps < len(expected))
    assert all("is the repository of that directory now" in note for note in told)


def test_what_is_recovered_is_looked_at(git: Path, journals: str) -> None:
    stage = open_stage(str(git))
    assert stage is not None
    make_repository(git)
    (git / NAME / "config").write_text("[core]\n\tfsmonitor = evil\n")
    (git / NAME / "hooks/post-commit").write_text("evil")
    os.close(stage.fileno())
    recover(str(git), journals)
    assert (git / "HEAD").exists()
    assert not (git / "config").exists()
    assert not (git / "hooks/post-commit").exists()
    assert (git / "config.stockade-1").exists()
    (told,) = take([str(git.parent)], journals)
    assert str(git.parent) in told
    assert '/config" (set aside as "config.stockade-1"' in told
    assert "post-commit" in told


def test_what_somebody_uses_is_not_recovered(git: Path, stage: Stage, journals: str) -> None:
    make_repository(git)
    recover(str(git), journals)
    assert not (git / "HEAD").exists()
    assert stage.is_there()


def test_nothing_to_recover(git: Path, journals: str) -> None:
    recover(str(git), journals)
    recover(str(git / "missing"), journals)
    assert list(git.iterdir()) == []
    assert take([str(git.parent), str(git / "missing")], journals) == ()


def test_it_is_told_once_and_only_there(git: Path, journals: str) -> None:
    left = open_stage(str(git))
    assert left is not None
    make_repository(git)
    os.close(left.fileno())
    recover(str(git), journals)
    assert take([str(git)], journals) == ()
    (told,) = take([str(git.parent)], journals)
    assert "a sandbox that was killed" in told
    assert "\n" not in told
    assert take([str(git.parent)], journals) == ()


def test_what_was_set_aside_is_told_with_the_way_back(git: Path, journals: str) -> None:
    left = open_stage(str(git))
    assert left is not None
    make_repository(git)
    (git / "HEAD").write_text("ref: refs/heads/host\n")
    os.close(left.fileno())
    recover(str(git), journals)
    (told,) = take([str(git.parent)], journals)
    assert f'set aside as "{git}/{NAME}.stockade-1"' in told
    assert "run: mv -nT -- " in told
    assert "beware" in told


def test_what_could_not_be_set_aside_is_told() -> None:
    told = words("/p", (), [Finding("/p/.git", "", "the host has one", "Read-only file system")])
    assert "could not be set aside (Read-only file system)" in told


def test_of_many_parts_some_are_named() -> None:
    found = [Finding(f"/p/.git/{one}", f"/p/.git/{one}.stockade-1", "it is bad") for one in range(8)]
    assert "and 3 more" in words("/p", found, ())


def test_words_that_cannot_be_kept_are_lost_and_nothing_else(git: Path, tmp_path: Path) -> None:
    left = open_stage(str(git))
    assert left is not None
    make_repository(git)
    os.close(left.fileno())
    recover(str(git), str(tmp_path / "missing"))
    assert (git / "HEAD").exists()


def test_words_that_nobody_took_for_long_go(git: Path, journals: str) -> None:
    for name, age in (("recovered-1-2", 100), ("recovered-1-3", 1), ("10-2", 100)):
        path = f"{journals}/{name}"
        with open(path, "w", encoding="ascii"):
            pass
        os.utime(path, (time.time() - age * 86400,) * 2)
    left = open_stage(str(git))
    assert left is not None
    make_repository(git)
    os.close(left.fileno())
    recover(str(git), journals)
    assert len(take([str(git.parent)], journals)) == 1
    assert sorted(os.listdir(journals)) == ["10-2", "recovered-1-3"]
