from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.runtime_directory import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = f"stockade-{os.geteuid()}"


def give_away(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, 12345, 12345)


def make(path: Path, mode: int) -> None:
    path.mkdir()
    path.chmod(mode)


@pytest.mark.parametrize("umask", [0o022, 0o277, 0o000])
def test_it_is_made_private_and_found_again(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        path = runtime_directory([str(tmp_path)])
    finally:
        os.umask(old)
    assert path == f"{tmp_path}/{NAME}"
    assert os.lstat(path).st_mode & 0o777 == 0o700
    assert runtime_directory([str(tmp_path)]) == path


@pytest.mark.parametrize(
    "squat",
    [
        pytest.param(lambda path: path.symlink_to(path.parent), id="a link to somewhere"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="a link to nowhere"),
        pytest.param(lambda path: path.write_bytes(b""), id="a file"),
        pytest.param(lambda path: make(path, 0o770), id="others may write"),
        pytest.param(lambda path: make(path, 0o701), id="others may pass"),
        pytest.param(
            give_away,
            id="another user's",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away"),
        ),
    ],
)
def test_a_name_that_was_taken_is_passed_over_and_stays_so(tmp_path: Path, squat: Callable[[Path], object]) -> None:
    squat(tmp_path / NAME)
    path = runtime_directory([str(tmp_path)])
    assert path == f"{tmp_path}/{NAME}-1"
    assert runtime_directory([str(tmp_path)]) == path


def test_one_that_is_ours_wins_over_an_earlier_name_that_has_become_free(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    places = [f"{tmp_path}/first", f"{tmp_path}/second"]
    path = runtime_directory(places)
    assert path == f"{tmp_path}/second/{NAME}"
    (tmp_path / "first").mkdir()
    assert runtime_directory(places) == path


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_parent_in_which_others_can_rename_is_not_used(tmp_path: Path, mode: int) -> None:
    make(tmp_path / "open", mode)
    make(tmp_path / "sticky", mode | 0o1000)
    assert runtime_directory([f"{tmp_path}/open", f"{tmp_path}/sticky"]) == f"{tmp_path}/sticky/{NAME}"


def test_with_no_place_at_all_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        runtime_directory([f"{tmp_path}/none"])
    assert caught.value.message == f"no private directory can be had in {tmp_path}/none"
    assert caught.value.hint == f"Make {tmp_path}/none/{NAME} yourself, with mode 0700."
