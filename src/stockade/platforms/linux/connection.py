"""``connect`` done for a command by somebody who has judged where it leads.

The socket is taken from the caller, the address is copied once, and what was judged is what is connected: a caller that
exchanges either meanwhile gets what it had before, or nothing. INET and abstract addresses are the session's own
network namespace and free. A path is walked in the caller's view to the file that it means now; that must be one
on which the session itself listens, or one that the policy lists. What the policy denies is refused in any case.

Rules: never wait: a connection that takes time is looked at again until it stands or its caller is gone; a blocking
socket is made non-blocking only for the moment of the call, and since its owners can undo that in the same moment, a
clock interrupts the call. Who waits costs others little: few are looked at in one turn. Each holds a descriptor of this
process, so a command may have as many waiting as there is room left, at most ``MOST_WAITING``: many commands get less
each, and the next one always gets some. Nobody is told where nobody listens.
Source of truth: connect(2), unix(7), pidfd_getfd(2), signal(7).
"""

from __future__ import annotations

import os
import stat
from _signal import (  # type: ignore[import-not-found] # signal costs 3 ms: it makes enumerations
    ITIMER_REAL,
    SIGALRM,
    setitimer,
    signal,
)
from _socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket
from errno import EACCES, EAGAIN, EALREADY, EBADF, ECONNREFUSED, EINPROGRESS, EINTR, EINVAL, EISCONN
from fcntl import F_GETFL, F_SETFL, fcntl
from itertools import islice
from time import monotonic

from stockade.platforms.linux import glance, kernel
from stockade.platforms.linux.memory_reader import read_bytes
from stockade.platforms.linux.notification import as_int, is_valid
from stockade.platforms.linux.unix_diag import kernel_device
from stockade.platforms.linux.walk import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.denied_sockets import DeniedSockets
    from stockade.platforms.linux.unix_diag import Bound

_LONGEST_ADDRESS = 128  # sizeof(struct sockaddr_storage)
_FAMILY_BYTES = 2
_SO_DOMAIN, _SO_COOKIE, _SO_SNDTIMEO = 39, 57, 21
_TIME_BYTES, _WORD = 16, 8
_MICROSECONDS = 1_000_000
_UNDER_WAY = frozenset((EINPROGRESS, EALREADY))
_REMEMBERED = 64
# Who waits is looked at again after this time, in seconds; so many at once.
_LOOK_AGAIN = 0.004
MOST_LOOKED_AT = 16
#: So many connections of one command may wait; the next is told that the queue is full.
MOST_WAITING = 256
#: So many of all commands: at a few in one turn, each is still looked at every second or so.
MOST_OF_ALL = 4096
#: The part of all descriptors that connections may hold. The rest is for calls that take no time, and for new commands.
_PART_OF_FILES = 3, 4
_LONGEST_CALL = 0.001
_LOWER_HALF = 0xFFFF_FFFF
_SIGNALS = frozenset((b"Sig", b"Shd"))


