from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.platforms.kept_caches import KeptCache, Size, cache_of, caches_of, obstacle, remove, size_of, sweep
from stockade.platforms.private_cache import PrivateCache


def _kept(home: Path, project: str) -> KeptCache:
    held = PrivateCache.hold(project, str(home), {})
    Path(held.path, "kept").write_bytes(b"x" * 10_000)
    held.release()
    found = cache_of(project, str(home), {})
    assert found is not None
    return found


def test_caches_are_found_with_their_projects(tmp_path: Path) -> None:
    assert caches_of(str(tmp_path), {}) == ()
    here, gone = _kept(tmp_path, str(tmp_path)), _kept(tmp_path, "/nonexistent/project")
    assert set(caches_of(str(tmp_path), {})) == {here, gone}
    assert (here.is_stale, gone.is_stale) == (False, True)
    assert cache_of("/another", str(tmp_path), {}) is None


def test_the_size_is_what_it_takes_on_the_disk_and_no_link_counts(tmp_path: Path) -> None:
    cache = _kept(tmp_path, "/p")
    once = size_of(cache)
    assert once.bytes >= 10_000
    os.link(f"{cache.path}/kept", f"{cache.path}/again")
    os.symlink("/usr", f"{cache.path}/away")
    assert size_of(cache).bytes - once.bytes < 10_000
    assert size_of(cache, most=1) == Size(size_of(cache, most=1).bytes, whole=False)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(5), "5 bytes"),
        (Size(2048), "2.0 KiB"),
        (Size(3 << 20), "3.0 MiB"),
        (Size(5 << 40, whole=False), "at least 5120.0 GiB"),
    ],
)
def test_a_size_in_words(size: Size, words: str) -> None:
    assert str(size) == words


def test_it_is_removed_whatever_is_in_it(tmp_path: Path) -> None:
    """A tree deeper than any path, directories without rights as Go makes them, and links to what must stay."""
    cache = _kept(tmp_path, "/p")
    (tmp_path / "stays").write_text("unchanged")
    os.symlink(tmp_path, f"{cache.path}/away")
    place = os.open(cache.path, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("deep", 0o700, dir_fd=place)
        inner = os.open("deep", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    closed = Path(cache.path, "closed")
    closed.mkdir()
    (closed / "file").touch()
    closed.chmod(0o555)
    assert remove(cache)
    assert remove(cache)
    assert (tmp_path / "stays").read_text() == "unchanged"
    assert os.listdir(tmp_path / ".cache") == []


def test_one_that_is_held_stays(tmp_path: Path) -> None:
    cache = _kept(tmp_path, "/p")
    held = PrivateCache.hold("/p", str(tmp_path), {})
    assert not remove(cache)
    assert os.listdir(cache.path) == ["kept"]
    held.release()
    assert remove(cache)


def test_what_a_removal_left_is_swept(tmp_path: Path) -> None:
    cache = _kept(tmp_path, "/p")
    left = Path(cache.folder).parent / ".gone-1"
    (left / "cache" / "x").mkdir(parents=True)
    assert caches_of(str(tmp_path), {}) == (cache,)
    sweep(str(tmp_path), {})
    assert not left.exists()
    assert caches_of(str(tmp_path), {}) == (cache,)


def test_an_obstacle_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    assert obstacle(str(tmp_path), {}) == ""
    assert os.listdir(tmp_path) == []
    tmp_path.chmod(0o777)
    assert "others may write it" in obstacle(str(tmp_path), {})
