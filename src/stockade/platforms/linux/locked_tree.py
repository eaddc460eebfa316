"""The jail's mounts once more, in a user namespace below the jail's own: there the kernel locks every one of them.

Commands live in copies of this tree. When a mount namespace ends, the kernel takes its mounts apart, and a descriptor
that outlives it shows what lay under the covers. A *locked* mount stays where it is. The kernel locks the mounts of a
tree when it copies the tree into a mount namespace that a lower user namespace owns, and keeps the locks in copies of
that copy.

The lower user namespace needs its ids before the tree is built, while ``/proc`` can still be written. So a *holder*
process enters it early, waits until the tree is built, and takes the copy then. Descriptors keep both namespaces.

Rules: forked before the jail's pid namespace is made, whose process 1 is the launcher; the holder ends with its pipe.
Source of truth: mount_namespaces(7) "restrictions on mount namespaces", ``disconnect_mount`` in the kernel's
``fs/namespace.c``.
"""

from __future__ import annotations

import os
from errno import EINTR, EPERM

from stockade.platforms.linux import identity, kernel, tree

_DONE = b"\0"
_USER, _MOUNTS = b"user", b"mnt"


class LockedTree:
    """Descriptors of the user namespace and of the mount namespace that holds the locked copy."""

    __slots__ = ("mounts", "user")

    def __init__(self, user: int, mounts: int) -> None:
        """Own both descriptors."""
        self.user = user
        self.mounts = mounts

    def enter(self, copy: int | None) -> None:
        """Enter an earlier copy of the tree, or make a new one; every capability counts only down there from now on."""
        kernel.setns(self.user, kernel.CLONE_NEWUSER)
        kernel.setns(self.mounts if copy is None else copy, kernel.CLONE_NEWNS)
        if copy is None:
            kernel.unshare(kernel.CLONE_NEWNS)


class Holder:
    """The process that takes the copy, seen from the process that builds the tree and from the launcher."""

    __slots__ = ("answers", "orders", "pid")

    def __init__(self, users: bytes, groups: bytes) -> None:
        """Start it in a user namespace below the caller's, with these maps of ids."""
        theirs, self.orders = os.pipe()
        self.answers, mine = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.orders)
                os.close(self.answers)
                _hold(theirs, mine)
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(mine)
        self.hear()
        try:
            identity.write_maps(b"%d" % self.pid, users, groups, keep_groups=True)
        except OSError:
            if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                raise
            # A dead process's maps cannot be written. That is no refusal: the next try is not to take another passage.
            raise OSError(EINTR, os.strerror(EINTR)) from None

    def take(self, *, fresh_processes: bool) -> LockedTree:
        """Have the tree copied as it is now, with nothing in its ``/proc`` if every command gets a fresh one."""
        if fresh_processes:
            tree.cover_processes()
        os.write(self.orders, _DONE)
        self.hear()
        if fresh_processes:
            kernel.umount(tree.PROCESSES)
        names = (b"/proc/%d/ns/%b" % (self.pid, name) for name in (_USER, _MOUNTS))
        locked = LockedTree(*(os.open(name, os.O_RDONLY | os.O_CLOEXEC) for name in names))
        self.close()
        return locked

    def hear(self) -> None:
        """Wait for the holder; raise what the kernel refused it."""
        number = os.read(self.answers, 1)
        if number != _DONE:
            error = number[0] if number else EINTR  # somebody killed it
            raise OSError(error, os.strerror(error))

    def close(self) -> None:
        """Let the holder end, once nobody else has its pipe."""
        os.close(self.orders)
        os.close(self.answers)

    def wait(self) -> None:
        """Let it end, and wait until it has. For its parent."""
        self.close()
        os.waitpid(self.pid, 0)


def _hold(orders: int, answers: int) -> None:
    """Enter the lower user namespace; when told to, copy the mounts; end with the other side."""
    for flags in (kernel.CLONE_NEWUSER, kernel.CLONE_NEWNS):
        try:
            kernel.unshare(flags)
        except OSError as error:
            os.write(answers, bytes([error.errno or EPERM]))
            return
        os.write(answers, _DONE)
        os.read(orders, 1)
