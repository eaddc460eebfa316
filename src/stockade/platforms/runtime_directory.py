"""Where one user's sandboxes keep what they must agree on: one directory for each user of this machine.

All sandboxes of a user must find the same one, so it depends on the user alone, never on the environment:
``XDG_RUNTIME_DIR`` is unset under cron and goes when the user logs out. ``/var/tmp`` is first because it outlives a
reboot, as does what is journaled there.

Rules: the directory is ours, open to nobody else and no link; its parent lets nobody else rename it. Whoever takes
the name before us only makes us take the next one; and one that is ours already wins over any that could be made.
No command may see it: whoever plans a jail hides it.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARENTS: Final = ("/var/tmp", "/tmp", "/dev/shm")  # noqa: S108 - used with the care that this module is about
_SUFFIXES: Final = ("", "-1", "-2", "-3")
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_PRIVATE: Final = 0o700
_UNMAPPED: Final = 65534


def runtime_directory(parents: Sequence[str] = PARENTS) -> str:
    """Return the path of this user's directory; make it if there is none."""
    for path in _candidates(parents):
        if _is_ours(path):
            return path
    for path in _candidates(parents):
        if _is_made(path):
            return path
    message = f"no private directory can be had in {' or '.join(parents)}"
    raise UnavailableError(message, f"Make {next(_candidates(parents), 'one')} yourself, with mode 0700.")


def _candidates(parents: Sequence[str]) -> Iterator[str]:
    for parent in parents:
        for suffix in _SUFFIXES:
            yield f"{parent}/stockade-{os.geteuid()}{suffix}"


def _is_ours(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    return status.st_mode & (_PRIVATE | _OTHERS) == _PRIVATE and os.access(path, os.W_OK)


def _is_made(path: str) -> bool:
    if not _is_safe(os.path.dirname(path)):
        return False
    try:
        os.mkdir(path, _PRIVATE)
        os.chmod(path, _PRIVATE)  # whatever the umask took away
    except FileExistsError:
        return _is_ours(path)  # by another process of ours, just now
    except OSError:
        return False
    return True


def _is_safe(parent: str) -> bool:
    """Tell whether nobody else can rename what we make in this directory."""
    try:
        status = os.stat(parent)
    except OSError:
        return False
    sticky = bool(status.st_mode & stat.S_ISVTX)
    if status.st_uid == _UNMAPPED:
        return sticky  # in a user namespace, the host's root may have no name
    if status.st_uid not in {0, os.geteuid()}:
        return False
    return sticky or not status.st_mode & _OTHERS_WRITE
