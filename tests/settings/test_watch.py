from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from stockade.errors import SettingsError, StockadeError
from stockade.settings import watch as watch_module
from stockade.settings.catalog import ENABLED, EXCLUDED_COMMANDS
from stockade.settings.edit import SetValue
from stockade.settings.load import Loaded, load
from stockade.settings.local_file import apply
from stockade.settings.sources import Locations
from stockade.settings.trust import trust
from stockade.settings.watch import Change, Watch, watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ON = '{"sandbox": {"enabled": true}}'
OFF = '{"sandbox": {"enabled": false}}'
BAD = '{"sandbox": {"enabled": "yes"}}'


class World:
    """A home, a repository with a directory deep inside, and a place of the administrator."""

    def __init__(self, root: Path) -> None:
        self.home, self.managed = root / "home", root / "etc" / "managed-settings.json"
        self.repository, self.cwd = root / "repository", root / "repository" / "a" / "b"
        (self.repository / ".git").mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        self.locations = Locations(str(self.cwd), str(self.home), managed=str(self.managed))
        self.user = self.home / ".stockade" / "settings.json"
        self.user.parent.mkdir(parents=True, mode=0o700)
        self.user.write_text(OFF)

    def watch(self) -> Watch:
        watch = Watch(self.locations)
        assert watch.poll() is None
        return watch


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def replace(path: Path, text: str) -> None:
    beside = path.with_name("beside")
    beside.write_text(text)
    beside.rename(path)


@pytest.mark.parametrize(
    "happen",
    [
        pytest.param(lambda w: write(w.user, ON), id="written in place"),
        pytest.param(lambda w: replace(w.user, ON), id="renamed over"),
        pytest.param(lambda w: write(w.home / ".stockade/settings.local.json", ON), id="a file appears"),
        pytest.param(
            lambda w: write(w.home / ".claude/settings.json", '{"sandbox": {"failIfUnavailable": true}}'),
            id="a foreign file appears",
        ),
        pytest.param(lambda w: w.user.unlink(), id="a file goes"),
        pytest.param(lambda w: shutil.rmtree(w.user.parent), id="its folder goes"),
        pytest.param(lambda w: write(w.managed, ON), id="the administrator's file appears"),
        pytest.param(
            lambda w: write(w.managed.parent / "managed-settings.d/1.json", ON), id="the first drop-in appears"
        ),
        pytest.param(lambda w: write(w.repository / ".stockade/settings.json", ON), id="the project's file appears"),
        pytest.param(lambda w: write(w.cwd / ".stockade/settings.json", ON), id="a nearer project's file appears"),
        pytest.param(lambda w: apply(w.locations, [SetValue(ENABLED, True)], lock=None), id="our own edit"),
    ],
)
def test_a_change_is_seen_once_and_loads_what_the_files_say(world: World, happen: Callable[[World], object]) -> None:
    watch = world.watch()
    happen(world)
    change = watch.poll()
    assert change == Change(load(world.locations))
    assert watch.current == change
    assert watch.poll() is None


def test_drop_ins_are_seen_to_change_and_go(world: World) -> None:
    drop_in = world.managed.parent / "managed-settings.d" / "1.json"
    write(drop_in, OFF)
    watch = world.watch()
    write(drop_in, ON)
    change = watch.poll()
    assert change is not None
    assert change.loaded.settings.get(ENABLED) is True
    drop_in.unlink()
    change = watch.poll()
    assert change is not None
    assert change.loaded.lock is None


def test_trusting_a_file_counts_as_a_change(world: World) -> None:
    file = world.repository / ".stockade" / "settings.json"
    content = '{"sandbox": {"excludedCommands": ["docker"]}}'
    write(file, content)
    watch = world.watch()
    trust(str(world.home), str(file), content.encode())
    change = watch.poll()
    assert change is not None
    assert [item.value for item in change.loaded.settings.items(EXCLUDED_COMMANDS)] == ["docker"]


@pytest.mark.parametrize(
    "happen",
    [
        pytest.param(lambda w: w.user.touch(), id="touched"),
        pytest.param(lambda w: replace(w.user, OFF), id="replaced by the same"),
        pytest.param(lambda w: write(w.user, OFF + "\n"), id="a blank more"),
        pytest.param(lambda w: write(w.user.parent / "other.json", ON), id="another file"),
    ],
)
def test_what_makes_no_difference_is_no_change(world: World, happen: Callable[[World], object]) -> None:
    watch = world.watch()
    happen(world)
    assert watch.poll() is None


