"""Whether managed settings are managed: only root should be able to change them.

A policy that others can write still counts, since to drop it would be looser; but it is said.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.settings.content import Content

_OVERFLOW: Final = 65534  # how root appears from inside a user namespace that does not map it


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


def _is_mine(path: str) -> bool:
    """Tell whether this user, not being root, can write a path (by an access list, for example)."""
    return os.geteuid() != 0 and os.access(path, os.W_OK)
