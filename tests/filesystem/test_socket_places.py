from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.filesystem.socket_places import SocketPlaces, denied_places
from stockade.filesystem.terrain import Land
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from pathlib import Path


def _places(root: Path, *texts: str) -> SocketPlaces:
    rules = tuple(
        Sourced(PathPattern.parse(text, cwd=str(root), home=str(root)), Origin(Layer.USER, "s.json")) for text in texts
    )
    return denied_places(Sockets((), True, False, None, None, rules), Land())


def test_a_rule_is_about_its_place_and_about_links_on_the_way(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "way").symlink_to("real")
    found = _places(root, "way/s", "way/*.sock", "none")
    assert [pattern.path for pattern in found.patterns] == [
        f"{root}/way/s",
        f"{root}/real/s",
        f"{root}/way/*.sock",
        f"{root}/real/*.sock",
        f"{root}/none",
    ]
    assert found.notes == ()


def test_what_a_pattern_finds_behind_a_link_is_one_more_place(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for folder in ("real", "run"):
        (root / folder).mkdir()
    (root / "real" / "engine").touch()
    (root / "run" / "a.sock").symlink_to("../real/engine")
    (root / "run" / "plain.sock").touch()
    assert [pattern.path for pattern in _places(root, "run/*.sock").patterns] == [
        f"{root}/run/*.sock",
        f"{root}/real/engine",
    ]


def test_a_pattern_that_cannot_be_searched_still_counts_and_a_note_says_so(tmp_path: Path) -> None:
    found = _places(tmp_path, "/**/engine.sock")
    assert [pattern.path for pattern in found.patterns] == ["/**/engine.sock"]
    (note,) = found.notes
    assert note.startswith('of denied sockets, "/**/engine.sock" is not followed behind links: ')