class Attempt:
    """One call of a caller that waits. ``refused`` is the place that it may not reach, if that is why it failed."""

    __slots__ = (
        "address",
        "blocking",
        "cookie",
        "deadline",
        "domain",
        "identity",
        "listener",
        "refused",
        "sock",
        "thread",
    )

    def __init__(self, listener: int, identity: int, thread: int) -> None:
        """Begin with who asks."""
        self.listener = listener
        self.identity = identity
        self.thread = thread
        self.sock: socket | None = None
        self.domain = 0
        self.cookie = b""
        self.address = b""
        self.blocking = False
        self.deadline: float | None = None
        self.refused = b""

    def close(self) -> None:
        """Let go of the socket."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def takes_time(self, error: int) -> bool:
        """Tell whether an error means that there is none yet: a connection on its way, or a full queue."""
        return error in _UNDER_WAY or (error == EAGAIN and self.domain == AF_UNIX)

    def key(self) -> tuple[int, bytes, bytes]:
        """Return what a caller does again after it was interrupted."""
        return self.thread, self.cookie, self.address


class Connections:
    """Connects, and remembers what takes time."""

    def __init__(
        self,
        is_listed: Callable[[bytes], bool],
        own_devices: Callable[[int], Bound],
        host_devices: Callable[[int], Bound],
        room: int = MOST_OF_ALL,
        denied: DeniedSockets | None = None,
        copied: tuple[int, bytes] = (-1, b""),
    ) -> None:
        """Take which paths the policy lists, on which files the session and the host listen, and how many may wait.

        A file is known by its device and by the lower half of its number. ``denied`` needs to know by which names the
        host listens. ``copied`` is the host's root, and the private place in which commands see but copies of files.
        """
        self.is_listed = is_listed
        self.denied = denied
        self.root, private = copied
        self.private = private + b"/" if private else b""
        self.own_devices = own_devices
        self.host_devices = host_devices
        self.descriptors = b"%d/fd/" % os.getpid()
        self.room = room
        self.waiting: dict[int, Attempt] = {}
        self.held: dict[int, int] = {}
        self.unheard: dict[tuple[int, bytes, bytes], None] = {}
        self.has_clock = False
        self.looked = 0.0

    def never_wait(self) -> None:
        """Have calls interrupted that wait all the same; for a process that has no other use for ``SIGALRM``."""
        signal(SIGALRM, _wake)
        self.has_clock = True

    def due(self, now: float) -> list[int]:
        """Return whom to look at again in this turn: nobody too soon, few at once."""
        if now - self.looked < _LOOK_AGAIN:
            return []
        self.looked = now
        return list(islice(self.waiting, MOST_LOOKED_AT))

    def turn(self, descriptor: int) -> None:
        """Put one that was looked at behind all others."""
        self.waiting[descriptor] = self.waiting.pop(descriptor)

    def has_room(self, listener: int) -> bool:
        """Tell whether one more connection of a command may wait: not if it has as many as are left for all."""
        held = self.held.get(listener, 0)
        return held < MOST_WAITING and held < self.room - len(self.waiting)

    def wait(self, attempt: Attempt, descriptor: int) -> None:
        """Have a connection wait."""
        self.waiting[descriptor] = attempt
        self.held[attempt.listener] = self.held.get(attempt.listener, 0) + 1

    def leave(self, descriptor: int) -> None:
        """Have it wait no longer."""
        listener = self.waiting.pop(descriptor).listener
        left = self.held.get(listener, 0) - 1
        if left > 0:
            self.held[listener] = left
        else:
            self.held.pop(listener, None)

    def of(self, listener: int) -> list[int]:
        """Return the connections of one command that wait."""
        return [descriptor for descriptor, attempt in self.waiting.items() if attempt.listener == listener]

    def keep(self, listener: int) -> None:
        """Go on in another process, with those of one command only."""
        self.descriptors = b"%d/fd/" % os.getpid()
        for descriptor, attempt in list(self.waiting.items()):
            if attempt.listener != listener:
                self.leave(descriptor)
                attempt.close()

    def attempt(
        self, listener: int, identity: int, thread: int, arguments: tuple[int, ...]
    ) -> tuple[Attempt, int | None]:
        """Try a call of a caller; return the error number, or ``None`` if it takes time or the caller is gone."""
        attempt = Attempt(listener, identity, thread)
        try:
            self.take(attempt, arguments)
            if not is_valid(listener, identity):
                attempt.close()
                return attempt, None
            error = self.connect(attempt)
        except OSError as failure:
            attempt.close()
            return attempt, failure.errno or EACCES
        if attempt.sock is not None and attempt.blocking and attempt.takes_time(error):
            if not self.has_room(listener):
                attempt.close()
                return attempt, EAGAIN
            self.wait(attempt, attempt.sock.fileno())
            return attempt, None
        attempt.close()
        return attempt, error

    def take(self, attempt: Attempt, arguments: tuple[int, ...]) -> None:
        """Copy the caller's socket and its address."""
        attempt.sock = sock = _socket_of(copy_of(attempt.thread, as_int(arguments[0])))
        attempt.domain = sock.getsockopt(SOL_SOCKET, _SO_DOMAIN)
        length = as_int(arguments[2])
        if not 0 <= length <= _LONGEST_ADDRESS:
            raise OSError(EINVAL, os.strerror(EINVAL))
        attempt.address = read_bytes(attempt.thread, arguments[1], length)
        attempt.cookie = sock.getsockopt(SOL_SOCKET, _SO_COOKIE, _WORD)
        attempt.blocking = not fcntl(sock.fileno(), F_GETFL) & os.O_NONBLOCK
        seconds = sock.getsockopt(SOL_SOCKET, _SO_SNDTIMEO, _TIME_BYTES)
        limit = int.from_bytes(seconds[:_WORD], "little") + int.from_bytes(seconds[_WORD:], "little") / _MICROSECONDS
        attempt.deadline = monotonic() + limit if limit else None

    def connect(self, attempt: Attempt) -> int:
        """Connect to where the address leads, if it may."""
        path = path_of(attempt.domain, attempt.address)
        if path is None:
            return self.dial(attempt, attempt.address)
        with walk(attempt.thread, b"cwd", path) as found:
            if found.error:
                return found.error
            place = b"%b%d" % (self.descriptors, found.target)
            copied = self.copied(attempt, found.target, place)
            if not copied:
                error = self.judge(attempt, found.target, place)
                return error or self.dial(attempt, _address_of(place))
        return self.connect_on_host(attempt, copied)

    def copied(self, attempt: Attempt, target: int, place: bytes) -> bytes:
        """Return the path of a file that is but the session's copy of one of the host's: nobody listens on it."""
        # A writable root below the private place is a mount of its own, and shows the host's files themselves.
        if not self.private or glance.mount_of(place) != glance.mount_of(b"%d/root%b" % (attempt.thread, self.private)):
            return b""
        about = os.fstat(target)
        device = kernel_device(os.major(about.st_dev), os.minor(about.st_dev))
        own = self.own_devices(about.st_ino & _LOWER_HALF)
        if not stat.S_ISSOCK(about.st_mode) or _counterpart(own, device, target, attempt.thread) is not None:
            return b""
        return glance.real_path(place)

    def connect_on_host(self, attempt: Attempt, path: bytes) -> int:
        """Connect to the host's own file at a path, if it may."""
        target = glance.find(self.root, path.lstrip(b"/"))
        if target < 0:
            return ECONNREFUSED
        try:
            place = b"%b%d" % (self.descriptors, target)
            return self.judge(attempt, target, place, still=True) or self.dial(attempt, _address_of(place))
        finally:
            os.close(target)

    def judge(self, attempt: Attempt, target: int, place: bytes, *, still: bool = False) -> int:
        """Return the error for a file that may not be connected to, 0 for one that may.

        ``still``: no command can have moved it.
        """
        attempt.refused = b""
        about = os.fstat(target)
        if not os.access(place, os.W_OK):
            return EACCES
        if not stat.S_ISSOCK(about.st_mode):
            return ECONNREFUSED
        device = kernel_device(os.major(about.st_dev), os.minor(about.st_dev))
        # The kernel tells of a file's number but the lower half.
        number = about.st_ino & _LOWER_HALF
        own = _counterpart(self.own_devices(number), device, target, attempt.thread)
        host = self.host_devices(number)
        # Two files may share what is known of them: of the same number on two subvolumes, or by that half.
        is_own = own is not None and own not in host
        path = glance.real_path(place) if self.denied or not is_own else b""
        if self.denied is not None:
            attempt.refused = self.denied.refusal(attempt.thread, _written(attempt), path, about)
            if not attempt.refused and not is_own:
                names = host.get(_counterpart(host, device, target, attempt.thread) or device, set())
                attempt.refused = self.denied.disguise(attempt.thread, names, path, place, still=still)
        if attempt.refused or is_own:
            return EACCES if attempt.refused else 0
        if path and self.is_listed(path):
            return 0
        if not host:
            return ECONNREFUSED
        attempt.refused = path or path_of(attempt.domain, attempt.address) or b""
        return EACCES

    def dial(self, attempt: Attempt, address: bytes) -> int:
        """Make the call without waiting."""
        if attempt.sock is None:
            return EBADF
        descriptor = attempt.sock.fileno()
        flags = fcntl(descriptor, F_GETFL)
        if attempt.blocking:
            fcntl(descriptor, F_SETFL, flags | os.O_NONBLOCK)
        if self.has_clock:
            setitimer(ITIMER_REAL, _LONGEST_CALL, _LONGEST_CALL)
        try:
            error = kernel.connect(descriptor, address)
        finally:
            if self.has_clock:
                setitimer(ITIMER_REAL, 0)
            if attempt.blocking:
                fcntl(descriptor, F_SETFL, flags)
        if error == EINTR:
            return EAGAIN if attempt.domain == AF_UNIX else EINPROGRESS
        # The call was done before, and its caller interrupted before it could hear of it.
        if error == EISCONN and self.unheard.pop(attempt.key(), error) is None:
            return 0
        return error

    def remember(self, attempt: Attempt) -> None:
        """Keep in mind that a caller does not know that it is connected: it was interrupted, and may ask again."""
        self.unheard[attempt.key()] = None
        while len(self.unheard) > _REMEMBERED:
            del self.unheard[next(iter(self.unheard))]

    def look(self, attempt: Attempt) -> int | None:
        """Look again at what takes time; return the error number, or ``None`` if it still does."""
        if attempt.sock is None:
            return EBADF
        # To ask again is also what makes the kernel see that a connection stands.
        try:
            error = self.connect(attempt)
        except (OSError, ValueError, LookupError):
            return EACCES  # its caller was killed in this moment
        if not attempt.takes_time(error):
            return error
        if _is_signalled(attempt.thread):
            return EINTR
        if attempt.deadline is None or monotonic() < attempt.deadline:
            return None
        return EAGAIN if attempt.domain == AF_UNIX else EINPROGRESS


