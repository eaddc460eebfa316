from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem import hard_link
from stockade.filesystem.hard_link import Twins, leads_out, twins
from stockade.filesystem.plan import Mount, Operation, Plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for directory in ("w/a", "w/.git/hooks", "secret/in"):
        (tmp_path / directory).mkdir(parents=True)
    for file in ("w/.bashrc", "w/.git/hooks/pre", "secret/in/key", "w/plain", "w/a/inner"):
        (tmp_path / file).write_text(file)
    return tmp_path


def _plan(top: Path) -> Plan:
    return Plan(
        mounts=(
            Mount(Operation.HIDDEN, f"{top}/secret", ""),
            Mount(Operation.WRITABLE, f"{top}/w", ""),
            Mount(Operation.READ_ONLY, f"{top}/w/.bashrc", ""),
            Mount(Operation.READ_ONLY, f"{top}/w/.git/hooks", ""),
        )
    )


def test_files_with_one_name_have_no_twins(top: Path) -> None:
    assert twins(_plan(top)) == Twins()


def test_twins_are_found(top: Path) -> None:
    (top / "w/a/key").hardlink_to(top / "secret/in/key")
    (top / "w/a/rc").hardlink_to(top / "w/.bashrc")
    (top / "w/hook").hardlink_to(top / "w/.git/hooks/pre")
    (top / "w/more").hardlink_to(top / "w/plain")
    found = twins(_plan(top))
    assert found.notes == ()
    assert set(found.pairs) == {
        (f"{top}/w/a/key", f"{top}/secret/in/key"),
        (f"{top}/w/a/rc", f"{top}/w/.bashrc"),
        (f"{top}/w/hook", f"{top}/w/.git/hooks/pre"),
    }


@pytest.mark.parametrize(
    ("bound", "note"),
    [
        pytest.param(
            "MOST_CLOSED", 'hard links of closed files were looked for in a part of "{}/w/.git/hooks" only', id="files"
        ),
        pytest.param(
            "MOST_OF_ALL", 'hard links of closed files were looked for in a part of "{}/w/.git/hooks" only', id="all"
        ),
        pytest.param(
            "MOST_WALKED", "hard links of closed files were looked for among the first 1 names only", id="names"
        ),
    ],
)
def test_what_is_not_searched_is_noted(top: Path, monkeypatch: pytest.MonkeyPatch, bound: str, note: str) -> None:
    (top / "w/a/key").hardlink_to(top / "secret/in/key")
    (top / "w/.git/hooks/more").touch()
    monkeypatch.setattr(hard_link, bound, 1)
    assert twins(_plan(top)).notes == (note.format(top),)


def test_what_fills_one_closed_directory_hides_no_other_file(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_link, "MOST_CLOSED", 3)
    monkeypatch.setattr(hard_link, "MOST_OF_ALL", 3)
    for number in range(9):
        (top / f"w/.git/hooks/{number}.sample").touch()
    (top / "w/a/key").hardlink_to(top / "secret/in/key")
    (top / "w/a/rc").hardlink_to(top / "w/.bashrc")
    pairs = {(f"{top}/w/a/key", f"{top}/secret/in/key"), (f"{top}/w/a/rc", f"{top}/w/.bashrc")}
    assert set(twins(_plan(top)).pairs) == pairs


def test_what_leads_out_of_a_tree(top: Path) -> None:
    (top / "w/a/key").hardlink_to(top / "secret/in/key")
    (top / "w/more").hardlink_to(top / "w/plain")
    assert leads_out(f"{top}/w") == (f"{top}/w/a/key",)
    assert leads_out(f"{top}/w", 0) == ()
    assert leads_out(f"{top}/none") == ()
