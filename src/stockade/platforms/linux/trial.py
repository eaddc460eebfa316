"""The kernel asked for real: the steps of building a jail, each in a process that ends with it.

Whether a step works cannot be read anywhere: sysctls, security modules, filters and masked mounts all
have a say. So this runs as a helper of its own (``main``), forks, tries, and prints one line per step:
its name and the kernel's error number, 0 if it worked, negative if a signal ended it.

Rules: nothing of the machine is changed, since all happens in new namespaces that end at once; the steps are
those of ``keeper`` and ``tree``, in their order.
"""

from __future__ import annotations

import ctypes
import os
from errno import ENOSYS

from stockade.platforms.linux import identity, kernel, private_place, warden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Step = tuple[str, Callable[[], object]]

#: Calls that the walls need, at the numbers that they have on every architecture.
NEEDED_CALLS = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "pidfd_open": 434,
    "close_range": 436,
    "openat2": 437,
    "mount_setattr": 442,
}
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1
_INVALID = -1
_PRIVATE = b"/tmp"  # as in the rules; nothing is written there
_ALLOW_ALL = b"\x06\0\0\0\0\0\xff\x7f"  # one instruction: return SECCOMP_RET_ALLOW
_REST = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
    | kernel.CLONE_NEWPID
)


def main() -> None:
    """Print the outcome of every step, the calls that are absent, and Landlock's version."""
    jail: list[Step] = [
        ("user_namespace", lambda: kernel.unshare(kernel.CLONE_NEWUSER)),
        ("id_map", _map_writer()),
        ("namespaces", lambda: kernel.unshare(_REST)),
        ("loopback", kernel.raise_loopback),
        ("mounts", _mount),
        ("processes", _show_processes),
    ]
    masks: list[Step] = [*jail[:3], ("masks", _mask)]
    lines = [*attempt(jail), *attempt([("filter", _filter)]), *attempt([("listener", _listen)])]
    lines += [line for line in attempt(masks) if line.startswith("masks ")]
    layers: list[Step] = [*jail[:3], ("layers", lambda: os.close(private_place.in_memory(_PRIVATE)))]
    lines += [line for line in attempt(layers) if line.startswith("layers ")]
    lines += [f"landlock {max(_call(_LANDLOCK_CREATE_RULESET, 0, 0, _LANDLOCK_VERSION), 0)}"]
    lines += [f"absent {name}" for name, number in NEEDED_CALLS.items() if _absent(number)]
    os.write(1, "\n".join(lines).encode())


def attempt(steps: list[Step]) -> list[str]:
    """Try steps in a child until one fails; return what each gave."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _walk(steps, writer)
        finally:
            os._exit(0)
    os.close(writer)
    lines = []
    with open(reader, encoding="ascii") as file:
        lines = file.read().splitlines()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and len(lines) < len(steps):
        lines.append(f"{steps[len(lines)][0]} {-os.WTERMSIG(status)}")
    return lines


def _walk(steps: list[Step], report: int) -> None:
    for name, step in steps:
        error = _error(step)
        os.write(report, f"{name} {error}\n".encode())
        if error:
            return


def _error(step: Callable[[], object]) -> int:
    try:
        step()
    except OSError as error:
        return error.errno or ENOSYS
    return 0


def _map_writer() -> Callable[[], object]:
    # The ids must be read before the namespace is new: afterwards they are those of nobody.
    users, groups = b"0 %d 1" % os.geteuid(), b"0 %d 1" % os.getegid()
    return lambda: identity.write_maps(b"self", users, groups)


def _mount() -> None:
    """Close the tree, copy it, and put filesystems of our own on it."""
    kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, kernel.MOUNT_ATTR_NOSUID, kernel.MS_PRIVATE)
    os.close(kernel.open_tree(kernel.AT_FDCWD, b"/", kernel.OPEN_TREE_CLONE | kernel.AT_RECURSIVE))
    os.close(kernel.new_filesystem(b"devpts"))
    own = kernel.new_filesystem(b"tmpfs")
    kernel.move_mount(own, kernel.AT_FDCWD, b"/dev")


def _mask() -> None:
    """Make a file system whose requests this process could answer."""
    end = os.open(warden.DEVICE, os.O_RDWR | os.O_CLOEXEC)
    os.close(kernel.new_filesystem(b"fuse", warden.options(end)))


def _show_processes() -> None:
    """Mount a fresh /proc, as the first process of the new pid namespace."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            code = _error(lambda: kernel.move_mount(kernel.new_filesystem(b"proc"), kernel.AT_FDCWD, b"/proc"))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        raise OSError(code, os.strerror(code))


def _filter() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.install_filter(_ALLOW_ALL)


def _listen() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.install_filter(_ALLOW_ALL, listen=True)


def _absent(number: int) -> bool:
    return _call(number, _INVALID, 0, _INVALID, _INVALID, 0) == -ENOSYS


def _call(number: int, *words: int) -> int:
    """Make a system call by number; return its result or the negative error number."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, words)))
    return -ctypes.get_errno() if result < 0 else result
