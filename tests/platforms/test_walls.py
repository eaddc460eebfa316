from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import InvalidTextError, UnavailableError
from stockade.platforms import walls as platform_walls
from stockade.platforms.walls import KEEPER, make_walls, require_outside, walls_of

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


LIBRARYS = b"/usr/bin/python3\0-c\0import os, sys\nfrom stockade.platforms.linux.keeper import main\nmain()\n\0"


@pytest.mark.parametrize("words", [KEEPER + b"\0" * 9, KEEPER[:9], LIBRARYS])
@pytest.mark.parametrize("confined", [True, False])
def test_inside_is_who_has_a_keeper_for_process_1_and_is_confined(
    monkeypatch: pytest.MonkeyPatch, words: bytes, *, confined: bool
) -> None:
    monkeypatch.setattr(os, "read", lambda *_: words)
    monkeypatch.setattr(platform_walls, "is_confined", lambda: confined)
    if not confined:
        require_outside()
        return
    with pytest.raises(UnavailableError, match="already inside") as caught:
        require_outside()
    assert "without stockade" in caught.value.hint


@pytest.mark.parametrize("words", [b"/sbin/init\0splash\0", b"", b"keep\0", b"keeper of a shop\0"])
def test_nobody_else_is_inside(monkeypatch: pytest.MonkeyPatch, words: bytes) -> None:
    monkeypatch.setattr(os, "read", lambda *_: words)
    monkeypatch.setattr(platform_walls, "is_confined", lambda: True)
    require_outside()
