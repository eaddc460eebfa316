"""Whose a thread is: of which command, told by the first process of that command's pid namespace.

The kernel gives every orphan to the first process of its namespace. So the way up from any thread of a command leads to
that first process, whatever has died meanwhile; and the numbers that a process has in each namespace tell when it
is reached: the second is its number among the processes of the jail, the third is 1.

Rules: only /proc/PID/status is read, which everybody may. What was found is remembered for a moment that is
shorter than the time in which the kernel could give the number to another thread.
Source of truth: proc_pid_status(5), pid_namespaces(7).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: It is no command's: a process that builds a jail, or a first process.
OWN = -1
#: It is no command's, but lives beside them in the jail.
BESIDE = -2
#: It could not be found out.
UNKNOWN = 0

_LONGEST_WAY = 4096
_MOMENT = 0.2
_MOST = 1000
_COMMAND = 2
_JAIL = 1


def numbers(status: bytes) -> tuple[int, list[int]]:
    """Return a process's parent, and its numbers from the outermost namespace inwards; 0 and none if not told."""
    parent, own = 0, []
    for line in status.splitlines():
        if line.startswith(b"PPid:"):
            parent = _integers(line)[0] if len(_integers(line)) == 1 else 0
        elif line.startswith(b"NSpid:"):
            own = _integers(line)
            break
    return parent, own


def _integers(line: bytes) -> list[int]:
    words = line.partition(b":")[2].split()
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []


class Lineage:
    """Finds first processes, from a process of the namespace around the jail."""

    __slots__ = ("_clock", "_depth", "_known", "_read", "_since")

    def __init__(self, read: Callable[[int], bytes], own: bytes, clock: Callable[[], float]) -> None:
        """Take what reads the status of a thread (empty if it is gone), the own status, and a clock in seconds."""
        self._read = read
        self._depth = len(numbers(own)[1])
        self._clock = clock
        self._known: dict[int, int] = {}
        self._since = 0.0

    def of(self, thread: int) -> int:
        """Return the number that the first process of the thread's command has in the jail."""
        now = self._clock()
        if now - self._since > _MOMENT or len(self._known) >= _MOST:
            self._known.clear()
            self._since = now
        found = self._known.get(thread)
        if found is None:
            found = self._known[thread] = self._find(thread)
        return found

    def _find(self, thread: int) -> int:
        process = thread
        for _ in range(_LONGEST_WAY):
            if process == 0:
                return UNKNOWN
            parent, own = numbers(self._read(process))
            inner = own[self._depth :]
            if not own or self._depth == 0:
                return UNKNOWN
            if len(inner) < _COMMAND:
                return (OWN, BESIDE)[len(inner)] if process == thread else UNKNOWN
            if len(inner) == _COMMAND and inner[_JAIL] == 1:
                return OWN if process == thread else inner[0]
            process = parent
        return UNKNOWN
