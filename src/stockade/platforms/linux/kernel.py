"""The kernel's own words: system calls that Python 3.11 does not offer.

Each function is one call, named as in its man page (section 2), that raises ``OSError`` when the
kernel refuses. Needs Linux 5.12 (``mount_setattr``). The numbers below 424 differ between machines
and are reached through the C library; those above are the same on every architecture.

Rules: nothing is imported but ctypes, errno and os, because the launcher imports this
before it enters a jail and must read no file afterwards; ``typing`` alone would cost 4 ms there.
"""

from __future__ import annotations

import ctypes
import errno
import os

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
AT_SYMLINK_NOFOLLOW = 0x100
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 0x04
MOVE_MOUNT_T_EMPTY_PATH = 0x40
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_NOSYMFOLLOW = 0x200000
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_OPEN_TREE = 428
_MOVE_MOUNT = 429
_FSOPEN = 430
_FSCONFIG = 431
_FSMOUNT = 432
_PIDFD_OPEN = 434
_CLOSE_RANGE = 436
_OPENAT2 = 437
_PIDFD_GETFD = 438
_MOUNT_SETATTR = 442
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446

IN_APPEARS = 0x80 | 0x100  # IN_MOVED_TO, IN_CREATE
IN_GOES = 0x40 | 0x200  # IN_MOVED_FROM, IN_DELETE
IN_OVERFLOW = 0x4000
_IN_DIRECTORY = 0x0100_0000 | 0x0200_0000  # IN_ONLYDIR, IN_DONT_FOLLOW
_EVENTS = 65536

_FSCONFIG_SET_FLAG = 0
_FSCONFIG_SET_STRING = 1
_FSCONFIG_CMD_CREATE = 6
_LANDLOCK_VERSION = 1
_LANDLOCK_PATH_BENEATH = 1
_CLOEXEC = 1
_CLOSE_RANGE_CLOEXEC = 4
_PIDFD_THREAD = os.O_EXCL
_TIOCSCTTY = 0x540E
_TIOCNOTTY = 0x5422
_NS_GET_USERNS = 0xB701
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x1 | 0x40
_CAPABILITY_VERSION_3 = 0x2008_0522
_CAP_BITS_PER_WORD = 32
_LAST_FD = 0xFFFF_FFFF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_Long = ctypes.c_long
# Made once: ctypes forgets an array type that nobody holds, and makes it anew with each use.
_TwoHalves = ctypes.c_uint32 * 2
_SixHalves = ctypes.c_uint32 * 6
_ThreeWords = ctypes.c_uint64 * 3
_FourWords = ctypes.c_uint64 * 4


def _checked(result: int, path: bytes = b"") -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path or None)
    return result


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; with ``CLONE_NEWPID`` only later children do."""
    _checked(_libc.unshare(ctypes.c_int(flags)))


def setns(descriptor: int, flags: int) -> None:
    """Enter the namespaces that a namespace file or a pidfd stands for."""
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(flags)))


def enter_owner(namespace: int) -> None:
    """Enter the user namespace to which another namespace, given by its file, belongs (``NS_GET_USERNS``)."""
    user = _checked(_libc.ioctl(ctypes.c_int(namespace), ctypes.c_ulong(_NS_GET_USERNS), ctypes.c_int(0)))
    try:
        setns(user, CLONE_NEWUSER)
    finally:
        os.close(user)


def prctl(option: int, first: int = 0) -> None:
    """Change one attribute of this process."""
    _checked(_libc.prctl(ctypes.c_int(option), _Long(first), _Long(0), _Long(0), _Long(0)))


def umount(target: bytes) -> None:
    """Take the topmost mount off a path, even while it is in use; never through a link."""
    _checked(_libc.umount2(target, ctypes.c_int(MNT_DETACH | UMOUNT_NOFOLLOW)), target)


def resolve(path: bytes) -> int:
    """Open a path for naming only (``O_PATH``), refusing links in every component."""
    how = _ThreeWords(os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
    return _checked(_libc.syscall(_Long(_OPENAT2), _Long(AT_FDCWD), path, how, _Long(ctypes.sizeof(how))), path)


def open_tree(directory: int, path: bytes, flags: int) -> int:
    """Copy the mount at a path, detached (``OPEN_TREE_CLONE``)."""
    return _checked(_libc.syscall(_Long(_OPEN_TREE), _Long(directory), path, _Long(flags | os.O_CLOEXEC)), path)


def move_mount(mount: int, target: int, path: bytes = b"") -> None:
    """Attach a detached mount to an open place, or to a path below it."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | (0 if path else MOVE_MOUNT_T_EMPTY_PATH)
    _checked(_libc.syscall(_Long(_MOVE_MOUNT), _Long(mount), b"", _Long(target), path, _Long(flags)), path)


