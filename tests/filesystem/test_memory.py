from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem import memory as module
from stockade.filesystem.inotify import Event, Inotify
from stockade.filesystem.memory import Memory
from stockade.filesystem.terrain import EVERYTHING, Interest
from stockade.placeholder import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FEW = Interest(frozenset({".git"}), directories=True)


@pytest.fixture(params=[True, False], ids=["watched", "unwatched"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    memory = Memory(watch=request.param)
    yield memory
    memory.close()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    (top / "d" / "e").mkdir(parents=True)
    (top / "f").write_text("said")
    (top / "l").symlink_to("d")
    return top


def _facts(memory: Memory, top: Path) -> dict[str, object]:
    facts: dict[str, object] = {}
    for name in ("d", "d/e", "f", "l", "no", "no/deeper"):
        path = f"{top}/{name}"
        facts[name] = (memory.exists(path), memory.is_directory(path), memory.link(path))
    return facts | {
        "few": memory.entries(str(top), FEW),
        "all": memory.entries(f"{top}/d", EVERYTHING),
        "deep": memory.names(f"{top}/d/e"),
        "text": memory.text(f"{top}/f"),
    }


def test_what_a_directory_holds_is_known_only_if_all_of_it_was_listed(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    memory.entries(str(tmp_path), FEW)
    assert memory.known_entries(str(tmp_path)) == ()
    memory.names(str(tmp_path))
    assert memory.known_entries(str(tmp_path)) == (("d", "directory"), ("f", "other"))


def test_answers(memory: Memory, top: Path) -> None:
    assert _facts(memory, top) == {
        "d": (True, True, None),
        "d/e": (True, True, None),
        "f": (True, False, None),
        "l": (True, False, "d"),
        "no": (False, False, None),
        "no/deeper": (False, False, None),
        "few": (("d", "directory"),),
        "all": (("e", "directory"),),
        "deep": (),
        "text": "said",
    }


def _replace(top: Path) -> None:
    shutil.rmtree(top / "d" / "e")
    (top / "d" / "e").mkdir()
    (top / "d" / "e" / "x").touch()


def _exchange(top: Path) -> None:
    (top / "d").rename(top / "other")
    (top / "n").mkdir()
    (top / "n").rename(top / "d")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda top: (top / ".git").touch(), id="a-name-of-interest"),
        pytest.param(lambda top: (top / "new").mkdir(), id="a-directory"),
        pytest.param(lambda top: (top / "no" / "deeper").mkdir(parents=True), id="what-was-missing"),
        pytest.param(lambda top: (top / "d" / "x").touch(), id="any-name"),
        pytest.param(lambda top: (top / "d" / "e").rmdir(), id="a-directory-less"),
        pytest.param(lambda top: ((top / "l").unlink(), (top / "l").symlink_to("d/e")), id="a-link-elsewhere"),
        pytest.param(lambda top: ((top / "f").unlink(), (top / "f").mkdir()), id="a-directory-for-a-file"),
        pytest.param(lambda top: (top / "f").write_text("other"), id="another-text"),
        pytest.param(_replace, id="a-directory-replaced"),
        pytest.param(_exchange, id="a-directory-renamed"),
    ],
)
def test_changes_are_noticed(memory: Memory, top: Path, change: Callable[[Path], object]) -> None:
    _facts(memory, top)
    assert not memory.refresh()
    for _ in range(2):
        change(top)
        assert memory.refresh()
        assert _facts(memory, top) == _facts(Memory(watch=False), top)
        assert not memory.refresh()
        shutil.rmtree(top)
        (top / "d" / "e").mkdir(parents=True)
        (top / "f").write_text("said")
        (top / "l").symlink_to("d")
        assert memory.refresh()
        _facts(memory, top)
        memory.refresh()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda top: (top / "x.o").touch(), id="a-name-of-no-interest"),
        pytest.param(lambda top: ((top / "d" / "t").touch(), (top / "d" / "t").unlink()), id="come-and-gone"),
        pytest.param(lambda top: (top / "f").touch(), id="a-time"),
    ],
)
def test_what_does_not_matter_is_not(memory: Memory, top: Path, change: Callable[[Path], object]) -> None:
    _facts(memory, top)
    change(top)
    assert not memory.refresh()


