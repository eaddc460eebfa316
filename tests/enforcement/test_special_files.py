"""What lies outside and is no plain file: read-only mounts do not hold these, so something else must."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground, MakeTrial, Trial

ROOT = os.geteuid() == 0

ATTACKS: dict[str, tuple[str, ...]] = {
    "writing to a FIFO": ("write(f'{there}/fifo', flags=os.O_RDWR | os.O_NONBLOCK)", "EACCES"),
    "a FIFO through a link": (
        "os.symlink(f'{there}/fifo', 'a'); write('a', flags=os.O_RDWR | os.O_NONBLOCK)",
        "EACCES",
    ),
    "holding back a writer by a lease": (
        "fcntl.fcntl(os.open(f'{there}/victim', os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
        "EPERM",
    ),
}
ROOT_ATTACKS = {
    "writing to a device node": ("write(f'{there}/null', flags=os.O_WRONLY)", "EACCES"),
    "reading a device node": ("os.open(f'{there}/null', os.O_RDONLY)", "EACCES"),
    "making a device inside": ("os.mknod('null', stat.S_IFCHR | 0o666, os.makedev(1, 3))", "EPERM"),
    "making a block device inside": ("os.mknod('disk', stat.S_IFBLK | 0o666, os.makedev(7, 0))", "EPERM"),
    "a device node in the project": ("write('null', flags=os.O_WRONLY)", "EACCES"),
}
if ROOT:
    ATTACKS |= ROOT_ATTACKS


def _furnish(here: Path, there: Path) -> None:
    os.mkfifo(there / "fifo", 0o666)
    if ROOT:
        os.mknod(there / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        if not any("making" in name and here.name == f"{index:03}" for index, name in enumerate(ATTACKS)):
            os.mknod(here / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS, furnish=_furnish)


@pytest.mark.parametrize("name", ATTACKS)
def test_special_files_outside_are_out_of_reach(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])


def test_a_reader_on_the_host_hears_nothing_through_its_fifo(ground: Ground) -> None:
    fifo = ground.outside / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ground.bare(f"echo bare > {fifo}").returncode == 0
        assert os.read(reader, 100) == b"bare\n"
        done = ground.sandbox().run(f"echo walled > {fifo}")
        assert (done.ok, os.read(reader, 100)) == (False, b"")
        assert b"Permission denied" in done.stderr
    finally:
        os.close(reader)


SERVICES: dict[str, tuple[str, ...]] = {
    "a stream socket by its path": ("socket.socket(socket.AF_UNIX).connect(facts['unix'])", "EACCES"),
    "a stream socket through a link": (
        "os.symlink(facts['unix'], 'alias'); socket.socket(socket.AF_UNIX).connect('alias')",
        "EACCES",
    ),
    "a datagram socket by its path": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', facts['unix_datagram'])",
        "EPERM",
    ),
    "a datagram from a pair": (
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', facts['unix_datagram'])",
        "EPERM",
    ),
    "an abstract socket": ("socket.socket(socket.AF_UNIX).connect('\\0' + facts['abstract'])", "ECONNREFUSED"),
    "opening a socket as a file": ("os.open(facts['unix'], os.O_RDWR)", "EACCES", "ENXIO"),
}


@pytest.fixture(scope="module")
def services(make_trial: MakeTrial) -> Trial:
    return make_trial(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_local_services_are_out_of_reach(services: Trial, name: str) -> None:
    services.judge(name, SERVICES[name])


def test_no_local_service_is_told_anything(services: Trial) -> None:
    assert services.control.reached == ("unix", "unix_datagram", "abstract")
    assert services.inside.reached == ()


REOPEN = "import os; os.write(os.open('/proc/self/fd/0', os.O_WRONLY | os.O_TRUNC), b'changed')"


@pytest.mark.parametrize("stream", [0, 1, 2], ids=["input", "output", "errors"])
def test_a_stream_that_is_a_file_outside_gives_no_more_than_it_was_opened_for(ground: Ground, stream: int) -> None:
    """The caller passes a file that can only be read: it cannot be opened again for writing."""
    victim = ground.outside / "victim"
    script = REOPEN.replace("/fd/0", f"/fd/{stream}")
    words = [sys.executable, "-I", "-S", "-c", script]

    victim.write_text("unchanged")
    with victim.open("rb") as opened, Path(os.devnull).open("r+b") as nothing:
        given = [(opened if number == stream else nothing).fileno() for number in range(3)]
        subprocess.run(words, stdin=given[0], stdout=given[1], stderr=given[2], check=True)
        assert victim.read_text() == "changed"
        victim.write_text("unchanged")
        result = ground.sandbox().attach(words, given)
    assert victim.read_text() == "unchanged"
    assert not result.ok


def test_a_stream_that_is_a_directory_is_no_way_out(ground: Ground) -> None:
    script = "import os; os.close(os.open('made', os.O_CREAT | os.O_WRONLY, dir_fd=3))"
    # Python does not start with a directory as one of its streams.
    words = ["sh", "-c", 'exec "$@" 3<&2 2>/dev/null', "sh", sys.executable, "-I", "-S", "-c", script]
    folder, nothing = os.open(ground.outside, os.O_RDONLY), os.open(os.devnull, os.O_RDWR)
    try:
        subprocess.run(words, stderr=folder, check=True)
        (ground.outside / "made").unlink()
        with pytest.raises(StockadeError, match="standard stream 2 is a directory"):
            ground.sandbox().attach(words, (nothing, nothing, folder))
    finally:
        os.close(folder)
        os.close(nothing)
    assert list(ground.outside.iterdir()) == []


def test_a_lock_of_the_host_is_not_stolen(ground: Ground) -> None:
    """A lock that the host holds stays its own; the walls do not make anybody else's lock disappear."""
    lock = ground.outside / "lock"
    lock.write_text("")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert ground.sandbox().run(f"flock -n {lock} true").exit_code == 1


def test_shared_memory_of_the_host_is_not_seen(ground: Ground) -> None:
    name = f"/dev/shm/stockade-test-{os.getpid()}"
    with open(name, "w") as file:
        file.write("unchanged")
    try:
        assert ground.bare(f"echo changed > {name}").returncode == 0
        with open(name, "w") as file:
            file.write("unchanged")
        done = ground.sandbox().run(f"ls /dev/shm; echo changed > {name} && cat {name}")
        assert (done.exit_code, done.stdout) == (0, b"changed\n"), "the session has one of its own, empty at first"
        with open(name) as file:
            assert file.read() == "unchanged"
    finally:
        os.unlink(name)


def test_the_devices_are_those_that_programs_need(ground: Ground) -> None:
    done = ground.sandbox().run("ls /dev; echo; ls /dev/pts")
    devices, _, terminals = done.output.partition("\n\n")
    assert devices.replace("\n", " ") == "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert terminals == "ptmx\n"
