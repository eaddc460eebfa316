from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.inotify import Inotify
from stockade.filesystem.memory import Memory
from stockade.filesystem.written import Written, directories_of, has_links

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def holder(tmp_path: Path) -> Path:
    made = tmp_path / "x"
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    (made / ".git/logs/refs/heads").mkdir(parents=True)
    return made


@pytest.fixture
def store(holder: Path) -> Path:
    return holder / ".git"


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.close()


def test_only_what_changed_is_searched_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "logs/refs/heads/deep").mkdir(parents=True)
    known: dict[str, int] = {}
    monkeypatch.setattr("stockade.filesystem.written.TICK", 0)
    assert not has_links(str(store), known)
    assert f"{store}/logs/refs/heads/deep" in known
    listed: list[str] = []
    scandir = os.scandir

    def noting(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noting)
    assert not has_links(str(store), known)
    assert listed == []
    (store / "logs/refs/heads/deep/main").symlink_to("/etc/passwd")
    assert has_links(str(store), known)
    assert listed == [f"{store}/logs/refs/heads/deep"]


def test_the_directories_are_those_in_which_git_writes(store: Path) -> None:
    (store / "refs/remotes/origin/team").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", str(store / "modules/libs/one")], check=True)
    (store / "modules/libs/one/logs").mkdir()
    (store / "refs/link").symlink_to("/etc")
    found = {path.removeprefix(f"{store}").lstrip("/") for path in directories_of(str(store))}
    assert {"", "refs", "refs/heads", "refs/remotes/origin/team", "logs/refs/heads", "info"} <= found
    assert {"modules/libs/one", "modules/libs/one/logs", "modules/libs/one/refs/heads"} <= found
    assert {"objects", "objects/info", "objects/pack"} <= found
    assert not {"hooks", "modules/libs/one/objects", "modules/libs/one/hooks", "refs/link"} & found


def test_a_directory_with_none_in_it_is_not_listed_where_links_are_counted(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    scandir = os.scandir

    def noting(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noting)
    found = directories_of(str(store))
    assert f"{store}/refs/heads" in found
    if store.stat().st_nlink > 2:  # on some disks every directory has one
        assert f"{store}/refs/heads" not in listed
    (few, count), listed[:] = (len(listed), os.stat), []

    def uncounted(path: str, *, follow_symlinks: bool) -> os.stat_result:
        status = count(path, follow_symlinks=follow_symlinks)
        return os.stat_result((*status[:3], 2, *status[4:10]), {"st_ctime_ns": status.st_ctime_ns})

    monkeypatch.setattr(os, "stat", uncounted)
    assert directories_of(str(store)).keys() == found.keys()
    assert len(listed) == len(found) - len(("objects", "objects/info", "objects/pack")) >= few


def test_what_cannot_be_listed_is_searched_at_every_look(store: Path) -> None:
    assert directories_of(f"{store}/HEAD") == {}
    assert directories_of(f"{store}/missing") == {}
    assert has_links(f"{store}/HEAD", {})


@pytest.mark.parametrize("where", ["logs/refs/heads", "refs", ".", "objects", "objects/info", "objects/pack"])
def test_what_was_noted_is_searched_only_where_it_changed(holder: Path, where: str) -> None:
    time.sleep(0.03)
    written = Written()
    written.know([str(holder)], None)
    assert written.search([str(holder)], (), None) == []
    (holder / ".git" / where / "new").symlink_to("/etc/passwd")
    assert written.search([str(holder)], (), None) == [str(holder)]


def test_a_link_that_was_there_before_is_no_news(holder: Path) -> None:
    (holder / ".git/logs/refs/heads/main").symlink_to("/etc/passwd")
    time.sleep(0.03)
    written = Written()
    written.know([str(holder)], None)
    assert written.search([str(holder)], (), None) == []


@pytest.mark.parametrize(
    "where", ["logs/refs/heads", "refs/heads", "refs", ".", "objects", "objects/info", "objects/pack"]
)
def test_what_is_watched_is_told(holder: Path, memory: Memory, where: str) -> None:
    written, name = Written(), str(holder)
    written.know([name], memory)
    assert memory.attends(name)
    assert written.search([name], memory.take_news().stirred, memory) == []
    (holder / ".git" / where / "new").symlink_to("/etc/passwd")
    memory.refresh()
    news = memory.take_news()
    assert (news.stirred, news.grown) == ({name}, set())
    assert written.search([name], news.stirred, memory) == [name]


def test_a_new_directory_is_watched_once_it_is_known(holder: Path, memory: Memory) -> None:
    written, name = Written(), str(holder)
    written.know([name], memory)
    (holder / ".git/refs/heads/team").mkdir()
    memory.refresh()
    news = memory.take_news()
    assert (news.stirred, news.grown) == ({name}, {name})
    written.know_again(news.grown, memory)
    (holder / ".git/refs/heads/team/new").symlink_to("/etc/passwd")
    memory.refresh()
    assert memory.take_news().stirred == {name}


def test_without_a_watch_left_the_times_tell(holder: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Inotify, path: str) -> int:
        raise OSError(28, "none left", path)

    time.sleep(0.03)
    written, name = Written(), str(holder)
    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "add", none_left)
        written.know([name], memory)
        assert not memory.attends(name)
        assert written.search([name], (), memory) == []
        (holder / ".git/refs/heads/new").symlink_to("/etc/passwd")
        assert written.search([name], (), memory) == [name]
    (holder / ".git/refs/heads/new").unlink()
    assert written.search([name], (), memory) == []
    assert memory.attends(name), "there are watches again"


def test_it_is_not_tried_again_and_again_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Blind:
        def attend(self, owner: str, _directory: str) -> bool:
            asked.append(owner)
            return False

        def attends(self, _owner: str) -> bool:
            return False

        def leave(self, _owner: str) -> None:
            pass

    monkeypatch.setattr("stockade.filesystem.written.TICK", 0)
    holders = [str(tmp_path / str(number)) for number in range(50)]
    for holder in holders:
        os.makedirs(f"{holder}/.git/refs")
    written, blind = Written(), Blind()
    written.know(holders, blind)
    assert written.search(holders, (), blind) == []
    asked.clear()
    written.know(holders, blind)
    assert written.search(holders, (), blind) == []
    assert asked == []
    os.symlink("/etc/passwd", f"{holders[40]}/.git/refs/link")
    assert written.search(holders, (), blind) == [holders[40]]


def test_who_no_longer_watches_is_not_relied_on(holder: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.03)
    written, name = Written(), str(holder)
    written.know([name], memory)
    monkeypatch.setattr(written, "_attempts", 0)
    memory.leave(name)
    written.know([name], memory)
    (holder / ".git/refs/heads/new").symlink_to("/etc/passwd")
    assert written.search([name], (), memory) == [name]
