"""A deputy: a fork of the supervisor that serves one command, because that command's calls take long.

To judge a call, the supervisor reads its caller's memory and looks up paths. Both can take long: the kernel lets a
reader wait while a mapping changes, which over gigabytes takes a third of a second, and a path may lead to a slow disk.
All other commands would wait as well. So a command gets a deputy as soon as two of its calls have taken long, and by
then only its own calls wait for each other.

Long alone means nothing: on a busy machine everything is. Only a call for which the supervisor *slept* counts.

Rules: the deputy takes over the command's listener, its waiting connections and its numbers; it speaks with the owner
as the supervisor does, and with the supervisor as the supervisor does with the launcher. It says flushed as its last
word: when it was asked for the last numbers, or when nobody is left to serve and nothing is left to say. One that ends
without a word was killed; then the supervisor ends too, and with it the jail.
Source of truth: getrusage(2) for voluntary context switches, ``mmap_lock`` in the kernel's ``mm/``.
"""

from __future__ import annotations

import resource
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.channel import Channel

#: A call that takes longer than this, in seconds, is looked at more closely next time.
LONG = 0.002


class Deputy:
    """The supervisor's end of a deputy, and the number of the command that it serves."""

    __slots__ = ("asked", "channel", "number")

    def __init__(self, number: int, channel: Channel) -> None:
        """Own the channel."""
        self.number = number
        self.channel = channel
        #: The launcher waits for its last numbers.
        self.asked = False


def slept_long(call: Callable[[int], None], listener: int) -> bool:
    """Make a call; tell whether it took long because this process had to sleep for it."""
    began, slept = monotonic(), _sleeps()
    call(listener)
    return monotonic() - began > LONG and _sleeps() > slept


def _sleeps() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