def test_a_second_write_that_leaves_the_same_signature_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = world.user.stat()
    stat = os.stat

    def coarse(path: str) -> os.stat_result:
        return frozen if path == str(world.user) else stat(path)

    still = type(os)("os")
    still.__dict__.update(vars(os) | {"stat": coarse})
    monkeypatch.setattr(watch_module, "os", still)
    watch = world.watch()
    world.user.write_text(OFF.replace("false", "true "))
    change = watch.poll()
    assert change is not None
    assert change.loaded.settings.get(ENABLED) is True


def test_a_file_that_has_rested_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "_TICK", -1)
    watch = world.watch()
    monkeypatch.setattr(watch_module, "read_content", lambda _: pytest.fail("read"))
    assert watch.poll() is None


def test_what_becomes_invalid_keeps_the_last_good_settings(world: World) -> None:
    watch = world.watch()
    good = watch.current.loaded
    world.user.write_text(BAD)
    change = watch.poll()
    assert change is not None
    assert change.loaded == good
    assert isinstance(change.error, SettingsError)
    assert change.error.problems[0].path == "$.sandbox.enabled"
    assert "stay in force" in change.warnings[0]
    assert watch.current == change
    world.user.write_text(BAD + "\n")
    assert watch.poll() is None, "the same error again is no news"
    world.user.write_text("")
    assert watch.poll() is not None, "another error is"
    world.user.write_text(OFF)
    assert watch.poll() == Change(good), "and so is that all is well again"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.mkdir(), id="a directory"),
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(lambda file: file.symlink_to("nowhere"), id="a link that leads nowhere"),
    ],
)
def test_what_is_no_file_is_an_error_and_never_waited_for(world: World, spoil: Callable[[Path], None]) -> None:
    world.user.unlink()
    watch = world.watch()
    spoil(world.user)
    change = watch.poll()
    assert change is not None
    assert isinstance(change.error, SettingsError)


def test_settings_that_were_never_good_cannot_be_watched(world: World) -> None:
    world.user.write_text(BAD)
    with pytest.raises(SettingsError):
        Watch(world.locations)


def test_a_change_between_looking_and_loading_is_found_by_the_next_poll(world: World) -> None:
    texts = iter([ON])

    def slow(locations: Locations) -> Loaded:
        loaded = load(locations)
        for text in texts:
            world.user.write_text(text)
        return loaded

    watch = Watch(world.locations, slow)
    assert watch.current.loaded.settings.get(ENABLED) is False
    change = watch.poll()
    assert change is not None
    assert change.loaded.settings.get(ENABLED) is True


def test_a_host_can_ask_to_load_again(world: World) -> None:
    provided = {"sandbox": {"enabled": False}}
    watch = Watch(world.locations, lambda locations: load(locations, provider=lambda: provided))
    provided["sandbox"]["enabled"] = True
    assert watch.poll() is None
    change = watch.reload()
    assert change is not None
    assert change.loaded.settings.get(ENABLED) is True
    assert watch.reload() is None


def test_subscribers_are_told_until_they_leave_whatever_others_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Change]] = []
    reported: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: reported.append(error[1]))
    broken = StockadeError("broken")

    def raises(_: Change) -> None:
        raise broken

    def once(change: Change) -> None:
        told.append(("once", change))
        leave()

    watch = world.watch()
    watch.subscribe(raises)
    leave = watch.subscribe(once)
    watch.subscribe(lambda change: told.append(("always", change)))
    world.user.write_text(ON)
    first = watch.poll()
    world.user.write_text(OFF)
    second = watch.poll()
    leave()
    assert told == [("once", first), ("always", first), ("always", second)]
    assert reported == [broken, broken]


def test_a_thread_tells_of_a_change_and_ends_with_the_block(world: World) -> None:
    changes: list[Change] = []
    told = threading.Event()

    def callback(change: Change) -> None:
        changes.append(change)
        told.set()

    with watching(world.locations, callback, interval=0.01) as watch:
        replace(world.user, ON)
        assert told.wait(30)
        assert watch.current == changes[-1]
    assert changes[-1].loaded.settings.get(ENABLED) is True
    assert "stockade-settings-watch" not in [thread.name for thread in threading.enumerate()]
    count = len(changes)
    world.user.write_text(OFF)
    time.sleep(0.05)
    assert len(changes) == count
