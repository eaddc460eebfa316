"""What a jail shows at places that must stay absent: empty directories and files that are not the host's.

They belong to the commands' own user, so that ``chmod -R``, ``chown`` and copies of a tree succeed. Nobody may write
them. Where a supervisor says so, a directory's mode need not: a copy gets the same mode, and nobody could remove the
``.gitignore`` below from a copy that is not writable. Root's have a group that does not exist inside: its capabilities
count only for what has both ids there (capabilities(7)), but it owns them. Whatever mode or group they are given,
nothing can be made or written: their file system has as many inodes as there are covers, and its only block is taken
(tmpfs(5); extended attributes count as inodes). Each place has a cover of its own, lest a tool takes two of them for
one.

In a repository a directory holds a ``.gitignore`` that ignores all of it: ``git clean -d`` and ``git stash -u`` remove
empty directories, and would fail. All of these are one file.

Rules: for one jail, and made while it is built; then nobody can reach the directory that holds them all. Where commands
have capabilities, the file system is made on the host.
"""

from __future__ import annotations

import os

from stockade.placeholder import MARK
from stockade.platforms.linux import kernel

_DIRECTORY_MODE = 0o755
_UNOBSERVED_MODE = 0o555
_FILE_MODE = 0o444
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_ATTRIBUTES = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV | kernel.MOUNT_ATTR_NOEXEC
_HEREDITARY = 0o2700
_FILLER = b"filler"
_MOST = 1 << 20
_IGNORE, _IGNORED = b"ignore", b".gitignore"


def new_covers(count: int, group: int | None = None) -> int:
    """Make, detached, a file system with room for so many; where there is a ``group``, all of them get it."""
    # Three inodes are the root's and those of the two files; a link counts as one, too.
    options = ((b"mode", b"0700"), (b"nr_inodes", b"%d" % (2 * count + 3)), (b"nr_blocks", b"2"))
    root = kernel.new_filesystem(b"tmpfs", options, _ATTRIBUTES)
    for name, mode, content in ((_FILLER, 0, b"\0"), (_IGNORE, _FILE_MODE, b"*\n")):
        file = os.open(name, _NEW, mode, dir_fd=root)
        try:
            os.write(file, content)
            os.fchmod(file, mode)  # whatever the umask is
        finally:
            os.close(file)
    if group is not None:
        os.chown(b".", -1, group, dir_fd=root)
        os.chmod(b".", _HEREDITARY, dir_fd=root)
    return root


class Covers:
    """The file system of them, mounted for a while: the kernel copies only what is mounted."""

    __slots__ = ("_made", "_mode", "_mounted", "_root")

    def __init__(self, root: int, place: bytes, *, observed: bool = False) -> None:
        """Take a file system over, and mount it on a directory; ``observed``: a supervisor refuses changes in there."""
        self._mode = _DIRECTORY_MODE if observed else _UNOBSERVED_MODE
        self._root = root
        self._made = 0
        self._mounted = place
        kernel.move_mount(root, kernel.AT_FDCWD, place)

    def make(self, *, directory: bool, closed: bool = False, ignored: bool = False) -> int:
        """Return a new one, as a mount that is detached; if it is to be ``closed``, nobody may look into it either.

        A directory that is ``ignored`` lies in a repository.
        """
        name = b"%d" % self._made
        self._made += 1
        if directory:
            os.mkdir(name, 0o700, dir_fd=self._root)
            if ignored and not closed:
                os.link(_IGNORE, b"%b/%b" % (name, _IGNORED), src_dir_fd=self._root, dst_dir_fd=self._root)
        else:
            os.close(os.open(name, _NEW, 0, dir_fd=self._root))
        mode = self._mode if directory else _FILE_MODE
        os.chmod(name, 0 if closed else mode, dir_fd=self._root)  # whatever the umask is
        os.utime(name, ns=(MARK, MARK), dir_fd=self._root)
        return kernel.open_tree(self._root, name, kernel.OPEN_TREE_CLONE)

    def close(self) -> None:
        """Take the whole away; the covers that were laid stay, and there is no inode left."""
        try:
            for number in range(_MOST):
                os.close(os.open(b"%b%d" % (_FILLER, number), _NEW, 0, dir_fd=self._root))
        except OSError:  # that was the last
            pass
        os.close(self._root)
        kernel.umount(self._mounted)
