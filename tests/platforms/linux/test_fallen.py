from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import fallen, tree

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_that_is_replaced_again_while_it_is_covered_was_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename leaves no moment without the name; only what was found before it is gone."""
    place = tree.Place(tree.READ_ONLY, os.fsencode(tmp_path / "config"), b"", -1)
    (tmp_path / "config").touch()
    place.kind = stat.S_IFREG
    attempts: list[bytes] = []

    def lay(each: tree.Place) -> None:
        attempts.append(each.target)
        if len(attempts) == 1:
            raise FileNotFoundError(errno.ENOENT, "replaced meanwhile", each.target)

    monkeypatch.setattr(tree, "lay", lay)
    relaid = fallen.lay_again([place])
    assert (len(attempts), relaid.laid, relaid.missing, relaid.hopeless) == (2, [place.target], [], [])


def test_what_is_gone_was_missing(tmp_path: Path) -> None:
    place = tree.Place(tree.READ_ONLY, os.fsencode(tmp_path / "config"), b"", -1)
    relaid = fallen.lay_again([place])
    assert (relaid.laid, relaid.missing, relaid.hopeless) == ([], [place.target], [])


def test_a_link_in_the_place_of_a_file_cannot_be_covered(tmp_path: Path) -> None:
    (tmp_path / "config").symlink_to("elsewhere")
    place = tree.Place(tree.READ_ONLY, os.fsencode(tmp_path / "config"), b"", -1)
    assert fallen.lay_again([place]).hopeless == [place.target]


@pytest.mark.parametrize("how", ["open", "link", "neither"])
def test_a_file_that_somebody_can_write_in_spite_of_a_cover_is_told(tmp_path: Path, how: str) -> None:
    path = tmp_path / "config"
    path.write_text("x")
    if how == "link":
        (tmp_path / "twin").hardlink_to(path)
    held = path.open("r+") if how == "open" else None
    assert fallen.is_within_reach(os.fsencode(path)) is (how != "neither")
    if held is not None:
        held.close()
