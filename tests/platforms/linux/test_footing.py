from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.footing import Footing, identity

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_not_touched_holds(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    footing = Footing([str(tmp_path / "a"), str(tmp_path / "missing")])
    assert footing.holds(set())
    assert footing.holds({str(tmp_path / "b")})
    assert footing.holds({str(tmp_path / "a"), str(tmp_path / "missing")})


def test_a_file_that_was_replaced_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    footing = Footing([str(file)])
    (tmp_path / "b").touch()
    os.rename(tmp_path / "b", file)
    assert footing.holds({str(tmp_path / "c")})
    assert not footing.holds({str(file)})
    assert not footing.holds({"/"})


def test_a_directory_above_that_was_replaced_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").touch()
    footing = Footing([str(tmp_path / "d" / "a")])
    os.rename(tmp_path / "d", tmp_path / "e")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").touch()
    assert not footing.holds({str(tmp_path / "d")})


@pytest.mark.parametrize("others", [0, 100])
def test_only_what_leads_through_a_touched_path_is_looked_at(tmp_path: Path, others: int) -> None:
    for name in ("d", "d-e"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    footing = Footing([str(tmp_path / "d/a"), str(tmp_path / "d-e/a")])
    (tmp_path / "d/a").unlink()
    more = {str(tmp_path / f"other-{number}") for number in range(others)}
    assert footing.holds({str(tmp_path / "d-e"), *more})
    assert footing.holds({str(tmp_path / "d/a/b"), *more})
    assert not footing.holds({str(tmp_path / "d"), *more})
    assert not footing.holds({str(tmp_path / "d/a"), *more})


def test_what_appeared_does_not_hold(tmp_path: Path) -> None:
    footing = Footing([str(tmp_path / "a")])
    (tmp_path / "a").touch()
    assert not footing.holds({str(tmp_path / "a")})


def test_identity(tmp_path: Path) -> None:
    assert identity(str(tmp_path / "none")) is None
    os.symlink("none", tmp_path / "link")
    assert identity(str(tmp_path / "link")) is not None


def test_a_number_that_was_given_out_again_is_another_file(tmp_path: Path) -> None:
    file, folder = tmp_path / "a", tmp_path / "d"
    file.touch()
    folder.mkdir()
    footing = Footing([str(file), str(folder)])
    file.unlink()
    file.touch()
    assert not footing.holds({str(file)})
    folder.rmdir()
    folder.mkdir()
    assert not footing.holds({str(folder)})


def test_a_name_that_was_taken_away_and_given_back_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    footing = Footing([str(file)])
    os.link(file, tmp_path / "b")
    file.unlink()
    os.rename(tmp_path / "b", file)
    assert not footing.holds({str(file)})


def test_a_directory_in_which_something_was_made_holds(tmp_path: Path) -> None:
    footing = Footing([str(tmp_path)])
    (tmp_path / "a").touch()
    assert footing.holds({"/"})
