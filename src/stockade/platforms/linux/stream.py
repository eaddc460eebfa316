"""Descriptors that come from outside and go to a command: its streams, and pipes that it finds at their numbers.

Rules: whoever sent them, they are looked at once more here, just before the command gets them; nothing is imported or
read, since this is done within the jail. Source of truth: unix(7), fcntl(2), null(4).
"""

from __future__ import annotations

import fcntl
import os
import stat
from _socket import AF_UNIX, SOCK_SEQPACKET, SOCK_STREAM, socket
from errno import EACCES, EISDIR, EMFILE, EPERM, EPROTOTYPE

from stockade.platforms.linux import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DEVICES = {
    os.makedev(1, minor): b"/dev/" + name
    for minor, name in ((3, b"null"), (5, b"zero"), (7, b"full"), (8, b"random"), (9, b"urandom"))
}


def above(descriptor: int, top: int) -> int:
    """Return a descriptor at a number above this one: itself, or a copy that takes its place."""
    if descriptor > top:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, top + 1)
    os.close(descriptor)
    return moved


def require_harmless(stream: int, is_denied: Callable[[bytes], bool] | None = None) -> None:
    """Refuse a stream that reaches farther than what it was given for: a directory, or a socket with other peers.

    A socket of the host's network can be led to another address by connect(2), whatever network the command has; only
    a connected pair, as programs use for pipes, can not. Nor may a stream lead to a unix socket that a rule denies.
    """
    kind = os.fstat(stream).st_mode
    if stat.S_ISDIR(kind):
        raise OSError(EISDIR, os.strerror(EISDIR))
    if stat.S_ISSOCK(kind):
        end = socket(-1, -1, -1, stream)
        try:
            if end.family != AF_UNIX or end.type not in {SOCK_STREAM, SOCK_SEQPACKET}:
                raise OSError(EPROTOTYPE, os.strerror(EPROTOTYPE))
            peer = os.fsencode(end.getpeername())
            if is_denied is not None and peer[:1] == b"/" and is_denied(peer):
                raise OSError(EACCES, os.strerror(EACCES), peer)
        finally:
            end.detach()


def use_own_device(stream: int) -> None:
    """Replace a device of the host by the jail's own, which is read-only: by a stream, root could change its mode."""
    status = os.fstat(stream)
    path = _DEVICES.get(status.st_rdev) if stat.S_ISCHR(status.st_mode) else None
    if path is not None:
        own = os.open(path, fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE | os.O_CLOEXEC)
        os.dup2(own, stream, inheritable=False)
        os.close(own)


def require_pipes(descriptors: tuple[int, ...], count: int) -> None:
    """Refuse what is passed besides the streams if it is anything but a pipe, or if not all of it came."""
    if len(descriptors) != count:
        raise OSError(EMFILE, os.strerror(EMFILE))
    for descriptor in descriptors:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise OSError(EPERM, os.strerror(EPERM))


def leave_terminal() -> None:
    """Let go of the controlling terminal, which nobody has open here any more: the next command may get the same one.

    A process that ends does so, too, but others may have heard of the command's end before. The terminal may go at any
    moment, and then nothing is left to do.
    """
    try:
        terminal = os.open(b"/dev/tty", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        kernel.leave_terminal(terminal)
    except OSError:
        pass
    finally:
        os.close(terminal)