def mount_setattr(mount: int, path: bytes, flags: int, attributes: int, propagation: int = 0) -> None:
    """Set attributes on a mount, or on all below it (``AT_RECURSIVE``)."""
    wanted = _FourWords(attributes, 0, propagation, 0)
    size = _Long(ctypes.sizeof(wanted))
    _checked(_libc.syscall(_Long(_MOUNT_SETATTR), _Long(mount), path, _Long(flags), wanted, size), path)


def new_filesystem(kind: bytes, options: tuple[tuple[bytes, bytes], ...] = (), attributes: int = 0) -> int:
    """Make a filesystem of its own and return its mount, detached."""
    context = _checked(_libc.syscall(_Long(_FSOPEN), kind, _Long(_CLOEXEC)), kind)
    try:
        for name, value in options:
            command = _FSCONFIG_SET_STRING if value else _FSCONFIG_SET_FLAG
            _configure(context, command, name, value or None)
        _configure(context, _FSCONFIG_CMD_CREATE, None, None)
        return _checked(
            _libc.syscall(_Long(_FSMOUNT), _Long(context), _Long(_CLOEXEC), _Long(attributes)),
            kind,
        )
    finally:
        os.close(context)


def _configure(context: int, command: int, name: bytes | None, value: bytes | None) -> None:
    result = _libc.syscall(_Long(_FSCONFIG), _Long(context), _Long(command), name, value, _Long(0))
    _checked(result, name or b"")


def new_watch() -> int:
    """Open a queue for events of directories (inotify(7)); -1 if the user has too many."""
    return int(_libc.inotify_init1(ctypes.c_int(os.O_NONBLOCK | os.O_CLOEXEC)))


def watch_directory(queue: int, path: bytes) -> int:
    """Ask for an event whenever a name comes or goes in a directory; return the number of the watch."""
    mask = ctypes.c_uint32(IN_APPEARS | IN_GOES | _IN_DIRECTORY)
    return _checked(_libc.inotify_add_watch(ctypes.c_int(queue), path, mask), path)


def read_events(queue: int) -> bytes:
    """Return some of the events that wait in a queue, as the kernel writes them."""
    try:
        return os.read(queue, _EVENTS)
    except BlockingIOError:
        return b""


def close_from(first: int) -> None:
    """Close every descriptor from this one on."""
    _checked(_libc.syscall(_Long(_CLOSE_RANGE), _Long(first), _Long(_LAST_FD), _Long(0)))


def close_on_exec_from(first: int) -> None:
    """Let no descriptor from this one on survive an exec."""
    _checked(_libc.syscall(_Long(_CLOSE_RANGE), _Long(first), _Long(_LAST_FD), _Long(_CLOSE_RANGE_CLOEXEC)))


def open_thread(thread: int) -> int:
    """Return a pidfd of one thread (Linux 6.9); before that only the first thread of a process can have one."""
    return _checked(_libc.syscall(_Long(_PIDFD_OPEN), _Long(thread), _Long(_PIDFD_THREAD)))


def take_descriptor(process: int, number: int) -> int:
    """Return a copy of a descriptor of another process, which is given as a pidfd; needs a debugger's rights."""
    return _checked(_libc.syscall(_Long(_PIDFD_GETFD), _Long(process), _Long(number), _Long(0)))


def connect(descriptor: int, address: bytes) -> int:
    """Connect a socket to an address as the kernel has it; return the error number, 0 for success."""
    return (
        0 if _libc.connect(ctypes.c_int(descriptor), address, ctypes.c_int(len(address))) == 0 else ctypes.get_errno()
    )


