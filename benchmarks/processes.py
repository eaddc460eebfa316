"""What a process and its descendants hold, read from /proc. Source of truth: proc_pid_smaps(5), proc_pid_task(5).

A helper that another user's process may not read (it is not dumpable) shows its memory to root only; asking for it as
an ordinary user is an error, never a zero.
"""

from __future__ import annotations

from pathlib import Path

from stockade.value import Value

_PROC = Path("/proc")
_UNREADABLE = "the kernel shows what the sandbox's helpers hold to root only: run this as root"


class UnreadableError(Exception):
    """The kernel does not show this to the user who asks."""


class Holding(Value):
    """What some processes hold together, in bytes where it is memory.

    ``memory`` is the proportional share (PSS), which also moves when somebody else uses the same program;
    ``written`` is what they wrote and share with nobody, so that only it can show a leak.
    """

    processes: int
    memory: int = 0
    written: int = 0
    descriptors: int = 0


def descendants(pid: int) -> list[int]:
    """Return all processes below one, parents first."""
    found: list[int] = []
    todo = [pid]
    while todo:
        children = _children(todo.pop())
        found += children
        todo += children
    return found


def holding(pids: list[int]) -> Holding:
    """Add up what processes hold; one that ended meanwhile holds nothing."""
    sizes = [_sizes(pid) for pid in pids]
    memory, written = (sum(size.get(name, 0) for size in sizes) for name in ("Pss", "Private_Dirty"))
    return Holding(len(pids), memory, written, sum(map(_descriptors, pids)))


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in (_PROC / str(pid) / "task").glob("*/children"):
        try:
            children += map(int, task.read_text("ascii").split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return children


def _sizes(pid: int) -> dict[str, int]:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    except PermissionError as error:
        raise UnreadableError(_UNREADABLE) from error
    fields = (line.split() for line in lines[1:])
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in fields}


def _descriptors(pid: int) -> int:
    try:
        return len(list((_PROC / str(pid) / "fd").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except PermissionError as error:
        raise UnreadableError(_UNREADABLE) from error
