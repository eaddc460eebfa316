"""Which system calls a command may make, and why not the others.

Namespaces, mounts and dropped capabilities are the walls; this list keeps commands away from what
could undo them (new namespaces, mounts), from what namespaces do not cover (terminals, sockets by
path, keyrings), and from kernel surface that ordinary programs never need.

Rules: a refusal gives the answer that programs already know how to handle: ``ENOSYS`` where they
fall back to an older call, ``EAFNOSUPPORT`` where they try another family, otherwise ``EPERM``.
Calls that act on processes (``ptrace``, ``process_vm_*``, ``kcmp``, ``pidfd_getfd``) stay: a command sees
only its own pid namespace, and debuggers need them; a session without one sets ``tracing=False``.
They are no way around the filter: the kernel checks a call after its tracer had its say.
``name_to_handle_at`` stays, since a handle is only a name as long as it cannot be opened.
System V and POSIX queues and shared memory stay: the ipc namespace owns them.
Source of truth: the man pages in section 2, and ``kernel/seccomp.c``.
"""

from __future__ import annotations

from errno import EAFNOSUPPORT, EBUSY, ENOSYS, EPERM, EPROTONOSUPPORT

from stockade.annotation import Literal, TypeAlias
from stockade.errors import InvalidTextError
from stockade.platforms.linux import terminal_calls
from stockade.platforms.linux.calls import CHMODS, MAKERS
from stockade.platforms.linux.syscall_rule import (
    FULL_WORD,
    SyscallRule,
    Verdict,
    has_any_bit,
    is_none_of,
    is_one_of,
)
from stockade.platforms.linux.syscalls import ARCHITECTURES
from stockade.value import Value

UnixSockets: TypeAlias = Literal["none", "stream", "all"]


class Features(Value):
    """What differs from session to session.

    ``unix_sockets``: ``none`` leaves only connected pairs; ``stream`` also gives sockets that have to
    ``connect`` before they can send, so that a supervisor who is told of ``connect`` sees every peer;
    ``all`` adds datagrams, which can go to any path without being seen.
    ``tracing``: debuggers and the like may look into other processes of the same pid namespace.
    ``notify``: names of calls that a supervisor is told of; ``open`` and ``openat`` only with write intent, ``socket``
    only for unix datagrams, which it answers in place of the filter. With any, it answers for the setgid bit, too.
    ``descriptors``: it is told, too, where such a call means an open file instead of a path.
    """

    unix_sockets: UnixSockets = "none"
    tracing: bool = True
    notify: frozenset[str] = frozenset()
    descriptors: bool = True

    def check(self) -> None:
        """Refuse a mode or a name that does not exist: it would silently filter nothing."""
        if self.unix_sockets not in {"none", "stream", "all"}:
            message = f"unix_sockets cannot be {self.unix_sockets!r}"
            raise InvalidTextError(message, "use none, stream or all")
        unknown = sorted(self.notify.difference(*(arch.numbers() for arch in ARCHITECTURES)))
        if unknown:
            message = f"no such system call: {', '.join(unknown)}"
            raise InvalidTextError(message, "use the names of the kernel's own table, such as openat or connect")


REFUSED = Verdict("errno", EPERM)
ABSENT = Verdict("errno", ENOSYS)
NO_FAMILY = Verdict("errno", EAFNOSUPPORT)
NO_PROTOCOL = Verdict("errno", EPROTONOSUPPORT)
NOTIFIED = Verdict("notify")

_WHOLE: tuple[tuple[Verdict, str, str], ...] = (
    (
        ABSENT,
        "io_uring does file and network calls that no filter sees",
        "io_uring_setup io_uring_enter io_uring_register",
    ),
    (ABSENT, "its flags lie in memory, where a filter cannot read them; libraries fall back to clone", "clone3"),
    (
        REFUSED,
        "mounts are the walls of the session",
        """
        mount umount2 pivot_root chroot
        move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr
        """,
    ),
    (REFUSED, "no command enters or lists other namespaces", "setns listns"),
    (REFUSED, "a file handle reaches files around the mounts", "open_by_handle_at"),
    (ABSENT, "its flags and mode lie in memory, where a filter cannot read them; programs fall back", "openat2"),
    (REFUSED, "kernel keyrings are shared with the host", "keyctl add_key request_key"),
    (
        REFUSED,
        "runs or loads code in the kernel",
        "bpf init_module finit_module delete_module kexec_load kexec_file_load",
    ),
    (REFUSED, "observes the whole machine", "perf_event_open syslog fanotify_init"),
    (REFUSED, "lets a program hold the kernel in the middle of an access, which makes races reliable", "userfaultfd"),
    (
        REFUSED,
        "changes the machine for everybody",
        """
        swapon swapoff reboot acct quotactl quotactl_fd settimeofday clock_settime adjtimex clock_adjtime
        sethostname setdomainname vhangup
        """,
    ),
    (REFUSED, "direct access to hardware or segment tables", "iopl ioperm modify_ldt"),
    (
        ABSENT,
        "kernels of today have no such call",
        "uselib nfsservctl lookup_dcookie _sysctl create_module get_kernel_syms query_module",
    ),
)