def test_lost_events_forget_everything(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    _facts(memory, top)
    (top / ".git").touch()
    monkeypatch.setattr(Inotify, "read", lambda _: [Event(-1, "", overflow=True)])
    assert memory.refresh()
    monkeypatch.undo()
    assert _facts(memory, top) == _facts(Memory(watch=False), top)
    (top / "new").mkdir()
    assert memory.refresh()
    memory.close()


def test_without_watches_left_everything_is_asked_again(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Inotify, path: str) -> int:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(Inotify, "add", none_left)
    memory = Memory()
    _facts(memory, top)
    assert (memory.watched, memory.refresh()) == (0, False)
    (top / ".git").touch()
    assert memory.refresh()
    memory.close()


def test_without_inotify_everything_is_asked_again(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_queue", lambda: None)
    memory = Memory()
    _facts(memory, top)
    (top / "d" / "e").rmdir()
    assert memory.refresh()


def test_a_directory_that_is_not_watched_takes_what_is_below_with_it(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Inotify.add

    def refused_once(queue: Inotify, path: str) -> int:
        if path == f"{top}/d":
            raise OSError(28, "No space left on device", path)
        return add(queue, path)

    monkeypatch.setattr(Inotify, "add", refused_once)
    memory = Memory()
    _facts(memory, top)
    (top / "d").rename(top / "aside")
    (top / "d" / "e" / "x").mkdir(parents=True)
    assert memory.refresh()
    assert memory.names(f"{top}/d/e") == ("x",)
    memory.close()


def _keep(directory: Path) -> None:
    directory.mkdir()
    os.utime(directory, ns=(MARK, MARK))


def test_a_directory_that_only_keeps_its_name_is_there_once_something_is_in_it(memory: Memory, top: Path) -> None:
    _keep(top / "d" / ".vscode")
    path = f"{top}/d/.vscode"
    assert (memory.exists(path), memory.is_directory(path)) == (False, False)
    assert memory.entries(f"{top}/d", EVERYTHING) == (("e", "directory"),)
    assert (path, ()) in tuple(memory.listed())
    memory.refresh()
    (top / "d" / ".vscode" / "tasks.json").touch()
    os.utime(top / "d" / ".vscode", ns=(MARK, MARK))
    assert memory.refresh()
    assert memory.is_directory(path)
    assert memory.names(f"{top}/d") == (".vscode", "e")
    assert memory.names(path) == ("tasks.json",)


def test_that_a_name_is_kept_or_no_longer_is_no_reason_for_another_plan(top: Path) -> None:
    memory = Memory()
    path = f"{top}/d/.vscode"
    assert not memory.exists(path)
    assert memory.names(f"{top}/d") == ("e",)
    for _ in range(2):
        _keep(top / "d" / ".vscode")
        assert not memory.refresh()
        assert memory.take_news().replaced == set()
        os.rmdir(path)
        assert not memory.refresh()
        assert memory.take_news().replaced == set()
    assert not memory.exists(path)
    memory.close()


def test_what_comes_after_a_kept_name_was_seen_is_noticed(top: Path) -> None:
    memory = Memory()
    path = f"{top}/d/.vscode"
    assert not memory.exists(path)
    _keep(top / "d" / ".vscode")
    assert not memory.refresh()
    (top / "d" / ".vscode" / "x").touch()
    assert memory.refresh()
    assert memory.is_directory(path)
    memory.close()


def test_what_is_watched_for_somebody_is_told_by_that_name_and_forgets_nothing(top: Path) -> None:
    with closing(Memory()) as memory:
        (top / "beside/below").mkdir(parents=True)
        facts = _facts(memory, top)
        assert memory.attend("one", f"{top}/beside")
        assert memory.attend("other", f"{top}/beside")
        assert not memory.attend("other", f"{top}/missing")
        assert memory.attended == {"one", "other"}
        (top / "beside/file").touch()
        assert not memory.refresh()
        news = memory.take_news()
        assert (news.stirred, news.grown, bool(news)) == ({"one", "other"}, set(), False)
        (top / "beside/below").rmdir()
        memory.leave("one")
        assert not memory.refresh()
        news = memory.take_news()
        assert (news.stirred, news.grown, bool(news)) == ({"other"}, {"other"}, False)
        assert memory.attended == {"other"}
        assert _facts(memory, top) == facts
        memory.leave("other")
        (top / "beside/again").touch()
        memory.refresh()
        assert not memory.take_news().stirred


def test_who_leaves_takes_no_watch_from_a_plan(top: Path) -> None:
    with closing(Memory()) as memory:
        names = memory.names(str(top))
        memory.attend("one", str(top))
        memory.leave("one")
        (top / "another").touch()
        assert memory.refresh()
        assert memory.names(str(top)) == tuple(sorted((*names, "another")))


def test_what_a_plan_forgets_is_still_told_to_others(top: Path) -> None:
    with closing(Memory()) as memory:
        (top / "folder").mkdir()
        memory.names(f"{top}/folder")
        memory.attend("one", f"{top}/folder")
        (top / "folder").rename(top / "elsewhere")
        memory.refresh()
        memory.take_news()
        (top / "elsewhere/file").touch()
        memory.refresh()
        assert memory.take_news().stirred == {"one"}
