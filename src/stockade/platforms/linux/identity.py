"""Who the commands are inside: maps of user and group ids.

An ordinary user can map one id only: its own, to itself. Root maps every id that it has to itself,
so that files keep their owners and can be edited whoever owns them, save the last one: what belongs
to this *outsider* cannot be touched by any capability inside, and the read walls belong to it.

Source of truth: user_namespaces(7), capabilities(7).
"""

from __future__ import annotations

import os
from errno import EINTR

from stockade.platforms.linux import kernel

CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
CAP_FSETID = 4
CAP_KILL = 5
CAP_SETGID = 6
CAP_SETUID = 7
CAP_NET_BIND_SERVICE = 10
CAP_SYS_ADMIN = 21
CAP_SETFCAP = 31

_NEEDED_TO_MAP = (CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN, CAP_SETFCAP)
_ROOT_KEEPS = (
    CAP_CHOWN,
    CAP_DAC_OVERRIDE,
    CAP_FOWNER,
    CAP_FSETID,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
    CAP_NET_BIND_SERVICE,
)


class Identity:
    """The maps of one session, and the capabilities that its commands keep within them."""

    __slots__ = ("capabilities", "groups", "outsider", "users")

    def __init__(
        self, users: bytes, groups: bytes, capabilities: int = 0, outsider: tuple[int, int] | None = None
    ) -> None:
        """Take the maps as text of ``uid_map`` and ``gid_map``."""
        self.users = users
        self.groups = groups
        self.capabilities = capabilities
        self.outsider = outsider

    @property
    def privileged(self) -> bool:
        """Whether all ids are mapped, which only root can do, from outside the namespace."""
        return self.outsider is not None


def bits(capabilities: tuple[int, ...]) -> int:
    """Return the set of capabilities as the kernel writes it."""
    return sum(1 << capability for capability in capabilities)


def identity_map(text: bytes) -> tuple[bytes, int]:
    """Map each id of a ``uid_map`` to itself, save the last; return the new map and that last id."""
    ranges = [(int(inside), int(count)) for inside, _, count in (line.split() for line in text.splitlines())]
    first, count = ranges.pop()
    if count > 1:
        ranges.append((first, count - 1))
    lines = (b"%d %d %d" % (first, first, count) for first, count in ranges)
    return b"\n".join(lines), first + count - 1


def decide(uid: int, gid: int, status: bytes, uid_map: bytes, gid_map: bytes) -> Identity:
    """Choose the maps from this process's ids, its ``status`` and the maps that it lives under."""
    if uid == 0 and has_capabilities(status, bits(_NEEDED_TO_MAP)):
        users, last_user = identity_map(uid_map)
        groups, last_group = identity_map(gid_map)
        if users and groups:
            return Identity(users, groups, bits(_ROOT_KEEPS), (last_user, last_group))
    return Identity(b"%d %d 1" % (uid, uid), b"%d %d 1" % (gid, gid))


def has_capabilities(status: bytes, wanted: int) -> bool:
    """Tell from the text of ``/proc/self/status`` whether all these capabilities are effective."""
    for line in status.splitlines():
        name, _, value = line.partition(b":")
        if name == b"CapEff":
            return int(value, 16) & wanted == wanted
    return False


def own_identity() -> Identity:
    """Choose the maps for the process that calls."""
    return decide(
        os.geteuid(),
        os.getegid(),
        _read(b"/proc/self/status"),
        _read(b"/proc/self/uid_map"),
        _read(b"/proc/self/gid_map"),
    )


def write_maps(process: bytes, users: bytes, groups: bytes, *, keep_groups: bool = False) -> None:
    """Give a process in a new user namespace its ids; all at once, for the kernel takes them only once."""
    base = b"/proc/%b/" % process
    if not keep_groups:
        _write(base + b"setgroups", b"deny")
    _write(base + b"uid_map", users)
    _write(base + b"gid_map", groups)


def unshare_with_maps(kinds: int, users: bytes, groups: bytes) -> None:
    """Enter new namespaces with several ids mapped, which only a process of the namespace above may write."""
    ready, told = os.pipe()
    parent = b"%d" % os.getpid()
    helper = os.fork()
    if helper == 0:
        try:
            os.close(told)
            os.read(ready, 1)
            write_maps(parent, users, groups, keep_groups=True)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    os.close(ready)
    try:
        kernel.unshare(kinds)
    finally:
        os.close(told)
        _, status = os.waitpid(helper, 0)
    if status:
        number = max(os.waitstatus_to_exitcode(status), 0) or EINTR  # somebody killed it
        raise OSError(number, os.strerror(number))


def forbid_user_namespaces() -> None:
    """Let nobody in this user namespace make another one."""
    _write(b"/proc/sys/user/max_user_namespaces", b"0")


def _read(path: bytes) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 65536)
    finally:
        os.close(file)


def _write(path: bytes, text: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text)
    finally:
        os.close(file)
