"""What a seccomp listener says and hears: its structures and the calls on its descriptor.

A filter that notifies holds a caller in the middle of its call until the listener is answered: with a result, or with
"go on", after which the kernel does what it would have done. What is read of a caller's memory may change after that,
so "go on" never decides anything; it lets other walls decide.

Rules: layouts are pure; each function is one ioctl. A caller that was killed or interrupted meanwhile answers
``ENOENT``. Source of truth: seccomp_unotify(2), ``linux/seccomp.h``.
"""

from __future__ import annotations

from _struct import Struct
from errno import ENOENT
from fcntl import ioctl

_RECEIVE = 0xC050_2100
_SEND = 0xC018_2101
_IS_VALID = 0x4008_2102
_SET_FLAGS = 0x4008_2104
_WAKE_ON_THIS_PROCESSOR = 1
_CONTINUE = 1
_ERROR_RANGE = 1 << 32
_ERROR_SIGN = 1 << 31

_NOTIFICATION = Struct("<QIIiIQ6Q")  # id, thread, flags; number, architecture, instruction, six arguments
_RESPONSE = Struct("<QqiI")  # id, value, error, flags
_ID = Struct("<Q")
_EMPTY = bytes(_NOTIFICATION.size)  # the kernel refuses one that is not
# Made once: the way through here is taken with every call that changes a file.
_room = bytearray(_EMPTY)
_unpack, _put_id = _NOTIFICATION.unpack, _ID.pack_into
_go_on = bytearray(_RESPONSE.pack(0, 0, 0, _CONTINUE))

Notification = tuple[int, ...]
#: Where the fields of a received notification stand.
ID, THREAD, NUMBER, ARGUMENTS = 0, 1, 3, 6


def receive(listener: int) -> Notification:
    """Take the next notification that waits. Waits if there is none; raises ``ENOENT`` if its caller is gone."""
    _room[:] = _EMPTY
    ioctl(listener, _RECEIVE, _room)
    return _unpack(_room)


def let_go(listener: int, identity: int) -> bool:
    """Let the kernel do the call; tell whether the caller was still there."""
    _put_id(_go_on, 0, identity)
    return _send(listener, _go_on)


def answer(listener: int, identity: int, error: int) -> bool:
    """End the call with an error number, or 0 for success; tell whether the caller was still there."""
    return _send(listener, _RESPONSE.pack(identity, 0, -error, 0))


def give(listener: int, identity: int, value: int) -> bool:
    """End the call with what it returns, which is no error; tell whether the caller was still there."""
    return _send(listener, _RESPONSE.pack(identity, value, 0, 0))


def _send(listener: int, response: bytes | bytearray) -> bool:
    try:
        ioctl(listener, _SEND, response)
    except OSError as error:
        if error.errno != ENOENT:
            raise
        return False
    return True


def is_valid(listener: int, identity: int) -> bool:
    """Tell whether the caller still waits: only then its number means the same process as before."""
    try:
        ioctl(listener, _IS_VALID, _ID.pack(identity))
    except OSError:
        return False
    return True


def hurry(listener: int) -> None:
    """Have caller and listener take turns on one processor (Linux 6.6): half the time of waking another."""
    try:
        # The argument is a number here, not a place in memory.
        ioctl(listener, _SET_FLAGS, _WAKE_ON_THIS_PROCESSOR)
    except OSError:
        return


def as_int(argument: int) -> int:
    """Return what a C ``int`` holds after an argument was put in it: the kernel drops the upper half."""
    low = argument % _ERROR_RANGE
    return low - _ERROR_RANGE if low & _ERROR_SIGN else low
