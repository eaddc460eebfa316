"""The bytes of a settings file, read once and carefully.

A file that is not there is None. One that is there but cannot be read stops the run, since it may
hold the very rule that matters: a link that leads nowhere, a directory, an unreadable or oversized
file. Anything but a regular file is refused before it is read, so that nothing can make us wait.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.settings.problem import whole_file
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.errors import SettingsError
from stockade.placeholder import is_kept

LIMIT: Final = 1 << 20
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class Content(Value):
    """What a file holds, and who could change it."""

    data: bytes
    owner: int
    mode: int


def read_content(file: str) -> Content | None:
    """Read a file, or return None if there is none. Raises SettingsError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        _require_missing(file)
        return None
    except (OSError, ValueError) as error:
        if not is_there(file):
            return None  # a sandbox that runs here keeps the name
        raise _unreadable(file, error) from None
    try:
        return _read(descriptor, file) if is_there(file) else None
    except OSError as error:
        raise _unreadable(file, error) from None
    finally:
        os.close(descriptor)


def is_there(file: str) -> bool:
    """Tell whether something has this name. What cannot be looked at counts as there: reading it will say why."""
    try:
        return not is_kept(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _read(descriptor: int, file: str) -> Content:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise whole_file(file, f"is {kind}, not a file", "Put a settings file there, or remove it.")
    data = b""
    while len(data) <= LIMIT and (piece := os.read(descriptor, LIMIT + 1 - len(data))):
        data += piece
    if len(data) > LIMIT:
        raise whole_file(file, "is larger than 1 MiB", "Settings are short; is this the right file?")
    return Content(data, status.st_uid, stat.S_IMODE(status.st_mode))


def _require_missing(file: str) -> None:
    """Raise if the name leads nowhere only because a link is broken or its directory is none."""
    parent = os.path.dirname(file)
    if is_there(file):
        raise whole_file(file, "is a link that leads nowhere", "Mend the link or remove it.")
    if is_there(parent) and not os.path.isdir(parent):
        kind = "a link that leads nowhere" if os.path.islink(parent) else "not a directory"
        raise whole_file(file, f"cannot be read: {escape(parent)} is {kind}", "Mend it or remove it.")


def _unreadable(file: str, error: OSError | ValueError) -> SettingsError:
    reason = (error.strerror or "error") if isinstance(error, OSError) else str(error)
    return whole_file(file, f"cannot be read: {reason}", "Make it readable for you, or remove it.")
