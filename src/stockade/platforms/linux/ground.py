"""Makes in a session's private place what a mount of the plan is laid on.

The plan is made for the host's directory. In the session's version of it a command may have removed a name, or put
something else in its place; and a name that must stay missing needs something to be held by. What stands in the way is
the commands' own, and goes.

Rules: no link is followed, since commands of an older jail may change the same places meanwhile.
"""

from __future__ import annotations

import os
import stat

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(top: bytes, target: bytes, kind: int) -> None:
    """Have a directory or a file at ``target``, below the private place ``top``; of kind 0 is an empty, closed file."""
    *above, last = target[len(top) :].strip(b"/").split(b"/")
    here = os.open(top, _DIRECTORY)
    try:
        for name in above:
            _make_directory(name, here)
            below = os.open(name, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        if stat.S_ISDIR(kind):
            _make_directory(last, here)
        else:
            _make_file(last, here)
    except OSError as error:
        error.filename = target
        raise
    finally:
        os.close(here)


def _make_directory(name: bytes, above: int) -> None:
    found = _kind(name, above)
    if stat.S_ISDIR(found):
        return
    if found:
        os.unlink(name, dir_fd=above)
    os.mkdir(name, 0o755, dir_fd=above)


def _make_file(name: bytes, above: int) -> None:
    found = _kind(name, above)
    if stat.S_ISDIR(found):
        os.rmdir(name, dir_fd=above)
    elif stat.S_ISLNK(found):
        os.unlink(name, dir_fd=above)
    elif found:
        return
    os.close(os.open(name, _FILE, 0, dir_fd=above))


def _kind(name: bytes, above: int) -> int:
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0
