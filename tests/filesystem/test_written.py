from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.inotify import Event, Inotify
from stockade.filesystem.memory import Memory
from stockade.filesystem.terrain import EVERYTHING, Land
from stockade.filesystem.written import State, Written, directories_of, has_links

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "x")], check=True)
    (tmp_path / "x/.git/logs/refs/heads").mkdir(parents=True)
    return tmp_path / "x/.git"


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.close()


def note_lists(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the directories that are listed from now on."""
    listed: list[str] = []
    scandir = os.scandir

    def noting(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noting)
    return listed


def test_only_what_changed_is_searched_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "logs/refs/heads/deep").mkdir(parents=True)
    known: dict[str, State] = {}
    monkeypatch.setattr("stockade.filesystem.written.TICK", 0)
    assert not has_links(str(store), known)
    assert f"{store}/logs/refs/heads/deep" in known
    listed = note_lists(monkeypatch)
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
    assert {"objects", "objects/pack"} <= found
    assert not {"hooks", "modules/libs/one/objects", "modules/libs/one/hooks", "refs/link"} & found


def test_a_directory_with_none_in_it_is_not_listed_where_links_are_counted(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = note_lists(monkeypatch)
    found = directories_of(str(store))
    assert f"{store}/refs/heads" in found
    if store.stat().st_nlink > 2:  # on some disks every directory has one
        assert f"{store}/refs/heads" not in listed
    (few, count), listed[:] = (len(listed), os.lstat), []

    def uncounted(path: str) -> os.stat_result:
        status = count(path)
        return os.stat_result((*status[:3], 2, *status[4:10]), {"st_ctime_ns": status.st_ctime_ns})

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", uncounted)
        uncounted_found = directories_of(str(store))
    assert uncounted_found.keys() == found.keys()
    assert len(listed) == len(found) - len(("objects", "objects/pack")) >= few


def test_a_repository_that_was_listed_is_listed_again_only_if_it_holds_more(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = Land().entries(str(store), EVERYTHING)
    found = directories_of(str(store))
    listed = note_lists(monkeypatch)
    assert directories_of(str(store), below=below) == found
    if store.stat().st_nlink > 2:
        assert str(store) not in listed
    (store / "new").mkdir()
    assert f"{store}/new" in directories_of(str(store), below=below)
    assert f"{store}/new" in directories_of(str(store), below=tuple(one for one in below if one[0] != "logs"))


def test_what_cannot_be_listed_is_searched_at_every_look(store: Path) -> None:
    assert directories_of(f"{store}/HEAD") == {}
    assert directories_of(f"{store}/missing") == {}
    assert has_links(f"{store}/HEAD", {})


@pytest.mark.parametrize("where", ["logs/refs/heads", "refs", ".", "objects", "objects/pack"])
def test_what_was_noted_is_searched_only_where_it_changed(store: Path, where: str) -> None:
    time.sleep(0.03)
    written = Written()
    written.know([str(store)], None)
    assert written.search([str(store)], set(), None) == []
    (store / where / "new").symlink_to("/etc/passwd")
    assert written.search([str(store)], set(), None) == [str(store)]


def test_another_directory_that_changed_in_the_same_tick_is_searched(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, others = store / "logs/refs/heads", store.parent / "others"
    (logs / "team/a").mkdir(parents=True)
    (others / "a").mkdir(parents=True)
    (others / "a/main").symlink_to("/etc/passwd")
    real = os.lstat

    def at_once(path: str) -> os.stat_result:
        status = real(path)
        return os.stat_result(status[:10], {"st_ctime_ns": 1, "st_mtime_ns": 1})

    monkeypatch.setattr(os, "lstat", at_once)
    written = Written()
    written.know([str(store)], None)
    assert written.search([str(store)], set(), None) == []
    (logs / "team").rename(store.parent / "before")
    others.rename(logs / "team")
    assert written.search([str(store)], set(), None) == [str(store)]


def test_packs_that_were_not_there_are_searched(store: Path) -> None:
    (store / "objects/pack").rmdir()
    time.sleep(0.03)
    written = Written()
    written.know([str(store)], None)
    assert written.search([str(store)], set(), None) == []
    (store / "objects/pack").mkdir()
    (store / "objects/pack/x.pack").symlink_to("/etc/passwd")
    assert written.search([str(store)], set(), None) == [str(store)]


def test_a_link_that_was_there_before_is_no_news(store: Path) -> None:
    (store / "logs/refs/heads/main").symlink_to("/etc/passwd")
    time.sleep(0.03)
    written = Written()
    written.know([str(store)], None)
    assert written.search([str(store)], set(), None) == []


@pytest.mark.parametrize(
    "where", ["logs/refs/heads", "refs/heads", "refs", ".", "objects", "objects/info", "objects/pack"]
)
def test_what_is_watched_is_told(store: Path, memory: Memory, where: str) -> None:
    written, name = Written(), str(store)
    written.know([name], memory)
    assert name in memory.attended
    assert written.search([name], memory.take_news().stirred, memory) == []
    (store / where / "new").symlink_to("/etc/passwd")
    memory.refresh()
    news = memory.take_news()
    assert (news.stirred, news.grown) == ({name}, set())
    assert written.search([name], news.stirred, memory) == [name]


def test_a_new_directory_is_watched_once_it_is_known(store: Path, memory: Memory) -> None:
    written, name = Written(), str(store)
    written.know([name], memory)
    (store / "refs/heads/team").mkdir()
    memory.refresh()
    news = memory.take_news()
    assert (news.stirred, news.grown) == ({name}, {name})
    written.know_again(news.grown, memory)
    (store / "refs/heads/team/new").symlink_to("/etc/passwd")
    memory.refresh()
    assert memory.take_news().stirred == {name}


def test_where_events_were_lost_the_times_tell(store: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.03)
    written, name = Written(), str(store)
    written.know([name], memory)
    assert memory.attended == {name}
    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "read", lambda _: [Event(-1, "", overflow=True)])
        memory.refresh()
    assert memory.take_news().lost
    (store / "refs/heads/new").symlink_to("/etc/passwd")
    memory.refresh()
    assert memory.attended == set()
    assert written.search([name], memory.take_news().stirred, memory) == [name]


def test_without_a_watch_left_the_times_tell(store: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Inotify, path: str) -> int:
        raise OSError(28, "none left", path)

    time.sleep(0.03)
    written, name = Written(), str(store)
    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "add", none_left)
        written.know([name], memory)
        assert name not in memory.attended
        assert written.search([name], set(), memory) == []
        (store / "refs/heads/new").symlink_to("/etc/passwd")
        assert written.search([name], set(), memory) == [name]
    (store / "refs/heads/new").unlink()
    assert written.search([name], set(), memory) == []
    assert name in memory.attended, "there are watches again"


def test_it_is_not_tried_again_and_again_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Blind:
        attended: frozenset[str] = frozenset()

        def attend(self, owner: str, _directory: str) -> bool:
            asked.append(owner)
            return False

        def leave(self, _owner: str) -> None:
            pass

    monkeypatch.setattr("stockade.filesystem.written.TICK", 0)
    stores = [str(tmp_path / str(number) / ".git") for number in range(50)]
    for store in stores:
        os.makedirs(f"{store}/refs")
    written, blind = Written(), Blind()
    written.know(stores, blind)
    assert written.search(stores, frozenset(), blind) == []
    asked.clear()
    written.know(stores, blind)
    assert written.search(stores, frozenset(), blind) == []
    assert asked == []
    os.symlink("/etc/passwd", f"{stores[40]}/refs/link")
    assert written.search(stores, frozenset(), blind) == [stores[40]]


def test_who_no_longer_watches_is_not_relied_on(store: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.03)
    written, name = Written(), str(store)
    written.know([name], memory)
    monkeypatch.setattr(written, "_attempts", 0)
    memory.leave(name)
    written.know([name], memory)
    (store / "refs/heads/new").symlink_to("/etc/passwd")
    assert written.search([name], frozenset(), memory) == [name]
