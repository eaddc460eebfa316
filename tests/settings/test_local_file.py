from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from stockade.errors import LockedError, SettingsError, StockadeError
from stockade.settings import local_file
from stockade.settings.catalog import DENY, ENABLED, EXCLUDED_COMMANDS, SEARCH_DEPTH
from stockade.settings.edit import AddItems, Edit, RemoveItems, SetValue, plan_edit
from stockade.settings.layer import Layer, Origin
from stockade.settings.local_file import Written, apply
from stockade.settings.locks import Lock
from stockade.settings.sources import Locations
from stockade.settings.trust import is_trusted, trust, trusted, untrust

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ON = SetValue(ENABLED, True)
ENABLED_TEXT = b'{\n  "sandbox": {\n    "enabled": true\n  }\n}\n'
OLD = b'{"sandbox": {"enabled": false}}\n'
NEW = b'{"sandbox": {"enabled": true}}\n'


class World:
    """A home and a project of one test, with the two local files."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.locations = Locations(str(self.project), str(self.home), managed=str(root / "managed.json"))
        self.file = self.project / ".stockade" / "settings.local.json"
        self.home_file = self.home / ".stockade" / "settings.local.json"

    def have(self, content: bytes = OLD, *, trusting: bool = True) -> None:
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(content)
        if trusting:
            trust(str(self.home), str(self.file), content)

    def have_in_home(self, content: bytes = OLD) -> None:
        self.home_file.parent.mkdir(exist_ok=True, mode=0o700)
        self.home_file.write_bytes(content)

    def trusts(self) -> bool:
        return is_trusted(str(self.home), str(self.file), self.file.read_bytes())

    def edit(self, *edits: Edit, home_wide: bool = False) -> Written:
        return apply(self.locations, edits or (ON,), lock=None, home_wide=home_wide)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


@pytest.fixture
def _plain_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_plain_umask")
def test_a_new_project_file_is_trusted_and_kept_out_of_git(world: World) -> None:
    assert world.edit() == Written(str(world.file), changed=True, created=True)
    assert world.file.read_bytes() == ENABLED_TEXT
    assert world.trusts()
    assert names(world.file.parent) == [".gitignore", "settings.local.json"]
    assert (world.file.parent / ".gitignore").read_text() == "settings.local.json\n.stockade-*.tmp\n"
    assert (mode(world.file.parent), mode(world.file)) == (0o755, 0o644)


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_git_itself_does_not_see_the_local_file(world: World) -> None:
    (world.project / ".git").rmdir()
    git("init", "-q", str(world.project))
    world.edit()
    (world.file.parent / ".stockade-0123456789abcdef.tmp").touch()
    assert git("-C", str(world.project), "status", "--porcelain", "-uall") == "?? .stockade/.gitignore\n"


def test_what_the_project_ignores_already_is_its_own_business(world: World) -> None:
    world.file.parent.mkdir()
    (world.file.parent / ".gitignore").write_text("mine\n")
    world.edit()
    assert (world.file.parent / ".gitignore").read_text() == "mine\n"
    assert world.file.read_bytes() == ENABLED_TEXT


@pytest.mark.usefixtures("_plain_umask")
def test_a_new_file_in_home_is_private_and_needs_no_trust(world: World) -> None:
    assert world.edit(home_wide=True) == Written(str(world.home_file), changed=True, created=True)
    assert (mode(world.home_file.parent), mode(world.home_file)) == (0o700, 0o600)
    assert names(world.home_file.parent) == ["settings.local.json"]
    assert not world.file.parent.exists()


def test_in_home_the_project_file_is_the_one_of_home(world: World) -> None:
    locations = world.locations.but(cwd=str(world.home))
    assert apply(locations, [ON], lock=None).file == str(world.home_file)
    assert trusted(str(world.home)) == {}


def test_trust_passes_from_the_old_content_to_the_new_and_nothing_else_stays(world: World) -> None:
    world.have()
    assert world.edit() == Written(str(world.file), changed=True)
    assert world.file.read_bytes() == NEW
    assert world.trusts()
    assert trusted(str(world.home)) == {str(world.file): (sha256(NEW).hexdigest(),)}


def test_nothing_to_change_writes_nothing(world: World) -> None:
    world.have()
    before = world.file.stat()
    assert world.edit(SetValue(ENABLED, False)) == Written(str(world.file), changed=False)
    assert world.file.stat() == before
    assert world.edit(RemoveItems(DENY, ("a",)), home_wide=True).changed is False
    assert not world.home_file.exists()


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664])
def test_the_mode_is_kept(world: World, kept: int) -> None:
    world.have()
    world.file.chmod(kept)
    world.edit()
    assert mode(world.file) == kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_is_kept(world: World) -> None:
    world.have_in_home()
    os.chown(world.home_file, 12345, 23456)
    world.edit(home_wide=True)
    status = world.home_file.stat()
    assert (status.st_uid, status.st_gid, world.home_file.read_bytes()) == (12345, 23456, NEW)


def test_an_untrusted_project_file_is_not_edited(world: World) -> None:
    world.have(trusting=False)
    with pytest.raises(StockadeError, match="not trusted") as caught:
        world.edit()
    assert "stockade trust" in caught.value.hint
    assert world.file.read_bytes() == OLD
    assert trusted(str(world.home)) == {}


def test_locked_settings_are_not_edited(world: World) -> None:
    lock = Lock(Origin(Layer.POLICY, "/etc/managed.json"), ("sandbox.enabled",))
    with pytest.raises(LockedError, match="/etc/managed"):
        apply(world.locations, [ON], lock=lock)
    assert not world.file.parent.exists()


@pytest.mark.parametrize(
    ("content", "edit"),
    [
        pytest.param(b"", ON, id="empty"),
        pytest.param(b"{", ON, id="not JSON"),
        pytest.param(b'{"sandbx": {}}', ON, id="an unknown key"),
        pytest.param(b'{"sandbox": {"enabled": "no"}}', ON, id="a wrong type, even where the edit would mend it"),
        pytest.param(OLD, SetValue(SEARCH_DEPTH, 11), id="the result would be out of range"),
        pytest.param(OLD, AddItems(DENY, ("",)), id="the result would hold an empty item"),
    ],
)
def test_what_is_or_would_be_invalid_is_refused(world: World, content: bytes, edit: Edit) -> None:
    world.have(content)
    with pytest.raises(SettingsError) as caught:
        world.edit(edit)
    assert {problem.file for problem in caught.value.problems} == {str(world.file)}
    assert world.file.read_bytes() == content
    assert world.trusts()


def test_a_link_in_home_stays_and_what_it_leads_to_is_edited(world: World, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "stockade.json").write_bytes(OLD)
    world.home_file.parent.mkdir(mode=0o700)
    world.home_file.symlink_to("../../dotfiles/stockade.json")
    world.edit(home_wide=True)
    assert world.home_file.is_symlink()
    assert (dotfiles / "stockade.json").read_bytes() == NEW


def test_a_link_inside_the_project_is_followed(world: World) -> None:
    (world.project / "config").mkdir()
    (world.project / "config" / "s.json").write_bytes(OLD)
    world.file.parent.mkdir()
    world.file.symlink_to("../config/s.json")
    trust(str(world.home), str(world.file), OLD)
    world.edit()
    assert world.file.is_symlink()
    assert (world.project / "config" / "s.json").read_bytes() == NEW
    assert world.trusts()


@pytest.mark.parametrize("what", ["file", "folder", "nowhere"])
def test_a_link_that_leads_out_of_the_project_is_refused(world: World, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "settings.local.json").write_bytes(OLD)
    if what == "folder":
        world.file.parent.symlink_to(outside)
    else:
        world.file.parent.mkdir()
        world.file.symlink_to(outside / "settings.local.json" if what == "file" else "gone.json")
    with pytest.raises(StockadeError, match="link"):
        world.edit()
    assert names(outside) == ["settings.local.json"]
    assert (outside / "settings.local.json").read_bytes() == OLD


def test_a_folder_that_becomes_a_link_during_the_edit_is_not_followed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    find = local_file._place

    def raced(locations: Locations, *, home_wide: bool) -> Any:
        place = find(locations, home_wide=home_wide)
        world.file.parent.rmdir()
        world.file.parent.symlink_to(outside)
        return place

    monkeypatch.setattr(local_file, "_place", raced)
    with pytest.raises(StockadeError, match="cannot be edited"):
        world.edit()
    assert names(outside) == []


@pytest.mark.parametrize("what", ["pipe", "directory", "folder is a file"])
def test_what_is_no_file_is_refused_without_waiting(world: World, what: str) -> None:
    if what == "folder is a file":
        world.file.parent.write_bytes(b"")
    else:
        world.file.parent.mkdir()
        os.mkfifo(world.file) if what == "pipe" else world.file.mkdir()
    with pytest.raises(StockadeError) as caught:
        world.edit()
    assert caught.value.hint


def fail(number: int) -> Any:
    def failing(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return failing


@pytest.mark.parametrize(
    ("function", "number"),
    [
        pytest.param("mkdir", errno.EROFS, id="read-only file system"),
        pytest.param("open", errno.EACCES, id="folder not readable"),
        pytest.param("fsync", errno.ENOSPC, id="no space"),
        pytest.param("fchmod", errno.EPERM, id="mode cannot be kept"),
        pytest.param("rename", errno.EDQUOT, id="quota"),
    ],
)
@pytest.mark.parametrize("home_wide", [False, True], ids=["project", "home"])
def test_a_failing_disk_leaves_the_file_and_its_trust(
    world: World, monkeypatch: pytest.MonkeyPatch, function: str, number: int, *, home_wide: bool
) -> None:
    world.have()
    world.have_in_home()
    before = dict(trusted(str(world.home)))
    broken = type(os)("os")
    broken.__dict__.update(vars(os) | {function: fail(number)})
    monkeypatch.setattr(local_file, "os", broken)
    with pytest.raises(StockadeError, match="cannot be edited") as caught:
        world.edit(home_wide=home_wide)
    assert os.strerror(number) in caught.value.message
    assert caught.value.hint
    monkeypatch.undo()
    assert (world.file.read_bytes(), world.home_file.read_bytes()) == (OLD, OLD)
    assert trusted(str(world.home)) == before
    assert names(world.file.parent) == ["settings.local.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_a_plain_error(world: World) -> None:
    world.have()
    world.file.parent.chmod(0o555)
    with pytest.raises(StockadeError, match="Permission denied"):
        world.edit()
    world.file.parent.chmod(0o755)
    assert world.file.read_bytes() == OLD
    assert world.trusts()


def test_an_editor_that_knows_no_lock_is_not_overwritten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.have_in_home()
    theirs = b'{"sandbox": {"enabled": false, "failIfUnavailable": true}}\n'
    plan = plan_edit
    saves = iter([theirs])

    def slow(text: bytes | None, edits: Any, *, file: str) -> bytes:
        planned = plan(text, edits, file=file)
        for save in saves:
            world.home_file.write_bytes(save)
        return planned

    monkeypatch.setattr(local_file, "plan_edit", slow)
    world.edit(home_wide=True)
    assert world.home_file.read_bytes() == theirs.replace(b'"enabled": false', b'"enabled": true')


def test_what_somebody_writes_during_an_edit_does_not_become_trusted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.have()
    theirs = b'{"sandbox": {"excludedCommands": ["*"]}}'
    swapped = local_file._swapped

    def late(folder: int, temporary: str, name: str, old: os.stat_result | None) -> bool:
        world.file.write_bytes(theirs)
        return swapped(folder, temporary, name, old)

    monkeypatch.setattr(local_file, "_swapped", late)
    with pytest.raises(StockadeError, match="not trusted"):
        world.edit()
    assert world.file.read_bytes() == theirs
    assert not world.trusts()
    assert is_trusted(str(world.home), str(world.file), OLD)


def test_a_file_that_never_rests_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.have()
    monkeypatch.setattr(local_file, "_swapped", lambda *_: False)
    with pytest.raises(StockadeError, match="keeps changing"):
        world.edit()
    assert world.file.read_bytes() == OLD
    assert world.trusts()


def test_a_lock_that_is_never_released_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.have()
    monkeypatch.setattr(local_file, "_PATIENCE", 0.05)
    folder = os.open(world.file.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(StockadeError, match="locked by another program"):
        world.edit()
    os.close(folder)
    assert world.edit().changed


def test_where_there_are_no_locks_edits_still_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.have()
    monkeypatch.setattr(fcntl, "flock", fail(errno.EBADF))
    with pytest.raises(SettingsError):  # the trust store insists on its own lock
        world.edit()
    assert world.edit(home_wide=True).changed


@pytest.mark.parametrize("home_wide", [False, True], ids=["project", "home"])
def test_concurrent_edits_lose_nothing(world: World, *, home_wide: bool) -> None:
    items = [f"command-{number}" for number in range(24)]
    failures: list[BaseException] = []

    def work(part: list[str]) -> None:
        try:
            for item in part:
                world.edit(AddItems(EXCLUDED_COMMANDS, (item,)), home_wide=home_wide)
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(items[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    content = (world.home_file if home_wide else world.file).read_bytes()
    assert sorted(json.loads(content)["sandbox"]["excludedCommands"]) == sorted(items)
    assert home_wide or world.trusts()


# Every call that the edit and the trust store make of the file system, each a moment to die in.
KILLED = """
import os, signal, sys
import fcntl
fatal, cwd, home, managed = int(sys.argv[1]), *sys.argv[2:]
from stockade.settings.catalog import ENABLED
from stockade.settings.edit import SetValue
from stockade.settings.local_file import apply
from stockade.settings.sources import Locations
calls = 0
def deadly(function):
    def counted(*args, **kwargs):
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return counted
for name in "open close write fsync rename unlink mkdir makedirs fchmod fchown fstat stat listdir urandom".split():
    setattr(os, name, deadly(getattr(os, name)))