_TRACING = "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd"

_NAMESPACES = 0x7E02_0000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_TIME_NAMESPACE = 0x80  # CLONE_NEWTIME; for clone(2) these bits are the exit signal
_FILE_TYPE = 0xF000
_CHARACTER_DEVICE, _BLOCK_DEVICE = 0x2000, 0x6000
_SETLEASE = 1024
_SETUID, _SETGID = 0o4000, 0o2000
_CREATES = 0o100 | 0o20000000  # O_CREAT, and what O_TMPFILE has besides O_DIRECTORY
_KEEPS_RIGHTS = "a setuid or setgid file would stay on the host and give its owner's or group's rights to everybody"
_NEW_LISTENER = 0x8
# PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE: build tools, debuggers and sanitizers set these on themselves.
_COMMON_PERSONALITY = 0x0006_0008
_ASK_PERSONALITY = 0xFFFF_FFFF

_BY_ARGUMENT: tuple[SyscallRule, ...] = (
    SyscallRule("clone", REFUSED, "no new namespaces", (has_any_bit(0, _NAMESPACES),)),
    SyscallRule("unshare", REFUSED, "no new namespaces", (has_any_bit(0, _NAMESPACES | _TIME_NAMESPACE),)),
    SyscallRule(
        "ioctl",
        REFUSED,
        "types into, redirects, locks or reprograms a terminal or console",
        (
            is_one_of(1, *terminal_calls.TYPES, mask=terminal_calls.TYPE),
            is_none_of(1, *terminal_calls.PAIRS, mask=terminal_calls.PAIR),
            is_none_of(1, *terminal_calls.SINGLES),
        ),
    ),
    SyscallRule(
        "ioctl",
        REFUSED,
        "stops the terminal's output for good",
        # The kernel takes this argument whole. A high half makes it no order at all, so to refuse that, too, is safe.
        (is_one_of(1, terminal_calls.FLOW), is_one_of(2, terminal_calls.STOP_OUTPUT)),
    ),
    SyscallRule("fcntl", REFUSED, "a lease holds back whoever opens the file on the host", (is_one_of(1, _SETLEASE),)),
    *(SyscallRule(name, REFUSED, _KEEPS_RIGHTS, (has_any_bit(mode, _SETUID),)) for name, mode in CHMODS.items()),
    # New directories come by mkdir(2), which takes neither bit; so nothing that these make may have one.
    *(
        SyscallRule(name, REFUSED, _KEEPS_RIGHTS, (has_any_bit(mode, _SETUID | _SETGID),))
        for name, mode in MAKERS.items()
    ),
    *(
        SyscallRule(
            name, REFUSED, _KEEPS_RIGHTS, (has_any_bit(flags, _CREATES), has_any_bit(flags + 1, _SETUID | _SETGID))
        )
        for name, flags in (("open", 1), ("openat", 2))
    ),
    SyscallRule("mknod", REFUSED, "no devices", (is_one_of(1, _CHARACTER_DEVICE, _BLOCK_DEVICE, mask=_FILE_TYPE),)),
    SyscallRule("mknodat", REFUSED, "no devices", (is_one_of(2, _CHARACTER_DEVICE, _BLOCK_DEVICE, mask=_FILE_TYPE),)),
    SyscallRule(
        "personality",
        REFUSED,
        "only the common execution domains",
        (is_none_of(0, 0, mask=FULL_WORD & ~_COMMON_PERSONALITY), is_none_of(0, _ASK_PERSONALITY)),
    ),
    SyscallRule(
        "seccomp",
        Verdict("errno", EBUSY),
        "a second listener would hear the calls that ours decides",
        (has_any_bit(1, _NEW_LISTENER),),
    ),
)

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TYPE = 0xF  # the rest of the word is SOCK_CLOEXEC and SOCK_NONBLOCK
_STREAM, _DATAGRAM, _SEQPACKET = 1, 2, 5
_TCP, _UDP = 6, 17

