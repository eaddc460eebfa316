"""``chmod`` with the setgid bit, done for a command if it is a directory that is meant, and refused if it is not.

A setgid program that stays on the host gives its group's rights to everybody; a setgid directory hands its group on to
new files, which shared repositories need (``git init --shared``). A filter sees the bit but not what the path means. So
the target is found once, held open, looked at, and changed by this very descriptor: a caller that exchanges the path
meanwhile changes nothing else.

Rules: the call is never let go on to the kernel, which would read the path again. It is refused to a caller that has
become another user, or gave up the right to change the files of others, since it is done with the supervisor's rights.
Source of truth: chmod(2), fchmodat2(2), inode(7).
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL, ENOENT, EPERM

from stockade.platforms.linux.notification import as_int
from stockade.platforms.linux.onlooker import asked_of
from stockade.platforms.linux.walk import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.calls import Use

SETGID = 0o2000
_MODE_BITS = 0o7777
_FLAGS = 0x100 | 0x1000  # AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_EMPTY_PATH = 0x1000
_CAP_FOWNER = 3
_NAMED_BY_PATH = 0


def change(
    thread: int, use: Use, mode: int, arguments: tuple[int, ...], still_waits: Callable[[], bool] = lambda: True
) -> int:
    """Change the mode of a directory as a thread asks; return the error number, 0 if it is done.

    ``still_waits`` tells whether it was that thread, and no later one of its number, whose path was read.
    Raises ``OSError`` if the thread cannot be looked at.
    """
    flags = arguments[use.flags] if use.flags >= 0 else 0
    if flags & ~_FLAGS:
        return EINVAL
    if use.path < _NAMED_BY_PATH:
        return _of_descriptor(thread, b"fd/%d" % as_int(arguments[use.directory]), mode, still_waits)
    start, text = asked_of(use, thread, arguments)
    if not text:
        return _of_descriptor(thread, start, mode, still_waits) if flags & _EMPTY_PATH else ENOENT
    with walk(thread, start, text, follow=use.follows_links(arguments)) as found:
        return found.error or _change(thread, found.target, mode, still_waits)


def _of_descriptor(thread: int, start: bytes, mode: int, still_waits: Callable[[], bool]) -> int:
    target = os.open(b"%d/%b" % (thread, start), os.O_PATH | os.O_CLOEXEC)
    try:
        return _change(thread, target, mode, still_waits)
    finally:
        os.close(target)


def _change(thread: int, target: int, mode: int, still_waits: Callable[[], bool]) -> int:
    about = os.fstat(target)
    if not stat.S_ISDIR(about.st_mode) or not _may_change(thread, about.st_uid) or not still_waits():
        return EPERM
    try:
        # By its link in /proc, since fchmod(2) takes no descriptor that only names; the mount still has its say.
        os.chmod(b"%d/fd/%d" % (os.getpid(), target), mode & _MODE_BITS)
    except OSError as error:
        return error.errno or EPERM
    return 0


def _may_change(thread: int, owner: int) -> bool:
    """Tell whether a thread is the user that this process is, and owns a file or has the right to act as if it did."""
    with open(b"%d/status" % thread, "rb") as file:
        lines = dict(line.split(b":\t", 1) for line in file if line.startswith((b"Uid:", b"CapEff:")))
    user = int(lines[b"Uid"].split()[3])
    return user == os.geteuid() and (owner == user or bool(int(lines[b"CapEff"], 16) >> _CAP_FOWNER & 1))