def room_for(files: int) -> int:
    """Return how many connections may wait in a process that may have so many open files."""
    part, whole = _PART_OF_FILES
    return min(files * part // whole, MOST_OF_ALL)


def _is_signalled(thread: int) -> bool:
    """Tell whether a handler of a thread waits to be run: by itself, only a signal that kills ends a wait for us."""
    try:
        with open(b"%d/status" % thread, "rb") as file:
            lines = dict(line.split(b":\t", 1) for line in file if line[:3] in _SIGNALS)
    except OSError:
        return False
    alone, shared, blocked, caught = (int(lines[name], 16) for name in (b"SigPnd", b"ShdPnd", b"SigBlk", b"SigCgt"))
    return bool((alone | shared) & caught & ~blocked)


def _wake(*_: object) -> None:
    """Do nothing: that a signal came has interrupted the call."""


def path_of(domain: int, address: bytes) -> bytes | None:
    """Return the path in an address of a unix socket, ``None`` if it holds none."""
    if domain != AF_UNIX or int.from_bytes(address[:_FAMILY_BYTES], "little") != AF_UNIX:
        return None
    name = address[_FAMILY_BYTES:]
    return name.partition(b"\0")[0] or None


def _address_of(place: bytes) -> bytes:
    return AF_UNIX.to_bytes(_FAMILY_BYTES, "little") + place + b"\0"


def _written(attempt: Attempt) -> bytes:
    """Return the path as the caller wrote it, made absolute."""
    path = path_of(attempt.domain, attempt.address) or b""
    return path if path[:1] == b"/" else b"%b/%b" % (os.readlink(b"%d/cwd" % attempt.thread), path)


def copy_of(thread: int, number: int) -> int:
    """Return a copy of a descriptor of a thread: what is open is the same, with one position for both."""
    try:
        process = kernel.open_thread(thread)
    except OSError as error:
        if error.errno != EINVAL:
            raise
        process = os.pidfd_open(_first_thread(thread))
    try:
        return kernel.take_descriptor(process, number)
    finally:
        os.close(process)


def _socket_of(descriptor: int) -> socket:
    """Return the socket that a descriptor is, and own it. If it is no socket, close it and raise ``OSError``."""
    try:
        return socket(AF_UNIX, SOCK_STREAM, 0, descriptor)
    except OSError:
        os.close(descriptor)
        raise


def _first_thread(thread: int) -> int:
    with open(b"%d/status" % thread, "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"Tgid:"))


def _counterpart(devices: Bound, device: int, target: int, thread: int) -> int | None:
    """Return a file's device as it is known among others; some filesystems show another than the kernel counts by."""
    if device in devices:
        return device
    counted = _device_of(target, thread) if devices else -1
    return counted if counted in devices else None


def _device_of(target: int, thread: int) -> int:
    """Return the device of an open file's filesystem as the kernel counts it, from the mount that the file lies on."""
    own = b"%d" % os.getpid()
    with open(b"%b/fdinfo/%d" % (own, target), "rb") as file:
        mount = next(line.split()[1] for line in file if line.startswith(b"mnt_id:"))
    for process in (b"%d" % thread, own):
        with open(process + b"/mountinfo", "rb") as file:
            # One search through the whole: there may be a thousand mounts, and others wait meanwhile.
            _, found, rest = (b"\n" + file.read()).partition(b"\n%b " % mount)
        if found:
            major, _, minor = rest.split(b" ", 2)[1].partition(b":")
            return kernel_device(int(major), int(minor))
    return -1