_SOCKETS: tuple[SyscallRule, ...] = (
    SyscallRule(
        "socket",
        NO_FAMILY,
        "reaches beyond the network namespace, or is kernel surface that nobody needs",
        (is_none_of(0, _UNIX, _INET, _INET6, _NETLINK),),
    ),
    SyscallRule(
        "socket",
        NO_PROTOCOL,
        "of netlink only routes, which libraries read to list addresses",
        (is_one_of(0, _NETLINK), is_none_of(2, 0)),
    ),
    SyscallRule(
        "socket",
        REFUSED,
        "no raw packets",
        (is_one_of(0, _INET, _INET6), is_none_of(1, _STREAM, _DATAGRAM, mask=_TYPE)),
    ),
    SyscallRule(
        "socket",
        NO_PROTOCOL,
        "the session's network carries only TCP and UDP; others are kernel surface",
        (is_one_of(0, _INET, _INET6), is_none_of(2, 0, _TCP, _UDP)),
    ),
    SyscallRule("socketpair", NO_FAMILY, "other families make no pairs", (is_none_of(0, _UNIX),)),
)

_NO_UNIX = SyscallRule("socket", REFUSED, "unix sockets are not allowed", (is_one_of(0, _UNIX),))
_NO_UNIX_DATAGRAM = SyscallRule(
    "socket",
    REFUSED,
    "a unix datagram goes to any path without connecting",
    # SOCK_RAW is made a datagram socket by the kernel, hence the list of what may be.
    (is_one_of(0, _UNIX), is_none_of(1, _STREAM, _SEQPACKET, mask=_TYPE)),
)
_NO_DATAGRAM_PAIR = SyscallRule(
    "socketpair",
    REFUSED,
    "a unix datagram goes to any path, from a connected pair too",
    (is_none_of(1, _STREAM, _SEQPACKET, mask=_TYPE),),
)

# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC: the same bits on both architectures. O_TMPFILE needs one of the first two.
_WRITE_INTENT = 0x243
_OPEN_FLAGS = {"open": 1, "openat": 2}
_SOCKET = "socket"
#: Calls that mean the descriptor itself if there is no path.
_OPTIONAL_PATHS = {"utimensat": 1}


def rules(features: Features) -> tuple[SyscallRule, ...]:
    """Return every rule, in the order in which the rules of one name are tried."""
    whole = [SyscallRule(name, verdict, reason) for verdict, reason, names in _WHOLE for name in names.split()]
    if not features.tracing:
        whole += [SyscallRule(name, REFUSED, "sees processes of others") for name in _TRACING.split()]
    rest = (*_setgid_rules(features), *_SOCKETS, *_unix_rules(features), *_notify_rules(features))
    return (*whole, *_BY_ARGUMENT, *rest)


def _setgid_rules(features: Features) -> tuple[SyscallRule, ...]:
    """Return the rules about the setgid bit: a supervisor does it for directories, without one nobody does."""
    verdict = NOTIFIED if features.notify else REFUSED
    return tuple(
        SyscallRule(name, verdict, _KEEPS_RIGHTS, (has_any_bit(mode, _SETGID),)) for name, mode in CHMODS.items()
    )


def _unix_rules(features: Features) -> tuple[SyscallRule, ...]:
    if features.unix_sockets == "all":
        return ()
    if features.unix_sockets == "none":
        return (_NO_UNIX, _NO_DATAGRAM_PAIR)
    datagram = _NO_UNIX_DATAGRAM.but(verdict=NOTIFIED) if _SOCKET in features.notify else _NO_UNIX_DATAGRAM
    return (datagram, _NO_DATAGRAM_PAIR)


def _notify_rules(features: Features) -> tuple[SyscallRule, ...]:
    """Return the rules for the supervisor; they come last, since what is refused anyway needs no question."""
    when = {name: (has_any_bit(flags, _WRITE_INTENT),) for name, flags in _OPEN_FLAGS.items()}
    if not features.descriptors:
        # Half of an address is enough to tell none from one: who has a path at a round address is not told of it.
        when |= {name: (has_any_bit(path, FULL_WORD),) for name, path in _OPTIONAL_PATHS.items()}
    return tuple(
        SyscallRule(name, NOTIFIED, "the supervisor is asked", when.get(name, ()))
        for name in sorted(features.notify - {_SOCKET})
    )
