"""The modes of the terminal that a command shares with the user: remembered before it runs, put back after it.

A command that is killed in the midst of a password, or that means harm, leaves the terminal without echo or without
waiting, and the user's shell would go on with that.

Rules: only a terminal that is both input and output is put back, and only by the group in its foreground. In
``stockade run a | less`` the other program has set the terminal while ours still ran, and must find its modes
unchanged.
Source of truth: termios(3), fcntl(2).
"""

from __future__ import annotations

import fcntl
import os
import termios

from stockade.annotation import TYPE_CHECKING, Final
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable

_STREAMS: Final = (0, 1, 2)
_INPUT, _OUTPUT = 0, 1
#: What a command can set on an open file that it shares with us; the rest of the flags the kernel keeps.
_LEFT_BEHIND: Final = os.O_NONBLOCK | os.O_ASYNC


def remembered() -> Callable[[], None]:
    """Return what puts modes and flags back as they are now."""
    if not os.path.sameopenfile(_INPUT, _OUTPUT):
        return lambda: None
    try:
        modes = termios.tcgetattr(_INPUT)
        flags = {stream: fcntl.fcntl(stream, fcntl.F_GETFL) for stream in _STREAMS if os.isatty(stream)}
    except (OSError, termios.error):
        return lambda: None

    def put_back() -> None:
        with suppress(OSError, termios.error):  # the terminal is gone, which nobody can undo
            if not is_in_front(_INPUT):
                return
            if termios.tcgetattr(_INPUT) != modes:
                termios.tcsetattr(_INPUT, termios.TCSANOW, modes)
            for stream, before in flags.items():
                now = fcntl.fcntl(stream, fcntl.F_GETFL)
                if (now ^ before) & _LEFT_BEHIND:
                    fcntl.fcntl(stream, fcntl.F_SETFL, now & ~_LEFT_BEHIND | before & _LEFT_BEHIND)

    return put_back


def is_in_front(terminal: int) -> bool:
    """Tell whether a terminal is ours to set: it is not if another group of our session is in its foreground."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True  # it is no terminal of our session, so nobody's job control is concerned
