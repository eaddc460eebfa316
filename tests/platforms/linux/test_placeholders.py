from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stockade.errors import InvalidTextError, UnavailableError
from stockade.placeholder import MARK, shape_of
from stockade.platforms.linux import placeholder_directory, placeholders
from stockade.platforms.linux.journal import nodes_entry, path_entry, read, record_name, temporary_entry
from stockade.platforms.linux.placeholders import Lease, Placeholder, acquire, is_kept, journal_directory, sweep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: A file, a node, a directory.
NAMES = (".bashrc", "refs", ".vscode")


class World:
    """A directory in which sandboxes run, and where they keep their records."""

    def __init__(self, base: Path) -> None:
        self.tree = base.resolve() / "tree"
        self.journals = base.resolve() / "journals"
        self.tree.mkdir(parents=True)
        self.journals.mkdir(mode=0o700)

    @property
    def paths(self) -> list[str]:
        return [f"{self.tree}/{name}" for name in NAMES]

    def acquire(self, *paths: str) -> Lease:
        return acquire(paths or self.paths, str(self.journals))

    def sweep(self) -> int:
        return sweep(str(self.journals))

    @property
    def nodes(self) -> list[str]:
        return sorted(path.name for path in self.tree.iterdir() if is_kept(str(path)))

    @property
    def left(self) -> list[str]:
        return sorted([*os.listdir(self.tree), *os.listdir(self.journals)])

    def states(self, lease: Lease) -> list[str]:
        return [placeholder.state for placeholder in lease.placeholders]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_placeholders_are_there_while_held_and_nothing_is_left(world: World) -> None:
    with world.acquire() as lease:
        assert lease.placeholders == tuple(Placeholder(path, "made") for path in world.paths)
        assert lease.targets == tuple(world.paths)
        assert world.nodes == sorted(NAMES)
        assert len(world.left) == len(NAMES) + 1
    assert world.left == []
    lease.release()


def test_no_directory_can_be_made_of_a_placeholder(world: World) -> None:
    with world.acquire():
        for path in world.paths:
            with pytest.raises(FileExistsError):
                os.mkdir(path)
        with pytest.raises(OSError, match=r"No such device or address|Permission denied"):
            os.open(world.paths[1], os.O_RDWR | os.O_CREAT)


def test_what_programs_of_the_host_write_meanwhile_stays(world: World) -> None:
    with world.acquire():
        (world.tree / ".bashrc").write_text("alias")
        (world.tree / ".vscode" / "settings.json").write_text("{}")
        assert world.nodes == ["refs"]
        with world.acquire() as other:
            assert [placeholder.path for placeholder in other.changed] == [world.paths[0], world.paths[2]]
    assert world.left == [".bashrc", ".vscode"]
    assert (world.tree / ".vscode" / "settings.json").read_text() == "{}"


def test_what_was_in_a_placeholder_once_makes_it_the_user_s_own(world: World) -> None:
    with world.acquire():
        (world.tree / ".vscode" / "x").touch()
        (world.tree / ".vscode" / "x").unlink()
        (world.tree / ".bashrc").touch()
    assert world.left == [".bashrc", ".vscode"]


def test_a_directory_with_something_in_it_is_no_placeholder_whatever_its_time(world: World) -> None:
    lease = world.acquire()
    directory = world.tree / ".vscode"
    (directory / "x").touch()
    os.utime(directory, ns=(MARK, MARK))
    with world.acquire() as other:
        assert [placeholder.path for placeholder in other.changed] == [str(directory)]
    lease.release()
    assert world.left == [".vscode"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_placeholders_let_others_do_no_more_than_their_directory(world: World, umask: int) -> None:
    world.tree.chmod(0o2750)
    old = os.umask(umask)
    try:
        with world.acquire(*world.paths, f"{world.tree}/.ssh"):
            assert stat.S_IMODE((world.tree / ".vscode").stat().st_mode) == 0o2750
            assert stat.S_IMODE((world.tree / ".ssh").stat().st_mode) == 0o2700
            assert stat.S_IMODE((world.tree / ".bashrc").stat().st_mode) == 0o666 & ~umask
    finally:
        os.umask(old)
    assert world.left == []


def test_a_disk_that_keeps_no_times_gets_nodes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "utime", lambda *_args, **_options: None)
    with world.acquire() as lease:
        assert world.states(lease) == ["made"] * 3
        assert all(stat.S_ISSOCK(os.lstat(path).st_mode) for path in world.paths)
    assert world.left == []


