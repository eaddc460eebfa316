"""A child whose directories are listed by this process, as a supervisor does it; with walls: ``enforcement``."""

from __future__ import annotations

import ast
import ctypes
import mmap
import os
import select
import stat
import threading
import traceback
from errno import EBADF, EFAULT, EINTR, EINVAL, ENOTDIR, errorcode
from typing import TYPE_CHECKING, Any

import pytest

from stockade.platforms.linux import kernel, listings, notification
from stockade.platforms.linux.calls import LISTS
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.listings import Listings
from stockade.platforms.linux.seccomp import Features, notified_first, program
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    List = Callable[[Callable[[], object]], Any]

ARCH = arch_of(os.uname().machine)
CALLS = [name for name in LISTS if name in ARCH.numbers()]
HIDDEN = [b"refs", b".mcp.json", b".vscode", b".git"]
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory that holds nothing but placeholders, of all shapes."""
    root = tmp_path / "root"
    for name in (".vscode", ".git"):
        (root / name).mkdir(parents=True)
    (root / ".mcp.json").touch()
    os.mknod(root / "refs", stat.S_IFSOCK)
    return root


def _child(theirs: Channel, writing: int, act: Callable[[], object]) -> None:
    try:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        code = notified_first(ARCH, LISTS) + program(ARCH, Features(unix_sockets="all"))
        listener = kernel.install_filter(code, listen=True)
        theirs.send(Packet(b"L", 0, b"", (listener,)))
        os.close(listener)
        os.write(writing, repr(act()).encode())
    except BaseException:  # noqa: BLE001 - the other process shows it
        os.write(writing, b"!" + traceback.format_exc().encode())
    finally:
        os._exit(0)


@pytest.fixture
def listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> List:
    """Return what an action returns, plain data, in a child for which this process lists."""
    monkeypatch.chdir("/proc")  # where a supervisor lives

    def run(act: Callable[[], object]) -> Any:
        own = Listings([[os.fsencode(root), *HIDDEN], [b"/missing/directory", b"x"]], ARCH)
        own.open()
        mine, theirs = Channel.pair()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            mine.close()
            os.close(reading)
            _child(theirs, writing, act)
        theirs.close()
        os.close(writing)
        packet = mine.receive()
        assert packet is not None
        (listener,) = packet.descriptors
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        while any(event & select.POLLIN for _, event in poller.poll(20_000)):
            try:
                asked = notification.receive(listener)
            except OSError:
                continue
            own.answer(listener, asked)
        os.close(listener)
        mine.close()
        _close(own)
        with os.fdopen(reading, "rb") as answer:
            said = answer.read().decode()
        os.waitpid(child, 0)
        if said.startswith("!"):
            pytest.fail(said)
        return ast.literal_eval(said)

    return run


def _close(own: Listings) -> None:
    """Close what a supervisor holds open for life."""
    for place in own._places.values():
        os.close(place.descriptor)


def _called(call: str, descriptor: int, address: int, count: int) -> int | str:
    """Make a call as it is; return its result, or the name of the error."""
    words = [ctypes.c_long(word) for word in (ARCH.numbers()[call], descriptor)]
    got = libc.syscall(*words, ctypes.c_void_p(address), ctypes.c_ulong(count))
    return int(got) if got >= 0 else errorcode[ctypes.get_errno()]


def _names(raw: bytes, start: int) -> list[bytes]:
    return [listings._name(entry, start) for entry in listings._split(raw)]


def _read(call: str, descriptor: int, count: int = 32768) -> list[bytes]:
    """Return all names from where a descriptor stands."""
    room = ctypes.create_string_buffer(max(count, 1))
    found: list[bytes] = []
    while length := _called(call, descriptor, ctypes.addressof(room), count):
        assert isinstance(length, int), length
        found += _names(room.raw[:length], LISTS[call])
    return found


def test_placeholders_are_not_listed(listed: List, root: Path) -> None:
    assert listed(lambda: (os.listdir(root), [entry.name for entry in os.scandir(root)])) == ([], [])
    assert sorted(os.listdir(root)) == sorted(map(os.fsdecode, HIDDEN))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("count", [300, 1000, 4096, 32768, 0xFFFF_FFFF, 0xFF_0000_8000])
def test_everything_else_is_listed_once_whatever_room_there_is(listed: List, root: Path, call: str, count: int) -> None:
    names = {f"file-{number}" for number in range(700)} | {"refs2", "a.mcp.json", ".vscod"}
    for name in names:
        (root / name).touch()

    def read() -> list[bytes]:
        descriptor = os.open(root, os.O_RDONLY)
        room = mmap.mmap(-1, 1 << 20)
        address = ctypes.addressof(ctypes.c_char.from_buffer(room))
        found: list[bytes] = []
        while length := _called(call, descriptor, address, count):
            assert isinstance(length, int), length
            found += _names(room[:length], LISTS[call])
        return found

    found = listed(read)
    assert sorted(found) == sorted(os.fsencode(name) for name in (*names, ".", ".."))


def test_other_directories_are_the_kernels(listed: List, root: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "refs").mkdir(parents=True)
    (tmp_path / "other" / ".git").mkdir()
    inner = root / "inner" / "refs"
    inner.mkdir(parents=True)
    found = listed(lambda: (sorted(os.listdir(tmp_path / "other")), os.listdir(root / "inner"), os.listdir(root)))
    assert found == ([".git", "refs"], ["refs"], ["inner"])


def test_a_directory_is_listed_once_something_is_in_it(listed: List, root: Path) -> None:
    def read() -> tuple[list[str], ...]:
        before = os.listdir(root)
        (root / ".git" / "HEAD").touch()
        with_it = os.listdir(root)
        (root / ".git" / "HEAD").unlink()
        return before, with_it, os.listdir(root)

    assert listed(read) == ([], [".git"], [])


@pytest.mark.parametrize("call", CALLS)
def test_positions_are_those_of_the_directory(listed: List, root: Path, call: str) -> None:
    """After ``lseek``, and with another descriptor of the same open file, reading goes on where it should."""
    for number in range(50):
        (root / f"file-{number}").touch()

    def read() -> tuple[list[bytes], ...]:
        descriptor = os.open(root, os.O_RDONLY)
        room = ctypes.create_string_buffer(300)
        length = _called(call, descriptor, ctypes.addressof(room), 300)
        assert isinstance(length, int)
        first = _names(room.raw[:length], LISTS[call])
        second = os.lseek(descriptor, 0, os.SEEK_CUR)
        other = os.dup(descriptor)
        rest = _read(call, other)
        os.lseek(descriptor, second, os.SEEK_SET)
        again = _read(call, descriptor)
        os.lseek(other, 0, os.SEEK_SET)
        return first, rest, again, _read(call, descriptor)

    first, rest, again, everything = listed(read)
    assert rest == again
    assert sorted(first + rest) == sorted(everything)
    assert len(everything) == 52


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("address", "count", "error"),
    [
        pytest.param(0, 4096, EFAULT, id="nowhere"),
        pytest.param(8, 4096, EFAULT, id="next to it"),
        pytest.param((1 << 64) - 64, 4096, EFAULT, id="the end of everything"),
        pytest.param(1 << 62, 4096, EFAULT, id="the kernel's"),
        pytest.param(None, 4096, EFAULT, id="not writable"),
        pytest.param(1, 0, EINVAL, id="no room"),
        pytest.param(1, 10, EINVAL, id="too little room"),
        pytest.param(1, 0xFFFF_FFFF_0000_0000, EINVAL, id="no room in the half that counts"),
    ],
)
def test_a_call_that_fails_changes_nothing(
    listed: List, root: Path, call: str, address: int | None, count: int, error: int
) -> None:
    still = mmap.mmap(-1, PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(still))
    libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(PAGE), mmap.PROT_READ)

    def fail() -> tuple[int | str, int, list[bytes]]:
        descriptor = os.open(root, os.O_RDONLY)
        got = _called(call, descriptor, start if address is None else address, count)
        return got, os.lseek(descriptor, 0, os.SEEK_CUR), sorted(_read(call, descriptor))

    assert listed(fail) == (errorcode[error], 0, [b".", b".."])


def test_what_is_no_open_directory_is_refused_by_the_kernel(listed: List, root: Path) -> None:
    room = ctypes.create_string_buffer(4096)

    def fail() -> list[int | str]:
        file = os.open(root / ".mcp.json", os.O_RDONLY)
        named = os.open(root, os.O_PATH)
        descriptors = (file, named, 999, -1, 0xFFFF_FFFF)
        return [_called("getdents64", number, ctypes.addressof(room), 4096) for number in descriptors]

    assert listed(fail) == [errorcode[number] for number in (ENOTDIR, EBADF, EBADF, EBADF, EBADF)]


def test_a_directory_that_is_gone_is_what_it_is_to_the_kernel(listed: List, root: Path) -> None:
    def fail() -> str:
        descriptor = os.open(root, os.O_RDONLY)
        for name in HIDDEN:
            path = root / os.fsdecode(name)
            path.rmdir() if path.is_dir() else path.unlink()
        root.rmdir()
        room = ctypes.create_string_buffer(4096)
        return str(_called("getdents64", descriptor, ctypes.addressof(room), 4096))

    assert listed(fail) == "ENOENT"


def test_threads_are_served_like_anybody(listed: List, root: Path) -> None:
    """From a thread that is not its process's first, with descriptors that come and go meanwhile."""

    def read() -> tuple[list[list[str]], list[str]]:
        found: list[list[str]] = []
        failed: list[str] = []
        busy = True

        def close() -> None:
            while busy:
                number = os.open(root, os.O_RDONLY)
                os.close(number)

        def look() -> None:
            try:
                found.extend(os.listdir(root) for _ in range(30))
            except OSError as error:
                failed.append(errorcode[error.errno or 0])

        closing = threading.Thread(target=close)
        looking = [threading.Thread(target=look) for _ in range(4)]
        for thread in (closing, *looking):
            thread.start()
        for thread in looking:
            thread.join()
        busy = False
        closing.join()
        return found, failed

    found, failed = listed(read)
    assert (found, failed) == ([[]] * 120, [])