fcntl.flock = deadly(fcntl.flock)
apply(Locations(cwd, home, managed=managed), [SetValue(ENABLED, True)], lock=None, home_wide=HOME_WIDE)
"""


@pytest.mark.parametrize("home_wide", [False, True], ids=["project", "home"])
@pytest.mark.parametrize("had", [OLD, None], ids=["there", "new"])
def test_killed_at_any_moment_the_file_is_old_or_new_and_the_next_edit_works(
    tmp_path: Path, had: bytes | None, *, home_wide: bool
) -> None:
    script = KILLED.replace("HOME_WIDE", str(home_wide))
    seen, fatal, status = set(), 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        fatal += 1
        world = World(tmp_path.resolve() / str(fatal))
        file = world.home_file if home_wide else world.file
        if had is not None:
            world.have_in_home(had) if home_wide else world.have(had)
        reviewed = {had, NEW if had else ENABLED_TEXT}
        places = (world.locations.cwd, world.locations.home, world.locations.managed)
        command = [sys.executable, "-c", script, str(fatal), *places]
        status = subprocess.run(command, check=False).returncode
        now = file.read_bytes() if file.exists() else None
        seen.add(now)
        assert now in reviewed, fatal
        assert home_wide or now is None or world.trusts(), fatal
        stranger = b'{"sandbox": {"excludedCommands": ["*"]}}'
        assert not is_trusted(str(world.home), str(world.file), stranger)
        world.edit(AddItems(EXCLUDED_COMMANDS, ("a",)), home_wide=home_wide)
        after = json.loads(file.read_bytes())
        assert after["sandbox"]["excludedCommands"] == ["a"], fatal
        assert home_wide or world.trusts(), fatal
        assert list(trusted(str(world.home))) == ([] if home_wide else [str(world.file)]), fatal
        assert not [name for name in names(file.parent) if name.endswith(".tmp")], fatal
    assert status == 0
    assert fatal > 10
    assert seen == reviewed


def test_trust_that_was_revoked_after_a_crash_stays_revoked(world: World) -> None:
    world.have()
    home = str(world.home)
    trust(home, str(world.file), NEW, OLD)
    assert world.trusts()
    untrust(home, str(world.file))
    with pytest.raises(StockadeError, match="not trusted"):
        world.edit()


@pytest.mark.parametrize("name", ["", "settings.local.json"], ids=["the folder", "the file"])
def test_what_a_running_sandbox_keeps_is_not_made(world: World, name: str) -> None:
    kept = world.file.parent / name
    kept.parent.mkdir(exist_ok=True)
    os.mknod(kept, stat.S_IFSOCK)
    with pytest.raises(StockadeError) as caught:
        apply(world.locations, [ON], lock=None)
    assert caught.value.message == f"{world.file} cannot be made while a sandboxed command runs here"
    assert stat.S_ISSOCK(kept.lstat().st_mode)
    assert local_file.is_held(world.locations)
    kept.unlink()
    assert not local_file.is_held(world.locations)
