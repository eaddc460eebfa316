"""Pipes through which bytes go from one socket to another inside the kernel, without being copied here.

Rules: a pipe is borrowed for as long as something is in it, so a few serve any number of connections. Only so many are
lent: clients that do not read would else fill the user's share of the system's pipes, and every other program of the
user would get small ones. One that may still hold somebody's bytes is closed and never lent again. Where the system has
no splice(2), or refuses it, or all are lent, there is none to borrow, and whoever wanted one copies.

Source of truth: splice(2), pipe(7) (capacity and the limits on it).
"""

from __future__ import annotations

import fcntl
import os

from stockade.annotation import Final

#: What one pipe holds, if the system allows: larger ones save calls, up to the size of a socket's buffers.
CAPACITY: Final = 1 << 20
_KEPT: Final = 4
#: With ``CAPACITY`` a quarter of what Linux lets one user have, over all programs, before it gives small ones.
_MOST_LENT: Final = 16
_SET_SIZE: Final = getattr(fcntl, "F_SETPIPE_SZ", 1031)  # named since Python 3.10, numbered by Linux
_FLAGS: Final = getattr(os, "SPLICE_F_MOVE", 0) | getattr(os, "SPLICE_F_NONBLOCK", 0)


class Pipe:
    """One pipe; ``held`` is how much is in it."""

    def __init__(self) -> None:
        """Make it as large as the system allows."""
        self.held = 0
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.fcntl(self._in, _SET_SIZE, CAPACITY)
        except OSError:
            return  # the user's share is used up: it stays small

    def fill(self, descriptor: int, most: int) -> int:
        """Take from a socket at most so much and return how much it was, 0 at its end; raise ``OSError``."""
        size = os.splice(descriptor, self._in, min(most, CAPACITY), flags=_FLAGS)
        self.held += size
        return size

    def empty(self, descriptor: int) -> None:
        """Give a socket as much as it takes at once; raise ``OSError`` if that is nothing."""
        while self.held:
            self.held -= os.splice(self._out, descriptor, self.held, flags=_FLAGS)

    def close(self) -> None:
        """Drop it with what is in it."""
        os.close(self._in)
        os.close(self._out)


class Pipes:
    """The pipes that nobody uses now, and how many are used."""

    def __init__(self) -> None:
        """Begin with none."""
        self._idle: list[Pipe] = []
        self._lent = 0
        self._usable = hasattr(os, "splice")

    def __len__(self) -> int:
        """Return how many are idle."""
        return len(self._idle)

    def borrow(self) -> Pipe | None:
        """Return an empty pipe, if there can be one."""
        if not self._usable or self._lent >= _MOST_LENT:
            return None
        try:
            pipe = self._idle.pop() if self._idle else Pipe()
        except OSError:
            return None  # no descriptor is left
        self._lent += 1
        return pipe

    def give_back(self, pipe: Pipe) -> None:
        """Take a pipe back and keep it for others, unless something is in it or there are enough."""
        self._lent -= 1
        if pipe.held or len(self._idle) >= _KEPT or not self._usable:
            pipe.close()
        else:
            self._idle.append(pipe)

    def drop(self, pipe: Pipe) -> None:
        """Take a pipe back that nobody is to use again."""
        self._lent -= 1
        pipe.close()

    def give_up(self) -> None:
        """Lend none any more: the system refuses to splice."""
        self._usable = False
        while self._idle:
            self._idle.pop().close()
