"""Whose a settings file is: whether managed settings are managed, and whether a project's are a stranger's.

Only root should be able to change managed settings. A policy that others can write still counts, since to drop it would
be looser; but it is said. In a directory that everybody may write, such as /tmp, anybody could put a project's settings
and so stop the runs of all: there a file counts only if it is this user's or root's. But a command may have opened a
directory of this user: there a file counts, whatever its owner. /tmp belongs to root and is open to everybody, so for
root, too, it counts as such a directory.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.settings.content import Content

_OVERFLOW: Final = 65534  # how root appears from inside a user namespace that does not map it
#: Root's own directories that are open by purpose (hier(7)); on macOS the first two are links.
_PUBLIC: Final = frozenset(("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm"))  # noqa: S108


def managed_warnings(file: str, content: Content) -> tuple[str, ...]:
    """Return a warning if somebody besides root can change a managed settings file."""
    directory = os.path.dirname(file)
    try:
        place = os.stat(directory)
    except OSError:  # gone since the file was read
        return ()
    owners = {content.owner, place.st_uid} - {0, _OVERFLOW}
    modes = content.mode | place.st_mode
    if owners or modes & (stat.S_IWGRP | stat.S_IWOTH) or _is_mine(file) or _is_mine(directory):
        name = escape(file)
        return (f"{name} is managed, but users besides root can change it; chown root and chmod go-w it and its place",)
    return ()


def is_strangers(file: str) -> bool:
    """Tell whether somebody else put a project's settings file (or its folder) where everybody may put things."""
    folder = os.path.dirname(file)
    return _is_planted(folder, os.path.dirname(folder)) or _is_planted(file, folder)


def _is_planted(path: str, place: str) -> bool:
    try:
        there, around = os.lstat(path), os.stat(place)
    except OSError:
        return False  # what cannot be looked at is for its reader to complain about
    if there.st_uid in (0, _OVERFLOW, os.geteuid()):
        return False
    # The owner of a place is at home there, also for root, who runs something in the project of another user.
    at_home = there.st_uid == around.st_uid
    # No command of ours opens the mode of a directory that is not ours (chmod(2): EPERM).
    opened_by_us = around.st_uid == os.geteuid() and place not in _PUBLIC
    unasked = bool(around.st_mode & stat.S_IWOTH) and not at_home and not opened_by_us
    # The owner of a link says who put it there; its mode says nothing.
    return unasked or (stat.S_ISREG(there.st_mode) and bool(there.st_mode & stat.S_IWOTH))


def _is_mine(path: str) -> bool:
    """Tell whether this user, not being root, can write a path (by an access list, for example)."""
    return os.geteuid() != 0 and os.access(path, os.W_OK)
