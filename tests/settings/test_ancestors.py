from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.settings.ancestors import MOST_LINKS, ancestors, holds, link_places, tidy, upwards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_upwards_ends_with_the_root_of_the_disk() -> None:
    assert list(upwards("/a/b")) == ["/a/b", "/a", "/"]
    assert list(upwards("/")) == ["/"]


@pytest.mark.parametrize(
    ("cwd", "home", "expected"),
    [
        pytest.param("/nowhere/h/p", "/nowhere/h", ["/nowhere/h/p", "/nowhere", "/"], id="below home"),
        pytest.param("/nowhere/h", "/nowhere/h", ["/nowhere", "/"], id="in home"),
        pytest.param("/nowhere/p", "/nowhere/h", ["/nowhere/p", "/nowhere", "/"], id="outside"),
        pytest.param("/nowhere/p", "/", ["/nowhere/p", "/nowhere"], id="home is the root of the disk"),
    ],
)
def test_home_is_passed_over_and_hides_nothing(cwd: str, home: str, expected: list[str]) -> None:
    assert list(ancestors(cwd, "", home)) == expected


def test_a_home_that_is_a_link_is_passed_over_too(root: Path) -> None:
    (root / "home/p").mkdir(parents=True)
    (root / "link").symlink_to("home")
    found = list(ancestors(str(root / "home/p"), "", str(root / "link")))
    assert found[:2] == [str(root / "home/p"), str(root)]


def test_each_link_of_a_chain_counts_with_its_own_directory(root: Path) -> None:
    for folder in ("short", "project", "far", "elsewhere/deep"):
        (root / folder).mkdir(parents=True)
    (root / "short/s").symlink_to(root / "project/sub")
    (root / "project/sub").symlink_to("../far/on")
    (root / "far/on").symlink_to("./../elsewhere")
    name = f"{root}/short/s/deep"
    assert list(link_places(name)) == [f"{root}/short", f"{root}/project", f"{root}/far"]
    found = list(ancestors(str(root / "elsewhere/deep"), name, "/nowhere"))
    assert found[:3] == [f"{root}/elsewhere/deep", f"{root}/elsewhere", str(root)]
    assert found[-3:] == [f"{root}/short", f"{root}/project", f"{root}/far"]
    assert len(found) == len(set(found))


def test_a_name_without_links_has_none(root: Path) -> None:
    assert list(link_places(str(root / "nothing/there"))) == []


def test_links_without_end_end(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    assert len(list(link_places(str(root / "loop")))) == MOST_LINKS


@pytest.mark.parametrize("name", ["/h/u", "/h/u/", "//h/u", "///h//u", "/h/./u/.", "/h/v/../u"])
def test_a_directory_has_one_spelling(name: str) -> None:
    assert tidy(name) == "/h/u"


@pytest.mark.parametrize("name", ["/", "//", "/.", "/.."])
def test_so_has_the_root_of_the_disk(name: str) -> None:
    assert tidy(name) == "/"


def test_dots_go_where_the_links_before_them_lead(root: Path) -> None:
    (root / "real/deep").mkdir(parents=True)
    (root / "link").symlink_to("real/deep")
    assert tidy(f"{root}/link/..") == str(root / "real") == os.path.realpath(f"{root}/link/..")
    assert tidy(f"{root}/link/") == str(root / "link")


def test_a_directory_holds_a_home_whatever_both_are_called(tmp_path: Path) -> None:
    home = tmp_path / "users" / "ada"
    home.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    for place in (home, home.parent, tmp_path, tmp_path.anchor, tmp_path / "link"):
        assert holds(str(place), str(home))
        assert holds(str(place), str(tmp_path / "link"))
    (home / "project").mkdir()
    for place in (home / "project", tmp_path / "users" / "ad", tmp_path / "none"):
        assert not holds(str(place), str(home))
    assert holds("/none", "/none/home")
