"""A terminal between the user's and the command's.

The command gets a terminal of its own, so job control works inside and nothing inside can type into the user's
shell or leave the user's terminal in a strange state: its modes are put back however the command ends.
"""

from __future__ import annotations

import fcntl
import os
import signal
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from stockade.cli import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

_PIECE: Final = 1 << 16
_WINDOW: Final = 8  # struct winsize: four shorts
_END_OF_INPUT: Final = b"\x04"


def relayed(
    options: running.RunOptions, shown: Terminal, locations: Locations | None, command: str | Sequence[str] | None
) -> int:
    """Run a command on a terminal of its own; return its exit status."""
    master, slave = os.openpty()
    try:
        with _user_terminal(0, master):
            copies = {0: lambda: _to_command(master), master: lambda: _copy(master, 1)}
            status = running.attached(
                options, shown, locations, command, streams=(slave, slave, slave), terminal=True, beside=copies
            )
            os.close(slave)
            slave = -1
            while _copy(master, 1):
                """The last words, until the terminal has nobody behind it."""
        return status
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


def _to_command(master: int) -> bool:
    """Pass on what the user types; where the user's input has ended, end the command's line input too."""
    if _copy(0, master):
        return True
    with suppress(OSError):
        os.write(master, _END_OF_INPUT)
    return False


def _copy(source: int, target: int) -> bool:
    """Copy what is there; ``False`` at the end."""
    try:
        piece = os.read(source, _PIECE)
    except OSError:
        return False
    view = memoryview(piece)
    while view:
        view = view[os.write(target, view) :]
    return bool(piece)


@contextmanager
def _user_terminal(user: int, master: int) -> Iterator[None]:
    """Hand every key through, and keep the sizes equal, for as long as this lasts."""
    if not os.isatty(user):
        yield
        return
    modes = termios.tcgetattr(user)

    def resize(_number: int = 0, _frame: object = None) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(user, termios.TIOCGWINSZ, bytes(_WINDOW))
            fcntl.ioctl(master, termios.TIOCSWINSZ, size)

    before = signal.signal(signal.SIGWINCH, resize)
    resize()
    tty.setraw(user)
    try:
        yield
    finally:
        termios.tcsetattr(user, termios.TCSADRAIN, modes)
        signal.signal(signal.SIGWINCH, before)
