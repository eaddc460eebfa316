"""Control groups for one command: memory and processes, counted for its whole tree.

Used where this process may make them: as root, or under a service manager that delegates. Elsewhere the
session falls back to rlimits. The command's first process puts itself into the groups, through descriptors
that were opened here, before it starts anything.

The owner holds a lock (flock) on each group's directory: one whose lock can be had is of an owner that was killed, and
whoever makes the next group beside it removes it.

Both versions of the interface are spoken: with version 2 one group serves both limits, with version 1 each has
a hierarchy of its own. Source of truth: the kernel's admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

import fcntl
import os
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.sandbox.limits import Limit
from stockade.suppress import suppress
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.sandbox.limits import Limits

MOUNT: Final = "/sys/fs/cgroup"
_TRIES: Final = 50
_PAUSE: Final = 0.002
_NAME: Final = "stockade-"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Controller(Value):
    """What counts one resource, and the files by which it is told and asked."""

    name: str
    limit: Limit
    setting: str
    events: str
    event: str


VERSION_2: Final = (
    Controller("memory", Limit.MEMORY, "memory.max", "memory.events", "oom_kill"),
    Controller("pids", Limit.PROCESSES, "pids.max", "pids.events", "max"),
)
VERSION_1: Final = (
    Controller("memory", Limit.MEMORY, "memory.limit_in_bytes", "memory.oom_control", "oom_kill"),
    Controller("pids", Limit.PROCESSES, "pids.max", "pids.events", "max"),
)


class Group:
    """The control groups of one command, removed when it has ended."""

    def __init__(self) -> None:
        """Begin with none; see ``make``."""
        self.descriptors: list[int] = []
        self.verdict: Limit | None = None
        self._controllers: list[tuple[Controller, str]] = []
        self._paths: list[str] = []
        self._locks: list[int] = []

    @classmethod
    def make(cls, limits: Limits) -> Group | None:
        """Make groups that enforce these limits; ``None`` if none is wanted, or they cannot be had."""
        # One process more than asked for: the command's first one is ours.
        processes = None if limits.processes is None else limits.processes + 1
        wanted = {Limit.MEMORY: limits.memory, Limit.PROCESSES: processes}
        values = {limit: value for limit, value in wanted.items() if value is not None}
        if not values:
            return None
        for attempt in (_version_2, _version_1):
            group = cls()
            if attempt(group, values):
                return group
            group.close()
        return None

    def add(self, parent: str, controllers: tuple[Controller, ...], values: dict[Limit, int]) -> bool:
        """Make one group below ``parent`` for these controllers; tell whether it enforces them."""
        path = f"{parent}/{_NAME}{os.urandom(6).hex()}"
        sweep(parent)
        try:
            os.mkdir(path)
            self._paths.append(path)
            self._locks.append(_locked(path))
            for controller in controllers:
                _write(f"{path}/{controller.setting}", str(values[controller.limit]))
                self._controllers.append((controller, path))
            self.descriptors.append(os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            return False
        with suppress(OSError):
            _write(f"{path}/memory.swap.max", "0")
        return True

    def close(self) -> None:
        """Remember which limit was hit, and remove the groups; may be called again."""
        for controller, path in self._controllers:
            if _count(f"{path}/{controller.events}", controller.event):
                self.verdict = controller.limit
                break
        while self.descriptors:
            os.close(self.descriptors.pop())
        while self._paths:
            _remove(self._paths.pop())
        while self._locks:
            os.close(self._locks.pop())
        self._controllers.clear()


def sweep(parent: str) -> None:
    """Remove the groups below ``parent`` whose owners were killed."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(_NAME):
                with suppress(OSError):  # it is somebody's, or went meanwhile
                    lock = _locked(f"{parent}/{name}")
                    try:
                        os.rmdir(f"{parent}/{name}")
                    finally:
                        os.close(lock)


def _locked(path: str) -> int:
    """Open and lock a directory. Raises if somebody else has it."""
    descriptor = os.open(path, _DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _version_2(group: Group, values: dict[Limit, int]) -> bool:
    controllers = tuple(one for one in VERSION_2 if one.limit in values)
    own = _own("")
    # Where both versions are mounted this is a plain directory, in which anything can be made and nothing counts.
    if own is None or not os.path.exists(f"{MOUNT}/cgroup.controllers"):
        return False
    for parent in _at_and_above(MOUNT, own):
        _delegate(parent, controllers)
        if group.add(parent, controllers, values):
            return True
        group.close()
    return False


def _version_1(group: Group, values: dict[Limit, int]) -> bool:
    for controller in VERSION_1:
        if controller.limit not in values:
            continue
        own = _own(controller.name)
        if own is None or not group.add(os.path.normpath(f"{MOUNT}/{controller.name}/{own}"), (controller,), values):
            return False
    return True


def _own(controller: str) -> str | None:
    """Return the group that this process is in, for a controller of version 1, or for version 2 (no name)."""
    with suppress(OSError):
        for line in _read("/proc/self/cgroup").splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(","):
                return path
    return None


def _at_and_above(mount: str, own: str) -> Iterator[str]:
    """Yield where a group may be made: below our own, and beside it."""
    path = os.path.normpath(f"{mount}/{own}")
    yield path
    if path != mount:
        yield os.path.dirname(path)


def _delegate(parent: str, controllers: tuple[Controller, ...]) -> None:
    """Let groups below count; refused where processes live in the parent itself, and then making one fails."""
    with suppress(OSError):
        active = set(_read(f"{parent}/cgroup.subtree_control").split())
        missing = [f"+{one.name}" for one in controllers if one.name not in active]
        if missing:
            _write(f"{parent}/cgroup.subtree_control", " ".join(missing))


def _remove(path: str) -> None:
    for _ in range(_TRIES):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_PAUSE)  # its last process is dead but not yet gone
        else:
            return


def _count(path: str, name: str) -> int:
    with suppress(OSError, ValueError, IndexError):
        return next((int(line.split()[1]) for line in _read(path).splitlines() if line.split()[0] == name), 0)
    return 0


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # never made: what is not there cannot be set
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
