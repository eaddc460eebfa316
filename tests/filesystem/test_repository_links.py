"""``stockade.filesystem.repository_links``: links and pipes where git writes, on a real disk."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.handle import Handle
from stockade.filesystem.repository_links import look_at_objects, look_at_written
from stockade.filesystem.written import has_links

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "x")], check=True)
    return tmp_path / "x/.git"


def looked(store: Path, since: int = 0) -> dict[str, str]:
    """Return what counts, each with the end of its new name."""
    found: dict[str, str] = {}

    def offend(handle: Handle, name: str, _why: str, since: int, end: str) -> bool:
        if os.lstat(f"{handle.path}/{name}").st_ctime_ns >= since:
            found[f"{handle.path}/{name}".removeprefix(f"{store}/")] = end
        return True

    handle = Handle.reach(str(store))
    assert handle is not None
    with handle:
        look_at_written(handle, offend, since)
        objects = handle.below("objects")
        assert objects is not None
        with objects:
            look_at_objects(objects, offend, "", since)
    return found


def test_a_repository_of_gits_own_making_has_none(store: Path) -> None:
    assert not has_links(str(store), {})
    assert looked(store) == {}


def test_a_head_may_be_a_link_to_a_ref(store: Path) -> None:
    (store / "HEAD").unlink()
    (store / "HEAD").symlink_to("refs/heads/main")
    assert looked(store) == {}
    (store / "HEAD").unlink()
    (store / "HEAD").symlink_to("refs/../../elsewhere")
    assert looked(store) == {"HEAD": ""}


def test_links_and_pipes_count_wherever_git_writes(store: Path) -> None:
    (store / "logs/refs").mkdir(parents=True)
    (store / "logs/refs/a").symlink_to("/x")
    (store / "refs/heads/b.stockade-1").symlink_to("/x")
    (store / "objects/pack/c").symlink_to("/x")
    (store / "COMMIT_EDITMSG").symlink_to("/x")
    os.mkfifo(store / "packed-refs")
    assert has_links(str(store), {})
    assert looked(store) == {
        "logs/refs/a": "~",
        "refs/heads/b.stockade-1": "~",
        "objects/pack/c": "",
        "COMMIT_EDITMSG": "",
        "packed-refs": "",
    }


def test_what_was_set_aside_counts_no_more(store: Path) -> None:
    (store / "refs/heads/b.stockade-1~").symlink_to("/x")
    (store / "FETCH_HEAD.stockade-1").symlink_to("/x")
    assert looked(store) == {}


def test_what_is_older_counts_only_if_its_directory_may_have_been_moved(store: Path) -> None:
    (store / "other").mkdir()
    (store / "other/HEAD").symlink_to("/x")
    (store / "MERGE_MSG").symlink_to("/x")
    time.sleep(0.05)
    since = time.time_ns() - 20_000_000
    assert looked(store, since) == {}
    (store / "other").rename(store / "logs")
    assert looked(store, since) == {"logs/HEAD": "~"}


def test_of_a_directory_that_is_a_repository_itself_only_gits_own_names_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    (tmp_path / "bare/README").mkdir()
    (tmp_path / "bare/build").symlink_to("/x")
    (tmp_path / "bare/FETCH_HEAD").symlink_to("/x")
    assert looked(tmp_path / "bare") == {"FETCH_HEAD": ""}


def test_what_lies_too_deep_does_not_stay(store: Path) -> None:
    (store / "logs" / "/".join("d" * 40)).mkdir(parents=True)
    (deep,) = looked(store)
    assert deep.startswith("logs/d/d/")
