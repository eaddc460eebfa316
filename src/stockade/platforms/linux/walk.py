"""A path walked as the kernel would walk it for another process, step by step.

The one who walks stands elsewhere: ``/proc/self`` means somebody else there, and absolute links start at another root.
So the kernel takes the names up to the first link (``RESOLVE_NO_SYMLINKS``), links are read and continued from the
caller's own root, and links that are doors (``/proc/PID/fd/3``) are passed through. What is found is held open: it
stays what it was, whatever is renamed then.

Rules: nothing is opened but to be named (``O_PATH``); the working directory of this process is a ``/proc`` that shows
the caller (see ``supervisor``), so that paths here begin with numbers of processes. A walk has a price, because other
callers wait for its end, and the kernel would walk the same way once more: 40 links of 4,095 bytes make 50,000 names.
One through more than ``MOST_NAMES`` raises ``DearPathError``, and the caller gets its ``ELOOP``.
Source of truth: path_resolution(7), proc(5), openat2(2).
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
#: So many names may be walked, those twice that are tried twice. As many links as the kernel follows, with a dozen
#: names each, are not too many. A name takes 0.1 to 0.4 microseconds.
MOST_NAMES = 1500
_SPLIT_AT_ONCE = 8  # names that are taken out of a text in the time in which the kernel takes one
_NOTHING = (b"", b".")
_NAME = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_THROUGH = os.O_PATH | os.O_CLOEXEC
_SELVES = {b"self": b"NStgid:", b"thread-self": b"NSpid:"}


class DearPathError(OSError):
    """A path leads through more links and names than anybody needs."""

    def __init__(self) -> None:
        """Have the error that the kernel has for too many links."""
        super().__init__(ELOOP, os.strerror(ELOOP))


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

    Raises ``OSError`` only if the thread cannot be looked at, or if the path is too dear.
    """
    return _Walk(thread, follow=follow).go(start, path)


class _Walk:
    """One walk on its way. ``left`` are the texts still to be walked, the next one last; none is empty."""

    def __init__(self, thread: int, *, follow: bool) -> None:
        self.thread = thread
        self.follow = follow
        self.links = 0
        self.names = 0
        self.wants_directory = False
        self.left: list[bytes] = []
        self.numbers: dict[bytes, bytes] = {}

    def go(self, start: bytes, path: bytes) -> Found:
        self.push(path)
        found = Found(self.open_start(b"root" if path[:1] == b"/" else start))
        try:
            while self.left and not found.error:
                self.proceed(found)
        except BaseException:
            found.close()
            raise
        if not found.error and found.target < 0:
            found.target = os.dup(found.directory)  # the path was a directory's own: "/", "." or what ends in ".."
        if not found.error and self.wants_directory and not stat.S_ISDIR(os.fstat(found.target).st_mode):
            found.error = ENOTDIR
        found.rest = [name for text in reversed(self.left) for name in text.split(b"/")]
        return found

    def open_start(self, start: bytes) -> int:
        return os.open(b"%d/%b" % (self.thread, start), _THROUGH)

    def push(self, text: bytes) -> None:
        """Walk this text next, without what means nothing in it."""
        ends_in_slash = text.endswith(b"/")
        text = text.strip(b"/")
        if not self.left and (text.endswith(b"/.") or (ends_in_slash and self.links)):
            # The last name of all is that of a directory, or of a link to one. What a slash at the end of the caller's
            # own text means depends on the call.
            self.follow = self.wants_directory = True
        if b"//" in text or b"/./" in text or text.startswith(b"./") or text.endswith(b"/.") or text == b".":
            names = text.split(b"/")
            self.spend(len(names) // _SPLIT_AT_ONCE)
            text = b"/".join(name for name in names if name not in _NOTHING)
        if text:
            self.left.append(text)

    def spend(self, names: int) -> None:
        """Count names before they are walked."""
        self.names += names
        if self.names > MOST_NAMES:
            raise DearPathError

    def skip(self, length: int) -> None:
        """Note that so many bytes of the next text were walked, and the slash behind them."""
        rest = self.left[-1][length + 1 :]
        if rest:
            self.left[-1] = rest
        else:
            self.left.pop()

    def proceed(self, found: Found) -> None:
        """Walk as far as there is no link, then one name that may be one."""
        _enter(found)
        if found.error:
            return
        self.stride(found)
        if self.left:
            self.step(found)

    def ahead(self) -> bytes:
        """Return the next text, without the last name of all, which is always taken by itself."""
        text = self.left[-1]
        return text if len(self.left) > 1 else text.rpartition(b"/")[0]

    def stride(self, found: Found) -> None:
        """Walk all names that are no links, in as few calls as can be."""
        stretch = self.ahead()
        if not stretch:
            return
        names = stretch.split(b"/")
        good, bad = 0, len(names) + 1
        wanted = len(names)
        while bad - good > 1:
            self.spend(wanted - good)
            part = b"/".join(names[good:wanted])
            there = glance.enter(found.directory, part)
            if there < 0:
                bad = wanted
            else:
                self.move(found, there)
                self.skip(len(part))
                good = wanted
            wanted = (good + bad) // 2

    def step(self, found: Found) -> None:
        """Take the next name."""
        self.spend(1)
        name = self.left[-1].partition(b"/")[0]
        self.skip(len(name))
        if name == b"..":
            self.move(found, os.open(b"..", _NAME, dir_fd=found.directory))
            return
        found.name = name
        try:
            found.target = os.open(name, _NAME, dir_fd=found.directory)
        except OSError as error:
            found.error = error.errno or ENOENT
            return
        if stat.S_ISLNK(os.fstat(found.target).st_mode) and (self.left or self.follow):
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
        found.target, found.name = -1, b""
        self.push(text)
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
        if not self.numbers:
            with open(b"%d/status" % self.thread, "rb") as file:
                self.numbers = dict(line.partition(b"\t")[::2] for line in file)
        process = self.numbers[b"NStgid:"].split()[-1]
        return process if own == b"NStgid:" else b"%b/task/%b" % (process, self.numbers[own].split()[-1])

    def move(self, found: Found, directory: int) -> None:
        """Stand in another directory."""
        found.close()
        found.name = b""
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
