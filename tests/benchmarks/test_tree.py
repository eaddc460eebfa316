from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tree import attack, plant, verdict

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_protected(tmp_path: Path) -> None:
    tree = plant(tmp_path / "tree", 2)
    names = [place.relative_to(tree.directory).as_posix() for place in tree.protected()]
    assert names == [
        "project-001/.git/hooks",
        "project-001/.git/config",
        "project-002/.git/hooks",
        "project-002/.git/config",
    ]
    assert all(place.exists() for place in tree.protected())


def test_the_probe_notices_that_nothing_protects_and_mends_it(tmp_path: Path) -> None:
    tree = plant(tmp_path / "tree", 3)
    subprocess.run(["bash", "-c", attack(tree)], check=True)
    assert verdict(tree) == "no"
    assert not (tree.repositories[-1] / ".git" / "hooks" / "post-commit").exists()
    assert verdict(tree) == "yes, but the tree was not writable"


@pytest.mark.parametrize("repository", [0, -1])
@pytest.mark.parametrize("place", ["config", "hooks/post-commit"])
def test_the_probe_notices_each_place(tmp_path: Path, repository: int, place: str) -> None:
    tree = plant(tmp_path / "tree", 3)
    (tree.directory / "proof").write_text("x")
    (tree.repositories[repository] / ".git" / place).write_text("x")
    assert verdict(tree) == "no"


def test_the_probe_notices_that_all_was_protected(tmp_path: Path) -> None:
    tree = plant(tmp_path / "tree", 3)
    (tree.directory / "proof").write_text("x")
    assert verdict(tree) == "yes"