def test_who_was_interrupted_asks_again_and_misses_nothing(
    listed: List, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").touch()
    given: list[int] = []
    give = notification.give

    def interrupt(listener: int, identity: int, value: int) -> bool:
        given.append(value)
        if len(given) > 1:
            return give(listener, identity, value)
        notification.answer(listener, identity, EINTR)
        return False

    monkeypatch.setattr(notification, "give", interrupt)

    def read() -> tuple[int | str, list[bytes]]:
        descriptor = os.open(root, os.O_RDONLY)
        room = ctypes.create_string_buffer(4096)
        first = _called("getdents64", descriptor, ctypes.addressof(room), 4096)
        return first, sorted(_read("getdents64", descriptor))

    assert listed(read) == ("EINTR", [b".", b"..", b"file"])


@pytest.mark.parametrize("part", ["copy_of", "write_bytes"])
def test_who_cannot_be_reached_is_left_to_the_kernel(
    listed: List, root: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: object) -> int:
        raise PermissionError(1, "no")

    monkeypatch.setattr(listings, part, fail)
    assert sorted(listed(lambda: os.listdir(root))) == sorted(map(os.fsdecode, HIDDEN))


def test_who_moves_the_position_all_the_time_is_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")
    own = Listings([[os.fsencode(root), *HIDDEN]], ARCH)
    own.open()
    _close(own)
    (place,) = own._places.values()
    entry = bytes(16) + (24).to_bytes(2, "little") + b"\x08refs\0"
    reads: list[int] = []

    def again(_call: int, _descriptor: int, room: int) -> bytes:
        reads.append(room)
        return entry

    monkeypatch.setattr(listings, "_entries", again)
    call = ARCH.numbers()["getdents64"]
    assert own._list(call, -1, 1 << 31, place) == entry
    assert reads == [4096] * (len(HIDDEN) + 1)


def test_nothing_is_told_of_a_directory_that_cannot_be_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir("/proc")
    (tmp_path / "file").touch()
    own = Listings([[os.fsencode(tmp_path / name), b"x"] for name in ("missing", "file")], ARCH)
    own.open()
    assert own._places == {}