def test_the_shape_that_a_plan_chose_counts(world: World) -> None:
    shapes: dict[str, Any] = {f"{world.tree}/.bashrc": "node", f"{world.tree}/x": "directory"}
    with acquire(shapes, str(world.journals), shapes=shapes):
        assert stat.S_ISSOCK((world.tree / ".bashrc").lstat().st_mode)
        assert (world.tree / "x").is_dir()
    assert world.left == []


def test_another_that_is_just_being_made_is_relied_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the making of a directory and the entry of its number, only its mode tells what it is."""
    leases: list[Lease] = []
    real = os.mkdir

    def mkdir(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        monkeypatch.undo()
        leases.append(world.acquire(world.paths[2]))

    monkeypatch.setattr(os, "mkdir", mkdir)
    leases.append(world.acquire(world.paths[2]))
    assert [world.states(lease) for lease in leases] == [["present"], ["made"]]
    for lease in leases:
        lease.release()
    world.sweep()
    assert world.left == []


def test_nothing_is_changed_through_what_takes_the_place_of_a_new_directory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = world.journals.with_name("victim")
    victim.mkdir(mode=0o711)
    before = victim.stat()
    real = os.mkdir

    def mkdir(name: str, *args: Any, **kwargs: Any) -> None:
        real(name, *args, **kwargs)
        (world.tree / name).rmdir()
        (world.tree / name).symlink_to(victim)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with world.acquire(world.paths[2]) as lease:
        assert world.states(lease) == ["changed"]
    after = victim.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert (world.tree / ".vscode").is_symlink()


def test_names_of_any_bytes_and_in_any_directory(world: World) -> None:
    (world.tree / "a\nb\udcff ").mkdir()
    paths = [f"{world.tree}/a\nb\udcff /*", f"{world.tree}/a\nb\udcff /\udcfe\n", f"{world.tree}/ -x"]
    with world.acquire(*paths) as lease:
        assert lease.targets == tuple(paths)
        assert all(map(is_kept, paths))
    assert world.left == ["a\nb\udcff "]


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_only_the_last_removes_them(world: World, *, first_leaves_first: bool) -> None:
    leases = [world.acquire(), world.acquire(*world.paths, f"{world.tree}/.profile")]
    assert sorted(world.states(leases[1])) == ["made", "present", "present", "present"]
    before = {name: (world.tree / name).lstat().st_ino for name in NAMES}
    leases.pop(0 if first_leaves_first else 1).release()
    assert {name: (world.tree / name).lstat().st_ino for name in NAMES} == before
    leases.pop().release()
    assert world.left == []


@pytest.mark.parametrize("call", ["mknod", "mkdir", "link"])
def test_one_that_comes_in_between_is_known_by_its_journal(
    world: World, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    leases: list[Lease] = []

    def make(*args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        leases.append(world.acquire())
        getattr(os, call)(*args, **kwargs)

    monkeypatch.setattr(os, call, make)
    leases.append(world.acquire())
    for states in zip(*map(world.states, leases), strict=True):
        assert sorted(states) == ["made", "present"]
    assert [len(lease.descriptors) for lease in leases] == [1, 1]
    for lease in leases:
        lease.release()
    assert world.left == []


def put_file(path: Path) -> None:
    path.write_text("real")


def put_link(path: Path) -> None:
    path.symlink_to("nowhere")


def put_socket(path: Path) -> None:
    directory = os.open(path.parent, os.O_PATH)  # an address has room for a hundred characters
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


REAL = [
    pytest.param(put_file, id="file"),
    pytest.param(put_link, id="dangling link"),
    pytest.param(lambda path: path.mkdir(), id="directory"),
    pytest.param(os.mkfifo, id="pipe"),
    pytest.param(put_socket, id="a socket that was bound"),
]


@pytest.mark.parametrize("put", REAL)
def test_what_is_really_there_is_reported_and_kept(world: World, put: Callable[[Path], object]) -> None:
    real = world.tree / NAMES[1]
    put(real)
    before = real.lstat()
    with world.acquire() as lease:
        assert lease.changed == (Placeholder(str(real), "changed", "something else is there"),)
        assert lease.targets == (world.paths[0], world.paths[2])
    assert world.left == [real.name]
    assert os.path.samestat(real.lstat(), before)


def remove(path: Path) -> None:
    (path.rmdir if path.is_dir() else path.unlink)()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by_sweep", [False, True])
@pytest.mark.parametrize("put", REAL)
def test_what_replaces_a_placeholder_is_kept(
    world: World, put: Callable[[Path], object], name: str, *, by_sweep: bool
) -> None:
    lease = world.acquire()
    real = world.tree / name
    remove(real)
    put(real)
    before = real.lstat()
    with world.acquire() as other:
        assert [placeholder.path for placeholder in other.changed] == [str(real)]
    if by_sweep:
        abandon(lease)
        assert world.sweep() == 1
    else:
        lease.release()
    assert world.left == [real.name]
    assert os.path.samestat(real.lstat(), before)


def abandon(lease: Lease) -> None:
    """Do to a lease what a SIGKILL does."""
    for hold in lease._holds:
        hold.close(unlock=True)
    lease._holds = []


def test_a_stranger_s_socket_of_the_same_shape_is_not_removed(world: World) -> None:
    lease = world.acquire()
    victim = world.tree / NAMES[1]
    os.mknod(world.tree / "other", stat.S_IFSOCK)
    os.rename(world.tree / "other", victim)
    lease.release()
    assert world.left == [victim.name]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("none/x", ("changed", "its directory: No such file or directory"), id="no directory"),
        pytest.param("file/x", ("changed", "its directory: Not a directory"), id="a file for a directory"),
        pytest.param("link/x", ("changed", "its directory: Not a directory"), id="a link to a directory"),
        pytest.param("link/deep/x", ("changed", "its directory: a link stands in its path"), id="a link on the way"),
        pytest.param("y" * 256, ("unneeded", "no name can be so long"), id="a name that is too long"),
    ],
)
def test_what_cannot_be_made_is_a_verdict_for_that_name_alone(world: World, path: str, expected: Any) -> None:
    (world.tree / "file").touch()
    (world.tree / "real" / "deep").mkdir(parents=True)
    (world.tree / "link").symlink_to("real")
    bad = f"{world.tree}/{path}"
    with world.acquire(bad, *world.paths) as lease:
        verdicts = {placeholder.path: placeholder for placeholder in lease.placeholders}
        assert verdicts.pop(bad) == Placeholder(bad, *expected)
        assert {placeholder.state for placeholder in verdicts.values()} == {"made"}
        assert list((world.tree / "real" / "deep").iterdir()) == []
    assert world.left == ["file", "link", "real"]


@pytest.mark.parametrize("call", [("mknod", "open", "mkdir"), ("link", "mkdir")], ids=["new", "named"])
@pytest.mark.parametrize(
    ("number", "own", "expected"),
    [
        pytest.param(errno.EROFS, True, "unneeded", id="read-only file system"),
        pytest.param(errno.EACCES, True, "impossible", id="own directory"),
        pytest.param(errno.EACCES, False, "unneeded", id="another's directory"),
        pytest.param(errno.ENOSPC, True, "impossible", id="full"),
        pytest.param(errno.EDQUOT, True, "impossible", id="over quota"),
        pytest.param(errno.EPERM, False, "impossible", id="no sockets here, or immutable"),
        pytest.param(errno.EINVAL, True, "impossible", id="not such a node"),
        pytest.param(errno.EOPNOTSUPP, True, "impossible", id="no nodes"),
        pytest.param(errno.EMLINK, True, "impossible", id="no more links"),
        pytest.param(errno.ENOENT, True, "changed", id="directory removed"),
    ],
)
def test_the_kernel_s_refusals(
    world: World, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...], number: int, expected: str, *, own: bool
) -> None:
    def owned(owner: int) -> Any:
        real = os.fstat

        def fstat(descriptor: int) -> os.stat_result:
            status = list(real(descriptor))
            status[stat.ST_UID] = owner
            return os.stat_result(status)

        return fstat

    def refusing(function: Any) -> Any:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            if function is opened and not args[1] & os.O_EXCL:
                return function(*args, **kwargs)
            raise OSError(number, os.strerror(number))

        return refuse

    opened = os.open
    for name in call:
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setattr(os, "fstat", owned(4242 if own else 1))
    with world.acquire() as lease:
        monkeypatch.undo()
        assert world.states(lease) == [expected] * len(NAMES)
    assert world.left == []


def test_root_is_refused_by_no_owner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = placeholder_directory.Directory(str(world.tree))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert directory.refusal(OSError(errno.EACCES, "Permission denied")) == ("impossible", "Permission denied")
    directory.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is refused to root")
def test_real_refusals_of_an_ordinary_user(world: World) -> None:
    world.tree.chmod(0o555)
    with world.acquire(*world.paths, "/.stockade-test") as lease:
        assert world.states(lease) == ["impossible"] * 3 + ["unneeded"]
    world.tree.chmod(0o300)  # not to be listed, but to be written
    with world.acquire() as lease:
        assert world.states(lease) == ["made"] * 3
    world.tree.chmod(0o700)
    assert world.left == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_root_in_somebody_s_directory(world: World) -> None:
    os.chown(world.tree, 12345, 12345)
    world.tree.chmod(0o700)
    with world.acquire() as lease:
        assert world.states(lease) == ["made"] * 3
    assert world.left == []


@pytest.mark.parametrize(
    "path", ["", ".", "x", "x/y", "/", "/x/", "/x/..", "/x/../y", "/x/./y", "/x//y", "/x\0y/z", "/x/y\0z"]
)
def test_only_absolute_normal_paths(world: World, path: str) -> None:
    with pytest.raises(InvalidTextError, match="absolute"):
        world.acquire(world.paths[0], path)
    assert world.left == []


def test_no_names_hold_nothing(world: World) -> None:
    with acquire([], str(world.journals)) as lease:
        assert (lease.placeholders, lease.descriptors) == ((), ())


def test_a_directory_that_moves_or_goes_meanwhile(world: World) -> None:
    inner = world.tree / "inner"
    inner.mkdir()
    with world.acquire(f"{inner}/.bashrc"):
        inner.rename(world.tree / "moved")
    assert list((world.tree / "moved").iterdir()) == []
    with world.acquire(f"{world.tree}/moved/.bashrc"):
        shutil.rmtree(world.tree / "moved")
    assert world.left == []


def test_a_directory_that_was_made_anew_has_a_record_of_its_own(world: World) -> None:
    old = world.acquire()
    world.tree.rename(world.tree.with_name("old"))
    world.tree.mkdir()
    with world.acquire() as lease:
        assert world.states(lease) == ["made"] * 3
        old.release()
        assert world.nodes == sorted(NAMES)
    assert world.left == []
    assert list(world.tree.with_name("old").iterdir()) == []


# --- other users, and other machines' or containers' idea of where the records are ---


@pytest.fixture
def stranger(world: World, tmp_path: Path) -> World:
    other = World(tmp_path / "stranger")
    other.tree.rmdir()
    other.tree = world.tree
    return other


@pytest.mark.parametrize("maker_leaves_first", [True, False])
def test_a_stranger_s_placeholders_are_relied_on_and_left_to_him(
    world: World, stranger: World, *, maker_leaves_first: bool
) -> None:
    made, relying = world.acquire(), stranger.acquire()
    assert stranger.states(relying) == ["present"] * 3
    assert len(relying.descriptors) == 2
    (made if maker_leaves_first else relying).release()
    assert world.nodes == sorted(NAMES)
    (relying if maker_leaves_first else made).release()
    world.sweep()
    assert (world.left, stranger.left) == ([], [])


def test_a_stranger_s_placeholder_that_cannot_be_relied_on_is_impossible(world: World, stranger: World) -> None:
    lease = world.acquire()
    holder = os.open(world.tree, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with stranger.acquire() as other:
        assert stranger.states(other) == ["impossible"] * 3
    lease.release()
    assert world.nodes == sorted(NAMES)
    os.close(holder)
    assert world.sweep() == 1
    assert world.left == []


def test_what_is_older_than_this_boot_is_replaced(
    world: World, stranger: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandon(stranger.acquire())
    monkeypatch.setattr(time, "clock_gettime", lambda _: -10.0)
    with world.acquire() as lease:
        assert world.states(lease) == ["made"] * 3
    assert world.left == []


# --- death ---


def test_a_lease_outlives_its_owner_in_whoever_has_the_descriptors(world: World) -> None:
    reader, writer = os.pipe()
    owner = os.fork()
    if owner == 0:
        try:
            lease = world.acquire()
            if os.fork() == 0:
                os.close(writer)
                os.read(reader, 1)  # until the test lets go
                os._exit(0)
            assert lease.descriptors
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitpid(owner, 0)[1] == signal.SIGKILL
    os.close(reader)
    assert world.sweep() == 0
    assert world.nodes == sorted(NAMES)
    os.close(writer)
    wait_until(lambda: world.sweep() == 1)
    assert world.left == []


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():  # the timeout of the test ends it
        time.sleep(0.005)


def test_release_counts_even_if_a_forked_process_has_copies(world: World) -> None:
    lease = world.acquire()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    lease.release()
    assert world.left == []
    os.close(reader)
    os.close(writer)
    os.waitpid(child, 0)


def test_a_forked_process_does_not_release_for_its_parent(world: World) -> None:
    with world.acquire() as lease:
        child = os.fork()
        if child == 0:
            try:
                lease.release()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert world.sweep() == 0
        assert world.nodes == sorted(NAMES)


# Every call that a lease makes of the file system, each a moment to die in.
KILLED = """
import fcntl, os, signal, sys
fatal, journals, *paths = sys.argv[1:]
from stockade.platforms.linux import placeholders
calls = 0
def deadly(function):
    def counted(*args, **kwargs):
        global calls
        calls += 1
        if calls == int(fatal):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return counted
