"""A path walked as the kernel would walk it for another process, step by step.

The one who walks stands elsewhere: ``/proc/self`` means somebody else there, and absolute links start at another root.
So each name is opened by itself, links are read and continued from the caller's own root, and links that are doors
(``/proc/PID/fd/3``) are passed through. What is found is held open: it stays what it was, whatever is renamed then.

Rules: nothing is opened but to be named (``O_PATH``); the working directory of this process is a ``/proc`` that shows
the caller (see ``supervisor``), so that paths here begin with numbers of processes.
Source of truth: path_resolution(7), proc(5).
"""

from __future__ import annotations

import os
import stat
from errno import ELOOP, ENOENT, ENOTDIR

from stockade.platforms.linux import glance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

MOST_LINKS = 40
_NAME = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_THROUGH = os.O_PATH | os.O_CLOEXEC
_SELVES = {b"self": b"NStgid:", b"thread-self": b"NSpid:"}


class Found:
    """How far a walk came.

    ``directory`` holds the last directory and ``name`` the last name in it, not followed by a link; ``target`` what is
    there, or -1. ``error`` is what the kernel answered; ``rest`` are the names behind the one that it was about.
    """

    __slots__ = ("directory", "error", "name", "rest", "target")

    def __init__(self, directory: int, name: bytes = b"", target: int = -1) -> None:
        """Own both descriptors."""
        self.directory = directory
        self.name = name
        self.target = target
        self.error = 0
        self.rest: list[bytes] = []

    def close(self) -> None:
        """Let go of both."""
        for descriptor in {self.directory, self.target} - {-1}:
            os.close(descriptor)
        self.directory = self.target = -1

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go."""
        self.close()


def walk(thread: int, start: bytes, path: bytes, *, follow: bool = True) -> Found:
    """Walk a path of a thread; ``start`` is what a relative one begins at: ``cwd``, or ``fd/`` and a number.

    Raises ``OSError`` only if the thread cannot be looked at.
    """
    return _Walk(thread, follow=follow).go(start, path)


class _Walk:
    """One walk on its way."""

    def __init__(self, thread: int, *, follow: bool) -> None:
        self.thread = thread
        self.follow = follow
        self.links = 0
        self.todo: list[bytes] = []

    def go(self, start: bytes, path: bytes) -> Found:
        self.todo = _names(path)
        found = Found(self.open_start(b"root" if path[:1] == b"/" else start))
        try:
            while self.todo and not found.error:
                self.step(found)
        except BaseException:
            found.close()
            raise
        if not found.error and found.target < 0:
            found.target = os.dup(found.directory)  # the path was a directory's own: "/", "." or what ends in ".."
        found.rest = self.todo[::-1]
        return found

    def open_start(self, start: bytes) -> int:
        return os.open(b"%d/%b" % (self.thread, start), _THROUGH)

    def step(self, found: Found) -> None:
        """Take the next name."""
        _enter(found)
        if found.error:
            return
        name = self.todo.pop()
        if name == b"..":
            found.name = b""
            self.move(found, os.open(b"..", _NAME, dir_fd=found.directory))
            return
        found.name = name
        try:
            found.target = os.open(name, _NAME, dir_fd=found.directory)
        except OSError as error:
            found.error = error.errno or ENOENT
            return
        if stat.S_ISLNK(os.fstat(found.target).st_mode) and (self.todo or self.follow):
            self.pass_link(found)

    def pass_link(self, found: Found) -> None:
        """Go where a link leads."""
        self.links += 1
        if self.links > MOST_LINKS:
            found.error = ELOOP
            return
        of_processes = glance.is_of_processes(found.target)
        if of_processes and found.name not in _SELVES:
            self.pass_door(found)
            return
        text = self.own_number(found.name) if of_processes else os.readlink(b"", dir_fd=found.target)
        os.close(found.target)
        found.target = -1
        self.todo += _names(text)
        if text[:1] == b"/":
            self.move(found, self.open_start(b"root"))

    def pass_door(self, found: Found) -> None:
        """Go through a link of ``/proc`` that is no text: what is behind has no name there."""
        try:
            behind = os.open(found.name, _THROUGH, dir_fd=found.directory)
        except OSError as error:
            found.error = error.errno or ENOENT
            return
        os.close(found.target)
        found.target = behind

    def own_number(self, name: bytes) -> bytes:
        """Return what ``/proc/self`` says to the thread."""
        own = _SELVES[name]
        with open(b"%d/status" % self.thread, "rb") as file:
            lines = dict(line.partition(b"\t")[::2] for line in file)
        process = lines[b"NStgid:"].split()[-1]
        return process if own == b"NStgid:" else b"%b/task/%b" % (process, lines[own].split()[-1])

    def move(self, found: Found, directory: int) -> None:
        """Stand in another directory."""
        found.close()
        found.directory = directory


def _enter(found: Found) -> None:
    """Stand in what was found last, if that is a directory."""
    if found.target < 0:
        return
    if not stat.S_ISDIR(os.fstat(found.target).st_mode):
        found.error = ENOTDIR
        return
    os.close(found.directory)
    found.directory, found.target = found.target, -1


def _names(path: bytes) -> list[bytes]:
    """Return the names of a path, the last one first."""
    return [name for name in path.split(b"/")[::-1] if name not in {b"", b"."}]
