from __future__ import annotations

import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.private_cache import CACHE, PROJECT, PrivateCache, caches_directory, folders, user_caches


def _hold(home: Path, project: str = "/w/project") -> PrivateCache:
    return PrivateCache.hold(project, str(home), {})


def test_it_is_private_and_says_whose_it_is(tmp_path: Path) -> None:
    cache = _hold(tmp_path)
    path = Path(cache.path)
    assert cache.base == caches_directory(str(tmp_path), {}) == str(tmp_path.resolve() / ".cache/stockade-projects")
    assert path.parent.parent == Path(cache.base)
    assert {stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent, path.parent.parent)} == {0o700}
    assert (path.parent / PROJECT).read_text() == "/w/project"
    cache.release()


def test_one_that_is_empty_goes_with_its_last_holder(tmp_path: Path) -> None:
    first, second = _hold(tmp_path), _hold(tmp_path)
    first.release()
    assert Path(second.path).is_dir()
    second.release()
    second.release()
    assert list((tmp_path / ".cache").iterdir()) == []


@pytest.mark.parametrize("there", ["nothing", "a directory", "a link", "another's file"])
def test_the_users_cache_directory_goes_only_if_it_was_made_for_it_and_is_empty(tmp_path: Path, there: str) -> None:
    place = tmp_path / ".cache"
    if there == "a directory":
        place.mkdir(mode=0o700)
    elif there == "a link":
        place.symlink_to(tmp_path / "missing")
    before = sorted(os.listdir(tmp_path))
    cache = _hold(tmp_path)
    if there == "another's file":
        (place / "file").touch()
    cache.release()
    assert sorted(os.listdir(tmp_path)) == ([".cache"] if there == "another's file" else before)


def test_sessions_that_begin_and_end_at_once_do_not_take_it_from_each_other(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def begin_and_end(number: int) -> None:
        try:
            for _ in range(100):
                _hold(tmp_path, f"/w/{number}").release()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test says it
            failures.append(error)

    threads = [threading.Thread(target=begin_and_end, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_one_with_something_in_it_stays(tmp_path: Path) -> None:
    cache = _hold(tmp_path)
    Path(cache.path, "kept").touch()
    cache.release()
    again = _hold(tmp_path)
    assert (again.path, os.listdir(again.path)) == (cache.path, ["kept"])
    again.release()


def test_it_cannot_be_locked_for_removal_while_it_is_held(tmp_path: Path) -> None:
    cache = _hold(tmp_path)
    descriptor = os.open(os.path.dirname(cache.path), os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    Path(cache.path, "kept").touch()
    cache.release()
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def test_a_project_with_the_same_name_and_hash_gets_another(tmp_path: Path) -> None:
    cache = _hold(tmp_path)
    (Path(cache.path).parent / PROJECT).write_text("/w/another")
    other = _hold(tmp_path)
    assert other.path == f"{os.path.dirname(cache.path)}-1/{CACHE}"
    other.release()
    cache.release()


def test_a_directory_that_lost_its_name_is_nobodys(tmp_path: Path) -> None:
    cache = _hold(tmp_path)
    (Path(cache.path).parent / PROJECT).unlink()
    other = _hold(tmp_path)
    assert other.path != cache.path
    other.release()
    cache.release()


@pytest.mark.parametrize("kind", ["link", "file", "open to others"])
def test_what_is_not_ours_alone_is_not_used(tmp_path: Path, kind: str) -> None:
    base = tmp_path / ".cache" / "stockade-projects"
    base.parent.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "link":
        base.symlink_to(elsewhere)
    elif kind == "file":
        base.touch()
    else:
        base.mkdir()
        base.chmod(0o755)
    with pytest.raises(UnavailableError, match="belongs to you alone"):
        _hold(tmp_path)
    assert os.listdir(elsewhere) == []


def test_a_place_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache").chmod(0o777)
    with pytest.raises(UnavailableError, match="others may write it"):
        _hold(tmp_path)
    assert os.listdir(tmp_path / ".cache") == []


@pytest.mark.parametrize("home", ["", "/proc", "/nonexistent/home"])
def test_without_a_place_it_is_said(home: str) -> None:
    with pytest.raises(UnavailableError):
        PrivateCache.hold("/w/project", home, {})


def test_where_caches_are() -> None:
    assert user_caches("/home/ada", {"XDG_CACHE_HOME": "/fast"}) == "/fast"
    assert user_caches("/home/ada", {"XDG_CACHE_HOME": "relative"}) in {"/home/ada/.cache", "/home/ada/Library/Caches"}
    assert user_caches("", {}) == ""


def test_names_are_plain_and_of_a_bounded_length() -> None:
    assert folders("/")[0].startswith("root-")
    name = folders("/w/.a b\n" + "x" * 300)[0]
    assert name.startswith("a_b_xxx")
    assert len(name) < 60
    assert folders("/a/x")[0] != folders("/b/x")[0]
