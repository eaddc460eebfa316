from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import InvalidTextError
from stockade.policy.places import MOST_LINKS, Disk, Step, Trail, first_missing, follow, resolve

if TYPE_CHECKING:
    from pathlib import Path

DISK = Disk()


@pytest.fixture
def top(tmp_path: Path) -> str:
    """A directory, itself without links, that holds every kind of entry."""
    top = tmp_path.resolve()
    (top / "dir" / "sub").mkdir(parents=True)
    (top / "dir" / "file").touch()
    (top / "out").symlink_to("dir/sub")
    (top / "absolute").symlink_to(top / "dir")
    (top / "dangling").symlink_to("gone/far")
    (top / "loop").symlink_to("loop")
    (top / "up").symlink_to("dir/sub/../file")
    (top / "chain").symlink_to("out")
    return str(top)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("dir/file", "dir/file", id="no-link"),
        pytest.param("dir//./file/", "dir/file", id="spelling"),
        pytest.param("gone/x", "gone/x", id="missing"),
        pytest.param("out", "dir/sub", id="relative-link"),
        pytest.param("out/x", "dir/sub/x", id="below-a-link"),
        pytest.param("absolute/file", "dir/file", id="absolute-link"),
        pytest.param("dangling", "gone/far", id="dangling-link"),
        pytest.param("dangling/x", "gone/far/x", id="below-a-dangling-link"),
        pytest.param("chain/x", "dir/sub/x", id="link-to-a-link"),
        pytest.param("out/..", "dir", id="dot-dot-after-a-link-is-the-target's-parent"),
        pytest.param("out/../file", "dir/file", id="dot-dot-then-name"),
        pytest.param("gone/../dir", "dir", id="dot-dot-after-nothing"),
        pytest.param("up", "dir/file", id="dot-dot-in-a-link"),
    ],
)
def test_a_path_leads_where_the_kernel_says(top: str, path: str, place: str) -> None:
    assert resolve(f"{top}/{path}", DISK) == f"{top}/{place}"
    assert os.path.realpath(f"{top}/{path}") == f"{top}/{place}"


def test_the_root_cannot_be_left() -> None:
    assert resolve("/../..", DISK) == "/"


def test_a_walk_remembers_every_link(top: str) -> None:
    assert follow(f"{top}/chain/x", DISK) == Trail(
        steps=(
            Step(f"{top}/chain", f"{top}/chain/x", last=False),
            Step(f"{top}/out", f"{top}/out/x", last=False),
        ),
        place=f"{top}/dir/sub/x",
    )


def test_the_last_link_is_marked(top: str) -> None:
    assert follow(f"{top}/out/", DISK).steps == (Step(f"{top}/out", f"{top}/out", last=True),)


def test_a_spelling_ends_before_dot_dot(top: str) -> None:
    assert follow(f"{top}/out/a/../b", DISK).steps == (Step(f"{top}/out", f"{top}/out/a", last=False),)


def test_a_loop_is_a_trail_that_gave_up(top: str) -> None:
    trail = follow(f"{top}/loop/x", DISK)
    assert (trail.looped, trail.place, len(trail.steps)) == (True, f"{top}/loop", MOST_LINKS + 1)


def test_resolving_a_loop_is_an_error_with_a_way_out(top: str) -> None:
    with pytest.raises(InvalidTextError, match="run in a circle") as caught:
        resolve(f"{top}/loop", DISK)
    assert "Remove the link" in caught.value.hint


@pytest.mark.parametrize(
    ("links", "looped"),
    [pytest.param(MOST_LINKS, False, id="as-many-as-the-kernel"), pytest.param(MOST_LINKS + 1, True, id="one-more")],
)
def test_links_are_followed_as_far_as_the_kernel_does(tmp_path: Path, links: int, looped: bool) -> None:  # noqa: FBT001 - a parameter
    for number in range(links):
        (tmp_path / f"l{number}").symlink_to(f"l{number + 1}")
    (tmp_path / f"l{links}").touch()
    assert follow(f"{tmp_path.resolve()}/l0", DISK).looped == looped


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        pytest.param("dir/file", None, id="there"),
        pytest.param("dir/gone", "dir/gone", id="last"),
        pytest.param("dir/gone/a/b", "dir/gone", id="the-highest"),
        pytest.param("dangling", None, id="a-link-is-there"),
    ],
)
def test_first_missing(top: str, path: str, missing: str | None) -> None:
    assert first_missing(f"{top}/{path}", DISK) == (missing and f"{top}/{missing}")


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        pytest.param("dir", (None, True, True, ("file", "sub")), id="directory"),
        pytest.param("dir/file", (None, True, False, ()), id="file"),
        pytest.param("out", ("dir/sub", True, False, ()), id="link-to-a-directory"),
        pytest.param("dangling", ("gone/far", True, False, ()), id="dangling-link"),
        pytest.param("gone", (None, False, False, ()), id="nothing"),
        pytest.param("dir/file/x", (None, False, False, ()), id="below-a-file"),
        pytest.param("x" * 300, (None, False, False, ()), id="name-too-long"),
        pytest.param("nul\0", (None, False, False, ()), id="nul"),
    ],
)
def test_what_the_disk_says(top: str, path: str, facts: tuple[object, ...]) -> None:
    whole = f"{top}/{path}"
    assert (DISK.link(whole), DISK.exists(whole), DISK.is_directory(whole), DISK.names(whole)) == facts


def test_a_path_that_no_disk_can_hold_is_our_own_error() -> None:
    with pytest.raises(InvalidTextError):
        follow("/a\0b", DISK)
