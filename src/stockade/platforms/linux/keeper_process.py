"""The owner's side of the keeper's start: a program of its own, or a fork of a program that runs but one command.

An interpreter takes as long to start as the walls take to build. A command line, which is one that was just started,
therefore forks the keeper; a library never does, for its process may be large and have threads.

Rules: a keeper is in a session of its own, has no streams, no descriptors but its channel, no environment, and bears a
name of its own, so that who ends a program by its name does not end that program's keeper first.
Source of truth: proc_pid_stat(5) for where the kernel finds arguments and environment.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # signal makes enumerations, which costs a millisecond
import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError, shortage
from stockade.platforms.linux import message
from stockade.platforms.linux import passage as passages
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.walls import KEEPER
from stockade.suppress import suppress

if TYPE_CHECKING:
    from stockade.platforms.linux.passage import Passage

_START: Final = """\
import os, sys
sys.path.append(sys.argv[1])
from stockade.platforms.linux.keeper import main
main(sys.argv[2], sys.argv[3])
os._exit(0)  # taking an interpreter apart takes milliseconds, for which the owner would wait
"""
_PACKAGE_DEPTH: Final = 4
_CHANNEL: Final = 3
_SHORT_NAME: Final = b"keeper"
#: Of the fields behind the name in /proc/self/stat: arg_start, arg_end, env_start, env_end.
_ARGUMENTS_AT: Final = slice(45, 49)
_HINT: Final = "check the Python installation and the limit of processes"


def spawn(passage: Passage, leavings: str, *, first: bool = True) -> tuple[int, Channel]:
    """Start a keeper as a program of its own; return its process and the channel to it.

    ``first``: its jail is the first of a session, and joins no other.
    """
    words = passages.words_for(passage, [sys.executable, "-I", "-S", "-c", _START, package_root(), passage, leavings])
    mine, theirs = _pair(first=first)
    try:
        streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(_CHANNEL)]
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), _CHANNEL), *streams]
        pid = os.posix_spawn(words[0], words, {}, file_actions=actions, setsid=True)
    except OSError as error:
        mine.close()
        text = f"cannot start the sandbox's helper {words[0]}: {error.strerror}"
        raise UnavailableError(text, _hint(error)) from error
    finally:
        theirs.close()
    if passage != "direct":
        with suppress(OSError):  # a keeper that was killed is noticed by its channel, as at any other time
            mine.send(Packet(message.PARENT, pid))
    return pid, mine


def can_fork() -> bool:
    """Tell whether this process may be forked: with one thread nobody holds a lock that a fork would need."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False  # nobody can tell


def fork(leavings: str) -> tuple[int, Channel]:
    """Start the keeper of a session's first jail as a fork of this process; return its process and its channel."""
    mine, theirs = _pair(first=True)
    try:
        return _fork(theirs, leavings), mine
    except OSError as error:
        mine.close()
        text = f"cannot start the sandbox's helper: {error.strerror}"
        raise UnavailableError(text, _hint(error)) from error
    finally:
        theirs.close()


def _pair(*, first: bool) -> tuple[Channel, Channel]:
    """Make both ends of a channel; the keeper's holds the owner's introduction already. Leave nothing on failure."""
    try:
        mine, theirs = Channel.pair()
    except OSError as error:
        raise _no_channel(error) from error
    try:
        _introduce(mine, first=first)
    except BaseException as error:
        mine.close()
        theirs.close()
        if isinstance(error, OSError):
            raise _no_channel(error) from error
        raise
    return mine, theirs


def _no_channel(error: OSError) -> UnavailableError:
    text = f"cannot open a channel to the sandbox's helper: {error.strerror}"
    return shortage(error) or UnavailableError(text, "run `stockade doctor`")


def _hint(error: OSError) -> str:
    from stockade.passing import hint

    return hint(error, _HINT)


def _fork(channel: Channel, leavings: str) -> int:
    # A signal is the owner's, and must find no handler of the owner's in the fork.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                _become_keeper(channel, before, leavings)
            finally:
                os._exit(0)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _become_keeper(channel: Channel, mask: set[int], leavings: str) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    own = os.dup(channel.fileno())  # which may be one of those that are replaced
    for number in range(_CHANNEL):
        os.dup2(nothing, number)
    os.dup2(own, _CHANNEL, inheritable=False)
    from stockade.platforms.linux import kernel

    kernel.close_from(_CHANNEL + 1)
    _rename()
    from stockade.platforms.linux.keeper import main

    main("direct", leavings)


def _rename() -> None:
    """Forget the owner's arguments and environment, where the kernel shows them, too."""
    import ctypes

    os.environ.clear()
    with suppress(OSError), open(b"/proc/self/comm", "wb", buffering=0) as file:  # read-only in some containers
        file.write(_SHORT_NAME)
    with open(b"/proc/self/stat", "rb", buffering=0) as file:
        fields = file.read(4096).rpartition(b")")[2].split()
    first, last, environment, end = map(int, fields[_ARGUMENTS_AT])
    name = KEEPER[: max(0, last - first - 1)]
    ctypes.memset(first, 0, last - first)
    ctypes.memmove(first, name, len(name))
    ctypes.memset(environment, 0, end - environment)


def _introduce(channel: Channel, *, first: bool) -> None:
    """Tell a keeper whom to watch: a process of this number could be another one by the time it looks."""
    own = os.pidfd_open(os.getpid())
    try:
        channel.send(Packet(message.OWNER, int(first), b"", (own,)))
    finally:
        os.close(own)


def package_root() -> str:
    """Return the directory from which this package is imported."""
    path = os.path.abspath(__file__)
    for _ in range(_PACKAGE_DEPTH):
        path = os.path.dirname(path)
    return path
