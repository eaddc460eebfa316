from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stockade.errors import SettingsError
from stockade.settings import trust as trust_module
from stockade.settings.trust import is_trusted, trust, trusted, untrust

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIGEST = hashlib.sha256(b"x").hexdigest()


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return home


@pytest.fixture(name="file")
def _file(home: Path) -> str:
    file = home.parent / "settings.json"
    file.write_bytes(b"x")
    return str(file)


def _store(home: Path, text: str = "{}") -> Path:
    store = home / ".stockade/trusted.json"
    store.parent.mkdir(mode=0o700, exist_ok=True)
    store.write_text(text)
    store.chmod(0o600)
    return store


def test_without_a_store_nothing_is_trusted(home: Path, file: str) -> None:
    assert (trusted(str(home)), is_trusted(str(home), file, b"x")) == ({}, False)
    assert list(home.iterdir()) == []


def test_trust_is_in_the_exact_bytes(home: Path, file: str) -> None:
    trust(str(home), file, b"x")
    assert trusted(str(home)) == {file: (DIGEST,)}
    assert [is_trusted(str(home), file, content) for content in (b"x", b"x ", b"")] == [True, False, False]


def test_trust_is_in_a_place_of_a_project_whatever_links_lead_to_the_project(home: Path) -> None:
    project, entrance, planted = home / "project", home / "entrance", home / "project" / "sub"
    file = project / ".stockade" / "settings.json"
    for folder in (file.parent, planted):
        folder.mkdir(parents=True)
    file.write_bytes(b"x")
    entrance.symlink_to(project)
    (planted / ".stockade").symlink_to(file.parent)
    trust(str(home), str(entrance / ".stockade" / "settings.json"), b"x")
    assert list(trusted(str(home))) == [str(file.resolve())]
    assert is_trusted(str(home), str(file), b"x")
    # There the same words would be about other places.
    assert not is_trusted(str(home), str(planted / ".stockade" / "settings.json"), b"x")


def test_newer_content_replaces_older_and_untrust_forgets(home: Path, file: str) -> None:
    trust(str(home), file, b"old")
    trust(str(home), file, b"x")
    assert trusted(str(home)) == {file: (DIGEST,)}
    untrust(str(home), file)
    untrust(str(home), file)
    assert trusted(str(home)) == {}


def test_during_an_edit_the_content_before_is_trusted_too(home: Path, file: str) -> None:
    trust(str(home), file, b"x", b"old", b"older still")
    assert [is_trusted(str(home), file, content) for content in (b"x", b"old", b"older still")] == [True, True, False]
    trust(str(home), file, b"x")
    assert trusted(str(home)) == {file: (DIGEST,)}


def test_the_store_is_private_and_nothing_is_left_beside_it(home: Path, file: str) -> None:
    trust(str(home), file, b"x")
    store = home / ".stockade/trusted.json"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert {path.name for path in store.parent.iterdir()} == {"trusted.json", "trusted.lock"}


def test_a_path_that_is_not_utf8_is_remembered(home: Path) -> None:
    odd = os.fsdecode(b"/no/\xff\n")
    trust(str(home), odd, b"x")
    assert trusted(str(home)) == {odd: (DIGEST,)}


def test_a_failed_write_leaves_the_old_store(home: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(str(home), file, b"x")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SettingsError, match="cannot be written: No space left on device"):
        trust(str(home), file, b"y")
    assert trusted(str(home)) == {file: (DIGEST,)}
    assert {path.name for path in (home / ".stockade").iterdir()} == {"trusted.json", "trusted.lock"}


def test_writers_at_once_lose_nothing(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: trust(str(home), f"/file/{number}", b"x"), range(40)))
    assert trusted(str(home)) == {f"/file/{number}": (DIGEST,) for number in range(40)}


def test_a_lock_that_is_never_released_is_an_error(home: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_module, "_PATIENCE", 0.0)
    _store(home)
    with (home / ".stockade/trusted.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SettingsError, match=r"trusted.lock: is held by another process"):
            trust(str(home), file, b"x")


def _link(store: Path) -> None:
    store.rename(store.with_name("elsewhere"))
    store.symlink_to("elsewhere")


def _pipe(store: Path) -> None:
    store.unlink()
    os.mkfifo(store)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda store: store.chmod(0o620), "can be written by other users", id="group-writable"),
        pytest.param(lambda store: store.chmod(0o602), "can be written by other users", id="world-writable"),
        pytest.param(lambda store: store.parent.chmod(0o777), "can be written by other users", id="directory"),
        pytest.param(_link, "is a link", id="link"),
        pytest.param(lambda store: store.write_text(""), "is empty", id="empty"),
        pytest.param(lambda store: store.write_text("{"), "is not JSON", id="cut off"),
        pytest.param(lambda store: store.write_text("[]"), "is damaged", id="no object"),
        pytest.param(lambda store: store.write_text('{"/a": 1}'), "is damaged", id="no digest"),
        pytest.param(lambda store: store.write_text('{"/a": ["ab"]}'), "is damaged", id="short digest"),
        pytest.param(lambda store: store.write_text('{"/a": []}'), "is damaged", id="no digests"),
        pytest.param(lambda store: store.write_text(json.dumps({"/a": [DIGEST] * 3})), "is damaged", id="too many"),
        pytest.param(lambda store: store.write_text(json.dumps({"/a": DIGEST})), "is damaged", id="no list"),
        pytest.param(_pipe, "is a pipe, not a file", id="pipe"),
        pytest.param(
            lambda store: os.chown(store, 12345, -1),
            "belongs to user 12345",
            id="another user's",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
    ],
)
def test_a_store_that_others_may_have_made_is_an_error_and_stays(
    home: Path, file: str, spoil: Callable[[Path], object], message: str
) -> None:
    store = _store(home, json.dumps({file: [DIGEST]}))
    assert is_trusted(str(home), file, b"x")
    spoil(store)
    before = store.lstat()
    actions: list[Callable[[], object]] = [
        lambda: trusted(str(home)),
        lambda: is_trusted(str(home), file, b"x"),
        lambda: trust(str(home), file, b"y"),
        lambda: untrust(str(home), file),
    ]
    for act in actions:
        with pytest.raises(SettingsError) as caught:
            act()
        assert message in caught.value.message
        assert caught.value.hint
    assert (store.lstat().st_ino, store.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_home_that_cannot_be_written_is_an_error(home: Path, file: str) -> None:
    (home / ".stockade").touch()
    with pytest.raises(SettingsError, match="cannot be written: "):
        trust(str(home), file, b"x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary())
def test_no_store_raises_anything_but_a_settings_error(home: Path, file: str, data: bytes) -> None:
    _store(home).write_bytes(data)
    try:
        answer = is_trusted(str(home), file, b"x")
    except SettingsError:
        answer = False
    assert not answer
