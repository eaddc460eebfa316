"""When the covers of a jail are looked at: after a moment, after an event about a covered name, or now and then."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import cover_watch, fallen, kernel, tree
from stockade.platforms.linux.cover_watch import CoverWatch

if TYPE_CHECKING:
    from pathlib import Path


def _watch(folder: Path) -> CoverWatch:
    root = os.fsencode(folder)
    mounts = [(b"writable", root, b""), (b"read-only", root + b"/config", b""), (b"hidden", root + b"/secret", b"")]
    return CoverWatch(tree.arrange(mounts))


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often covers were looked at; nothing is mounted."""
    looks: list[int] = []

    def lay_again(places: list[tree.Place]) -> fallen.Relaid:
        looks.append(len(places))
        return fallen.Relaid()

    monkeypatch.setattr(fallen, "lay_again", lay_again)
    return looks


def test_only_what_restricts_is_watched(tmp_path: Path) -> None:
    watch = _watch(tmp_path)
    assert [place.target for place in watch.places] == [os.fsencode(tmp_path / name) for name in ("config", "secret")]
    assert watch.directories == sorted([os.fsencode(tmp_path), *map(os.fsencode, tmp_path.parents)])


def test_an_idle_launcher_waits_for_nothing(tmp_path: Path) -> None:
    watch = _watch(tmp_path)
    assert watch.patience(busy=False) is None
    assert not watch.is_due()


def test_a_jail_without_covers_is_never_looked_at() -> None:
    assert CoverWatch([]).patience(busy=True) is None


def test_a_command_that_runs_begins_the_watch_after_a_moment(
    tmp_path: Path, laid: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(cover_watch, "monotonic", lambda: clock[0])
    watch = _watch(tmp_path)
    assert watch.patience(busy=True) == 21
    clock[0] += 0.01
    assert watch.patience(busy=True) == 11
    assert not watch.is_due()
    clock[0] += 0.02
    assert watch.is_due()
    watch.look()
    assert laid == [2]
    # From now on events say when.
    assert watch.patience(busy=True) is None
    os.close(watch.descriptor)


@pytest.mark.parametrize(
    ("name", "heard"),
    [
        pytest.param("config", True, id="covered"),
        pytest.param("secret", True, id="hidden"),
        pytest.param("other", False, id="not covered"),
        pytest.param("config.lock", False, id="a name that begins alike"),
    ],
)
@pytest.mark.usefixtures("laid")
def test_an_event_counts_if_it_is_about_a_covered_name(tmp_path: Path, name: str, heard: bool) -> None:  # noqa: FBT001
    watch = _watch(tmp_path)
    watch.look()
    (tmp_path / name).touch()
    assert watch.hear() is heard
    assert watch.hear() is False
    os.close(watch.descriptor)


def test_what_was_gone_for_a_moment_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    relaid = fallen.Relaid()
    relaid.laid.append(os.fsencode(config))
    monkeypatch.setattr(fallen, "lay_again", lambda _: relaid)
    config.touch()
    watch = _watch(tmp_path)
    watch.look()
    relaid.missing.clear()
    (tmp_path / "new").touch()
    (tmp_path / "new").replace(config)
    assert watch.hear()
    assert watch.look().missing == []
    config.unlink()
    config.touch()
    assert watch.hear()
    assert watch.look().missing == [os.fsencode(config)]
    os.close(watch.descriptor)


def test_a_directory_that_cannot_be_watched_is_looked_at_by_time(
    tmp_path: Path, laid: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_queue: int, path: bytes) -> int:
        raise OSError(errno.ENOSPC, "no watch left", path)

    monkeypatch.setattr(kernel, "watch_directory", refuse)
    watch = _watch(tmp_path)
    watch.look()
    assert watch.blind
    assert watch.patience(busy=True) is not None
    assert laid == [2]
    os.close(watch.descriptor)


def test_where_events_were_lost_everything_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = (-1).to_bytes(4, "little", signed=True) + (0x4000).to_bytes(4, "little") + bytes(8)
    monkeypatch.setattr(kernel, "read_events", lambda _: lost)
    assert _watch(tmp_path).hear()


def test_without_a_watch_covers_are_looked_at_by_time(
    tmp_path: Path, laid: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(cover_watch, "monotonic", lambda: clock[0])
    monkeypatch.setattr(kernel, "new_watch", lambda: -1)
    watch = _watch(tmp_path)
    watch.look()
    assert watch.patience(busy=True) == 101
    clock[0] += 0.2
    assert watch.is_due()
    watch.look()
    assert laid == [2, 2]
    assert watch.patience(busy=True) == 101