for name in "open close write pread fstat stat readlink mknod link unlink urandom mkdir rmdir utime fchmod".split():
    setattr(os, name, deadly(getattr(os, name)))
fcntl.flock = deadly(fcntl.flock)
placeholders.acquire(paths, journals).release()
"""


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "with another"])
def test_killed_at_any_moment_the_next_sweep_cleans_and_keeps_what_is_real(tmp_path: Path, *, shared: bool) -> None:
    fatal, status, dirty = 0, -signal.SIGKILL, 0
    while status == -signal.SIGKILL:
        fatal += 1
        world = World(tmp_path / str(fatal))
        (world.tree / "real").write_text("real")
        paths = [*world.paths, f"{world.tree}/real"]
        other = world.acquire(world.paths[0]) if shared else None
        command = [sys.executable, "-c", KILLED, str(fatal), str(world.journals), *paths]
        status = subprocess.run(command, check=False).returncode
        dirty += world.left != ["real"]
        if other is not None:
            assert NAMES[0] in world.nodes, fatal
            assert world.sweep() == 0, fatal
            assert NAMES[0] in world.nodes, fatal
            other.release()
        else:
            world.sweep()
        assert world.left == ["real"], fatal
    assert status == 0
    assert fatal > 20
    assert dirty > 10


def test_whatever_call_fails_the_lease_is_whole_or_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: set[str] = set()
    for fatal in range(1, 60):
        world = World(tmp_path / str(fatal))
        calls = iter(range(1, 1000))
        with monkeypatch.context() as patch:
            for name in ("open", "write", "pread", "fstat", "stat", "readlink", "mknod", "link", "unlink", *DIRECTORY):
                patch.setattr(os, name, failing(getattr(os, name), calls, fatal))
            try:
                lease = world.acquire()
                outcomes.update(world.states(lease))
                lease.release()
            except UnavailableError:
                outcomes.add("refused")
        world.sweep()
        assert world.left == [], fatal
    # "present": a directory that could not be opened once it was made. Its mode keeps it, and tells what it is.
    assert outcomes == {"made", "present", "impossible", "refused"}


DIRECTORY = ("mkdir", "rmdir", "utime", "fchmod")


def failing(function: Any, calls: Any, fatal: int) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == fatal:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return function(*args, **kwargs)

    return counted


def test_without_a_place_for_records_there_is_no_lease(world: World) -> None:
    with pytest.raises(UnavailableError) as caught:
        acquire(world.paths, f"{world.journals}/none")
    assert caught.value.message == f"cannot journal placeholders in {world.journals}/none: No such file or directory"
    assert caught.value.hint
    assert sweep(f"{world.journals}/none") == 0
    assert world.left == []


@pytest.mark.parametrize("umask", [0o022, 0o277])
def test_records_have_a_place_of_their_own(world: World, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    monkeypatch.setattr(placeholders, "runtime_directory", lambda: str(world.journals))
    old = os.umask(umask)
    try:
        path = journal_directory()
        with acquire(world.paths) as lease:
            assert world.states(lease) == ["made"] * 3
            assert sweep() == 0
            assert len(os.listdir(path)) == 1
    finally:
        os.umask(old)
    assert (path, os.lstat(path).st_mode & 0o777) == (f"{world.journals}/placeholders", 0o700)
    assert world.left == ["placeholders"]
    os.rmdir(path)
    world.journals.rmdir()
    with pytest.raises(UnavailableError, match="cannot make"):
        journal_directory()


# --- sweeping ---


def test_a_sweep_leaves_what_is_held_and_what_is_no_record(world: World) -> None:
    (world.journals / "README").write_text("x")
    with world.acquire():
        assert world.sweep() == 0
        assert world.nodes == sorted(NAMES)
    assert world.left == ["README"]


def test_a_record_of_a_directory_that_is_another_now_is_dropped_and_nothing_removed(world: World) -> None:
    os.mknod(world.tree / "x", stat.S_IFSOCK)
    inode = (world.tree / "x").lstat().st_ino
    record = world.journals / record_name(1, world.tree.stat().st_ino + 1)
    record.write_bytes(path_entry(str(world.tree)) + nodes_entry(inode, ["x"]))
    assert world.sweep() == 1
    assert world.left == ["x"]


kinds = st.sampled_from(["node", "other node", "file", "directory", "link"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_journal_makes_a_sweep_remove_what_is_not_that_very_node(world: World, data: st.DataObject) -> None:
    shutil.rmtree(world.tree)
    world.tree.mkdir()
    found = data.draw(st.dictionaries(st.sampled_from([*NAMES, ".stockade-" + "0" * 16]), kinds))
    for name, kind in found.items():
        path = world.tree / name
        if kind in {"node", "other node"}:
            os.mknod(path, stat.S_IFSOCK | (0 if kind == "node" else 0o600))
        else:
            {"file": put_file, "link": put_link, "directory": os.mkdir}[kind](path)
    inodes = {name: (world.tree / name).lstat().st_ino for name in found}
    numbers = st.sampled_from([*inodes.values(), 1]) if inodes else st.just(1)
    entries = st.one_of(
        st.binary(),
        st.just(path_entry(str(world.tree))),
        st.builds(nodes_entry, numbers, st.lists(st.sampled_from([*NAMES, "..", f"../tree/{NAMES[0]}"]))),
        st.builds(temporary_entry, st.sampled_from([*NAMES, ".stockade-" + "0" * 16])),
    )
    text = b"".join(data.draw(st.lists(entries)))
    (world.journals / record_name(1, world.tree.stat().st_ino)).write_bytes(text)
    world.sweep()
    named = read(text)
    for name, kind in found.items():
        removed = not os.path.lexists(world.tree / name)
        ours = (inodes[name], name) in named.nodes or name in named.temporaries
        assert removed == (kind == "node" and ours and str(world.tree) in named.paths)


# --- git ---


def test_git_sees_nothing_of_them(world: World) -> None:
    home = world.journals / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str, directory: Path = world.tree) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments]
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    git("init", "-q")
    (world.tree / "sub").mkdir()
    (world.tree / "sub" / "file").write_text("1")
    (world.tree / "untracked").write_text("1")
    nodes = [".bashrc", ".gitconfig", "refs"]
    names = [*nodes, ".gitmodules", ".vscode", "sub/.git", "sub/.mcp.json"]
    shapes: dict[str, Any] = {f"{world.tree}/{name}": shape_of(name, at_home=False) for name in names}
    with acquire(shapes, str(world.journals), shapes=shapes) as lease:
        assert world.states(lease) == ["made"] * len(names)
        assert git("status", "--porcelain", "-uall") == "?? sub/file\n?? untracked\n"
        assert git("add", "-A") == ""
        git("commit", "-qm", "all")
        assert git("ls-files") == "sub/file\nuntracked\n"
        assert git("status", "--porcelain", "--ignored", directory=world.tree / "sub") == ""
        (world.tree / "new").write_text("1")
        assert all(is_kept(f"{world.tree}/{name}") for name in names)
        git("stash", "-u")
        assert git("status", "--porcelain", "-uall") == ""
        git("stash", "pop")
        git("clean", "-fdx")
        # Empty directories go with what git cleans; nothing that it does not see.
        assert all(is_kept(f"{world.tree}/{name}") for name in nodes)
    assert git("status", "--porcelain", "-uall") == ""


# --- many at once ---

CROWD = """
import os, random, stat, sys, time
from stockade.platforms.linux.placeholders import acquire, sweep
seed, journals, tree, *names = sys.argv[1:]
chance = random.Random(int(seed))
for turn in range(60):
    chosen = chance.sample(names, chance.randint(1, len(names)))
    if chance.random() < 0.1:
        sweep(journals)
    lease = acquire([f"{tree}/{name}" for name in chosen], journals)
    assert len(lease.targets) == len(chosen), lease.placeholders
    before = {path: os.lstat(path).st_ino for path in lease.targets}
    for _ in range(chance.randint(0, 5)):
        time.sleep(chance.random() / 2000)
        assert {path: os.lstat(path).st_ino for path in lease.targets} == before
    if chance.random() < 0.02:
        os._exit(0)  # without letting go, as if killed
    lease.release()
"""


def test_a_crowd_never_loses_a_placeholder_and_leaves_none(world: World) -> None:
    arguments = [str(world.journals), str(world.tree), *NAMES]
    crowd = [subprocess.Popen([sys.executable, "-c", CROWD, str(seed), *arguments]) for seed in range(20)]
    assert [process.wait() for process in crowd] == [0] * len(crowd)
    world.sweep()
    assert world.left == []


def test_a_bare_node_that_is_journaled_goes_even_where_a_file_would_be_made_today(world: World) -> None:
    path = world.tree / "commondir"
    os.mknod(path, stat.S_IFSOCK)
    text = path_entry(str(world.tree)) + nodes_entry(path.lstat().st_ino, ["commondir"])
    (world.journals / record_name(1, world.tree.stat().st_ino)).write_bytes(text)
    world.sweep()
    assert (os.listdir(world.tree), os.listdir(world.journals)) == ([], [])
