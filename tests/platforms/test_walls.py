from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import InvalidTextError, UnavailableError
from stockade.platforms.walls import make_walls, walls_of

if TYPE_CHECKING:
    from pathlib import Path


def test_linux_has_walls(tmp_path: Path) -> None:
    walls = make_walls(str(tmp_path / "tmp"))
    assert type(walls).__name__ == "LinuxWalls"
    walls.close()
    walls.close()


def test_macos_has_walls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = os.uname_result(("Darwin", "n", "r", "v", "m"))
    monkeypatch.setattr(os, "uname", lambda: system)
    walls = make_walls(str(tmp_path / "tmp"))
    assert type(walls).__name__ == "MacWalls"
    walls.close()
    walls.close()


def test_other_systems_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = os.uname_result(("Plan9", "n", "r", "v", "m"))
    monkeypatch.setattr(os, "uname", lambda: system)
    with pytest.raises(UnavailableError, match="Plan9"):
        make_walls(str(tmp_path))


def test_there_are_three_ways_to_observe() -> None:
    with pytest.raises(InvalidTextError, match="'always'"):
        walls_of("always")  # type: ignore[arg-type] # that is the point
