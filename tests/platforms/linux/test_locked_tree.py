"""A copy of a tree in a lower user namespace keeps its covers when it is gone; an ordinary copy does not."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import identity, kernel
from stockade.platforms.linux.locked_tree import Holder, LockedTree

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 30.0
_ALL = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS


def _in_child(folder: Path) -> str:
    """Look in a process of its own, for what it does to its namespaces cannot be undone."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, _seen(folder).encode())
        except OSError as error:
            os.write(writer, f"{error.strerror} {error.filename!r}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        return answer.read()


def _seen(folder: Path) -> str:
    """Cover a file, copy the tree in both ways, end both copies, and tell what descriptors of them show."""
    users, groups = b"%d %d 1" % (os.geteuid(), os.geteuid()), b"%d %d 1" % (os.getegid(), os.getegid())
    kernel.unshare(_ALL)
    identity.write_maps(b"self", users, groups)
    holder = Holder(users, groups)
    kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, 0, kernel.MS_PRIVATE)
    cover = kernel.open_tree(kernel.AT_FDCWD, os.fsencode(folder / "cover"), kernel.OPEN_TREE_CLONE)
    kernel.move_mount(cover, kernel.AT_FDCWD, os.fsencode(folder / "secret"))
    taken = holder.take(fresh_processes=True)
    locked, plain = (_from_copy(folder, way) for way in (taken, None))
    # The kernel takes a namespace apart some time after its last process. The plain copy shows when that is done.
    deadline = time.monotonic() + PATIENCE
    while _told(*plain) != "secret, processes" and time.monotonic() < deadline:
        time.sleep(0.01)
    return f"plain: {_told(*plain)}; locked: {_told(*locked)}"


def _from_copy(folder: Path, taken: LockedTree | None) -> tuple[int, int]:
    """Return descriptors of a directory and of the root, sent by a process in a copy of its own that has ended."""
    mine, theirs = socket.socketpair()
    if (child := os.fork()) == 0:
        try:
            if taken is None:
                kernel.unshare(kernel.CLONE_NEWNS)
            else:
                taken.enter(None)
            socket.send_fds(theirs, [b"x"], [os.open(folder, os.O_PATH), os.open("/", os.O_PATH)])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    _, (directory, root), _, _ = socket.recv_fds(mine, 1, 2)
    return directory, root


def _told(directory: int, root: int) -> str:
    file = os.open("secret", os.O_RDONLY, dir_fd=directory)
    processes = os.open("proc", os.O_RDONLY, dir_fd=root)
    try:
        return f"{os.read(file, 100).decode()}, {'processes' if os.listdir(processes) else 'nothing'}"
    finally:
        os.close(file)
        os.close(processes)


def test_a_cover_that_is_locked_outlives_its_namespace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "cover").write_text("cover")
    assert _in_child(tmp_path) == "plain: secret, processes; locked: cover, nothing"


def test_a_holder_ends_with_the_other_side() -> None:
    child = os.fork()
    if child == 0:
        users, groups = b"%d %d 1" % (os.geteuid(), os.geteuid()), b"%d %d 1" % (os.getegid(), os.getegid())
        try:
            kernel.unshare(_ALL)
            identity.write_maps(b"self", users, groups)
            Holder(users, groups).wait()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)


def test_a_holder_that_is_killed_is_an_interruption_and_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    write_maps = identity.write_maps

    def kill_first(process: bytes, users: bytes, groups: bytes, *, keep_groups: bool) -> None:
        os.kill(int(process), signal.SIGKILL)
        os.waitid(os.P_PID, int(process), os.WEXITED | os.WNOWAIT)
        write_maps(process, users, groups, keep_groups=keep_groups)

    monkeypatch.setattr(identity, "write_maps", kill_first)
    users, groups = b"%d %d 1" % (os.geteuid(), os.geteuid()), b"%d %d 1" % (os.getegid(), os.getegid())
    with pytest.raises(InterruptedError):
        # Root may write the maps of a dead process. Then its silence tells.
        Holder(users, groups).hear()
