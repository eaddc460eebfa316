"""A pair of terminal ends for a command, made in the jail's own ``/dev/pts``.

The launcher hands out the jail's ``ptmx`` by descriptor; opened again through ``/proc``, it makes terminals there, so
that inside ``tty`` prints a name and the name can be opened. Where that fails, a terminal of the host serves: it works
as well, but has no name inside. Source of truth: pts(4), ioctl_tty(2).
"""

from __future__ import annotations

import fcntl
import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIOCSPTLCK: Final = 0x4004_5431
_TIOCGPTPEER: Final = 0x5441
_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC


def open_pair(multiplexers: Sequence[int]) -> tuple[int, int]:
    """Return both ends of a new terminal, the command's last, made by the first multiplexer that can."""
    for multiplexer in multiplexers:
        try:
            return _open_inside(multiplexer)
        except OSError:
            break
    try:
        return os.openpty()
    except OSError as error:
        message = f"there is no terminal to be had: {error.strerror}"
        raise UnavailableError(message, "see kernel.pty.max in sysctl, and close some") from error


def _open_inside(multiplexer: int) -> tuple[int, int]:
    ours = os.open(f"/proc/self/fd/{multiplexer}", _FLAGS)
    try:
        fcntl.ioctl(ours, _TIOCSPTLCK, bytes(4))
        return ours, fcntl.ioctl(ours, _TIOCGPTPEER, _FLAGS)
    except OSError:
        os.close(ours)
        raise
