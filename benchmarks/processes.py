"""What a process and its descendants hold, read from /proc. Source of truth: proc_pid_smaps(5), proc_pid_task(5).

A helper that another user's process may not read (it is not dumpable) shows its memory to root only; asking for it as
an ordinary user is an error, never a zero.
"""

from __future__ import annotations

from pathlib import Path

from stockade.value import Value

_PROC = Path("/proc")


class UnreadableError(Exception):
    """The kernel does not show this to the user who asks."""


class Holding(Value):
    """What some processes hold together; memory is the proportional share, in bytes."""

    processes: int
    memory: int
    descriptors: int


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
    memory = [size for pid in pids if (size := _memory(pid)) is not None]
    descriptors = [count for pid in pids if (count := _descriptors(pid)) is not None]
    return Holding(len(pids), sum(memory), sum(descriptors))


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in (_PROC / str(pid) / "task").glob("*/children"):
        try:
            children += map(int, task.read_text("ascii").split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return children


def _memory(pid: int) -> int | None:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError as error:
        message = "the kernel shows the memory of the sandbox's helpers to root only: run this as root"
        raise UnreadableError(message) from error
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _descriptors(pid: int) -> int | None:
    try:
        return len(list((_PROC / str(pid) / "fd").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError as error:
        message = "the kernel shows the descriptors of the sandbox's helpers to root only: run this as root"
        raise UnreadableError(message) from error