def limit_capabilities(kept: int) -> None:
    """Drop every capability whose bit is not set from what this process has and may hand on."""
    header = _TwoHalves(_CAPABILITY_VERSION_3, 0)
    low, high = kept & 0xFFFF_FFFF, kept >> _CAP_BITS_PER_WORD
    data = _SixHalves(low, low, 0, high, high, 0)
    _checked(_libc.capset(header, data))


def limit_bounding_set(kept: int) -> None:
    """Drop every capability whose bit is not set from what any exec could ever gain."""
    for number in range(64):
        if not kept >> number & 1 and _libc.prctl(PR_CAPBSET_DROP, _Long(number), _Long(0), _Long(0), _Long(0)) < 0:
            break  # EINVAL: past the last capability that this kernel knows


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


_INSTRUCTION_BYTES = 8
_SECCOMP_NUMBERS = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
_SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0x20


def install_filter(program: bytes, *, listen: bool = False) -> int:
    """Put a seccomp program on this process and all that it starts; return the listener if one is wanted.

    Where the kernel can (Linux 5.19), who waits for the listener's answer is not interrupted by signals with handlers:
    programs do not expect that of calls such as mkdir.
    """
    wanted = _FilterProgram(len(program) // _INSTRUCTION_BYTES, program)
    number = _SECCOMP_NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "seccomp is not known on this machine", os.uname().machine)
    flags = _SECCOMP_FILTER_FLAG_NEW_LISTENER if listen else 0
    uninterrupted = flags | (_SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV if listen else 0)
    result = -1
    for chosen in dict.fromkeys((uninterrupted, flags)):
        result = _libc.syscall(_Long(number), _Long(_SECCOMP_SET_MODE_FILTER), _Long(chosen), ctypes.byref(wanted))
        if result >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    return _checked(result)


def claim_terminal(descriptor: int) -> None:
    """Make an open terminal the controlling one of this session (``TIOCSCTTY``, ioctl_tty(2))."""
    _checked(_libc.ioctl(ctypes.c_int(descriptor), ctypes.c_ulong(_TIOCSCTTY), ctypes.c_int(0)))


def leave_terminal(descriptor: int) -> None:
    """Have no controlling terminal any more; it is the one that is open here (``TIOCNOTTY``, ioctl_tty(2))."""
    _checked(_libc.ioctl(ctypes.c_int(descriptor), ctypes.c_ulong(_TIOCNOTTY), ctypes.c_int(0)))


def raise_loopback() -> None:
    """Bring up ``lo`` in this network namespace (``SIOCSIFFLAGS``, netdevice(7))."""
    from _socket import AF_INET, SOCK_DGRAM, socket

    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + _IFF_UP_RUNNING.to_bytes(2, "little"), 40)
    control = socket(AF_INET, SOCK_DGRAM)
    try:
        _checked(_libc.ioctl(control.fileno(), ctypes.c_ulong(_SIOCSIFFLAGS), request))
    finally:
        control.close()


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("place", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of Landlock's interface."""
    return _checked(_libc.syscall(_Long(_LANDLOCK_CREATE_RULESET), None, _Long(0), _Long(_LANDLOCK_VERSION)))


def landlock_create(rights: int) -> int:
    """Make a set of rules that denies these rights, but for what is then allowed."""
    handled = ctypes.c_uint64(rights)
    size = _Long(ctypes.sizeof(handled))
    return _checked(_libc.syscall(_Long(_LANDLOCK_CREATE_RULESET), ctypes.byref(handled), size, _Long(0)))


def landlock_allow(rules: int, rights: int, place: int) -> None:
    """Allow rights at an open place and below."""
    rule = _PathBeneath(rights, place)
    kind = _Long(_LANDLOCK_PATH_BENEATH)
    _checked(_libc.syscall(_Long(_LANDLOCK_ADD_RULE), _Long(rules), kind, ctypes.byref(rule), _Long(0)))


def landlock_restrict(rules: int) -> None:
    """Put this process and all its descendants under the rules; needs ``PR_SET_NO_NEW_PRIVS``."""
    _checked(_libc.syscall(_Long(_LANDLOCK_RESTRICT_SELF), _Long(rules), _Long(0)))
