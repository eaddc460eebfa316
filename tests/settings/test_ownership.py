from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.settings.content import Content
from stockade.settings.ownership import managed_warnings

if TYPE_CHECKING:
    from pathlib import Path

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files that are root's")


def _is_warned(place: Path, owner: int, mode: int) -> bool:
    warnings = managed_warnings(str(place / "m.json"), Content(b"", owner, mode))
    assert all(warning.startswith(f"{place}/m.json is managed, but users besides root") for warning in warnings)
    return bool(warnings)


@ROOT_ONLY
@pytest.mark.parametrize(
    ("owner", "mode", "place_mode", "expected"),
    [
        pytest.param(0, 0o644, 0o755, False, id="root's alone"),
        pytest.param(65534, 0o644, 0o755, False, id="root seen from a user namespace"),
        pytest.param(1000, 0o644, 0o755, True, id="a user's file"),
        pytest.param(0, 0o664, 0o755, True, id="group-writable"),
        pytest.param(0, 0o646, 0o755, True, id="world-writable"),
        pytest.param(0, 0o644, 0o777, True, id="in a directory that all can write"),
    ],
)
def test_who_else_could_change_it(tmp_path: Path, owner: int, mode: int, place_mode: int, *, expected: bool) -> None:
    tmp_path.chmod(place_mode)
    assert _is_warned(tmp_path, owner, mode) is expected


def test_a_user_who_can_write_it_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "m.json").touch()
    assert _is_warned(tmp_path, 0, 0o644)


def test_a_directory_that_is_gone_is_no_concern(tmp_path: Path) -> None:
    assert not _is_warned(tmp_path / "gone", 0, 0o644)
