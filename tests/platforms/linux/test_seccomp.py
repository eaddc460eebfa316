"""The compiled filter, judged by the emulator over all numbers; ``test_seccomp_kernel`` asks the kernel itself."""

from __future__ import annotations

from collections.abc import Callable
from errno import EAFNOSUPPORT, EBUSY, ENOSYS, EPERM, EPROTONOSUPPORT, errorcode
from struct import pack
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.linux import seccomp
from stockade.platforms.linux.seccomp import Features
from stockade.platforms.linux.syscalls import AARCH64, ARCHITECTURES, X86_64, Arch

Emulate: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]

GARBAGE = 0xDEAD_BEEF_0000_0000
ALLOW, NOTIFY, KILL = "allow", "notify", "kill"

# Written by hand from the promises, not derived from the rules: what is refused whatever its arguments.
REFUSED = """
    mount umount2 pivot_root chroot move_mount fsopen fsconfig fsmount fspick open_tree open_tree_attr mount_setattr
    setns listns open_by_handle_at keyctl add_key request_key bpf perf_event_open userfaultfd fanotify_init syslog
    init_module finit_module delete_module kexec_load kexec_file_load swapon swapoff reboot acct quotactl quotactl_fd
    settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname vhangup iopl ioperm modify_ldt
"""
ABSENT = """
    io_uring_setup io_uring_enter io_uring_register clone3 openat2
    uselib nfsservctl lookup_dcookie _sysctl create_module get_kernel_syms query_module
"""
TRACING = ["ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"]
WITH_ZEROS = (
    dict.fromkeys(REFUSED.split(), "EPERM")
    | dict.fromkeys(ABSENT.split(), "ENOSYS")
    | dict.fromkeys(["socket", "socketpair"], "EAFNOSUPPORT")
)
SOME_FEATURES = [
    pytest.param(Features(), id="default"),
    pytest.param(Features("all"), id="unix sockets"),
    pytest.param(
        Features("stream", tracing=False, notify=frozenset({"connect", "openat", "open", "mkdir"})), id="most"
    ),
]
both = pytest.mark.parametrize("arch", ARCHITECTURES, ids=repr)


def call(arch: Arch, number: int, *arguments: int, token: int | None = None) -> bytes:
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    words = [argument & 0xFFFF_FFFF_FFFF_FFFF for argument in padded]
    return pack("<IIQ6Q", number & 0xFFFF_FFFF, arch.token if token is None else token, 0x1234, *words)


def spell(word: int) -> str:
    names = {0x7FFF_0000: ALLOW, 0x7FC0_0000: NOTIFY, 0x8000_0000: KILL}
    if word in names:
        return names[word]
    assert word >> 16 == 0x0005
    return errorcode[word & 0xFFFF]


def verdicts(emulate: Emulate, arch: Arch, features: Features) -> dict[int, str]:
    program = seccomp.program(arch, features)
    return {number: spell(emulate(program, call(arch, number))[0]) for number in range(601)}


@both
def test_every_number_has_the_verdict_that_was_promised(emulate: Emulate, arch: Arch) -> None:
    names = {number: name for name, number in arch.numbers().items()}
    expected = {n: WITH_ZEROS.get(names[n], ALLOW) if n in names else "ENOSYS" for n in range(601)}
    assert verdicts(emulate, arch, Features()) == expected


@pytest.mark.parametrize("features", SOME_FEATURES)
@both
def test_what_comes_before_a_program_asks_about_its_calls_and_changes_no_other(
    emulate: Emulate, arch: Arch, features: Features
) -> None:
    names = {"getdents64", "getdents"}
    plain = seccomp.program(arch, features)
    asking = seccomp.notified_first(arch, names) + plain
    asked = {number for name, number in arch.numbers().items() if name in names}
    assert len(asked) == (2 if arch is X86_64 else 1)
    for number in (*range(601), 0x4000_0000 + 217, 0x8000_0000, 0xFFFF_FFFF):
        for token in (arch.token, 0x4000_0003):
            data = call(arch, number, token=token)
            expected = NOTIFY if number in asked and token == arch.token else spell(emulate(plain, data)[0])
            assert spell(emulate(asking, data)[0]) == expected


@both
def test_without_tracing_only_the_tracing_calls_change(emulate: Emulate, arch: Arch) -> None:
    with_tracing = verdicts(emulate, arch, Features())
    numbers = arch.numbers()
    assert {with_tracing[numbers[name]] for name in TRACING} == {ALLOW}
    expected = with_tracing | {numbers[name]: "EPERM" for name in TRACING}
    assert verdicts(emulate, arch, Features(tracing=False)) == expected


@pytest.mark.parametrize("features", SOME_FEATURES)
@both
def test_calls_of_other_architectures_end_the_process(emulate: Emulate, arch: Arch, features: Features) -> None:
    program = seccomp.program(arch, features)
    i386, arm, x86_64, aarch64, riscv = 0x4000_0003, 0x4000_0028, X86_64.token, AARCH64.token, 0xC000_00F3
    others = {i386, arm, x86_64, aarch64, riscv, 0, 0xFFFF_FFFF} - {arch.token}
    found = {
        spell(emulate(program, call(arch, number, token=token))[0])
        for token in others
        for number in (*range(601), 0xFFFF_FFFF)
    }
    assert found == {KILL}


@pytest.mark.parametrize(
    ("arch", "number", "verdict"),
    [
        pytest.param(X86_64, 0x4000_0000, KILL, id="x32 read"),
        pytest.param(X86_64, 0x4000_0000 + 39, KILL, id="x32 getpid"),
        pytest.param(X86_64, 0x4000_0000 + 520, KILL, id="x32 execve"),
        pytest.param(X86_64, 0x7FFF_FFFF, KILL, id="last with the x32 bit alone"),
        pytest.param(X86_64, 512, "ENOSYS", id="x32 number without its bit"),
        pytest.param(X86_64, 0x3FFF_FFFF, "ENOSYS", id="below x32"),
        pytest.param(X86_64, 0x8000_0000, "ENOSYS", id="smallest negative"),
        pytest.param(X86_64, -2, "ENOSYS", id="negative"),
        pytest.param(X86_64, -1, ALLOW, id="skipped by a tracer"),
        pytest.param(X86_64, 337, "ENOSYS", id="gap"),
        pytest.param(X86_64, 471, "ENOSYS", id="the next new call"),
        pytest.param(AARCH64, 471, "ENOSYS", id="aarch64 the next new call"),
        pytest.param(AARCH64, 0x4000_0000, "ENOSYS", id="aarch64 has no x32"),
        pytest.param(AARCH64, 250, "ENOSYS", id="aarch64 gap"),
        pytest.param(AARCH64, 410, "ENOSYS", id="aarch64 32-bit time call"),
        pytest.param(AARCH64, -1, ALLOW, id="aarch64 skipped by a tracer"),
    ],
)
def test_odd_numbers(emulate: Emulate, arch: Arch, number: int, verdict: str) -> None:
    assert spell(emulate(seccomp.program(arch, Features()), call(arch, number))[0]) == verdict


def test_all_x32_numbers_end_the_process(emulate: Emulate) -> None:
    program = seccomp.program(X86_64, Features())
    assert {spell(emulate(program, call(X86_64, 0x4000_0000 + n))[0]) for n in range(601)} == {KILL}


E_PERM, E_AF, E_PROTO, E_BUSY = (errorcode[e] for e in (EPERM, EAFNOSUPPORT, EPROTONOSUPPORT, EBUSY))
NEW = {"ns": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000}
NEW |= {"user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
BY_ARGUMENT = [
    *[(f"clone new {kind}", "clone", (flag | 17,), E_PERM) for kind, flag in NEW.items()],
    *[(f"unshare {kind}", "unshare", (flag,), E_PERM) for kind, flag in NEW.items()],
    ("unshare time", "unshare", (0x80,), E_PERM),
    ("fork by clone", "clone", (0x01200011,), ALLOW),
    ("vfork by clone", "clone", (0x00004111,), ALLOW),
    ("thread", "clone", (0x003D0F00,), ALLOW),
    ("clone exit signal with bit 7", "clone", (0x80,), ALLOW),
    ("unshare files", "unshare", (0x400,), ALLOW),
    ("TIOCSTI", "ioctl", (0, 0x5412), E_PERM),
    ("TIOCLINUX", "ioctl", (0, 0x541C), E_PERM),
    ("TIOCCONS", "ioctl", (0, 0x541D), E_PERM),
    ("TIOCSETD", "ioctl", (0, 0x5423), E_PERM),
    ("TIOCEXCL", "ioctl", (0, 0x540C), E_PERM),
    ("TCXONC with TCOOFF", "ioctl", (0, 0x540A, 0), E_PERM),
    ("TCXONC with TCOON", "ioctl", (0, 0x540A, 1), ALLOW),
    ("KDSKBMODE", "ioctl", (0, 0x4B45), E_PERM),
    ("VT_SETMODE", "ioctl", (0, 0x5602), E_PERM),
    ("TCGETS", "ioctl", (0, 0x5401), ALLOW),
    ("TIOCSCTTY", "ioctl", (0, 0x540E), ALLOW),
    ("TIOCSPGRP", "ioctl", (0, 0x5410), ALLOW),
    ("TIOCGWINSZ", "ioctl", (0, 0x5413), ALLOW),
    ("TIOCSPTLCK", "ioctl", (0, 0x40045431), ALLOW),
    ("a command's number in another argument", "ioctl", (0x5412, 0x5401, 0x5412), ALLOW),
    *[
        (f"{call} with {oct(mode)}", call, (*[0] * at, mode), verdict)
        for call, at in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2))
        for mode, verdict in ((0o4755, E_PERM), (0o2755, E_PERM), (0o2644, E_PERM), (0o6000, E_PERM), (0o1777, ALLOW))
    ],
    *[
        (f"{call} with {oct(mode)}", call, (*[0] * at, mode), verdict)
        for call, at in (("creat", 1), ("mknod", 1), ("mknodat", 2))
        for mode, verdict in ((0o4755, E_PERM), (0o2755, E_PERM), (0o2644, E_PERM), (0o1777, ALLOW))
    ],
    *[
        (f"{call} {how} with {oct(mode)}", call, (*[0] * at, flags, mode), verdict)
        for call, at in (("open", 1), ("openat", 2))
        for mode in (0o4755, 0o2755)
        for how, flags, verdict in (("creating", 0x41, E_PERM), ("temporary", 0x410002, E_PERM), ("to read", 0, ALLOW))
    ],
    ("mkdirat with the setgid bit, which the kernel drops", "mkdirat", (0, 0, 0o2755), ALLOW),
    ("mknodat device", "mknodat", (0, 0, 0x2000 | 0o666), E_PERM),
    ("mknodat block", "mknodat", (0, 0, 0x6000 | 0o600), E_PERM),
    ("mknodat device, high mode bits", "mknodat", (0, 0, 0xABCD2000), E_PERM),
    ("mknodat fifo", "mknodat", (0, 0, 0x1000 | 0o600), ALLOW),
    ("mknodat socket", "mknodat", (0, 0, 0xC000), ALLOW),
    ("mknodat regular", "mknodat", (0, 0, 0x8000), ALLOW),
    ("mknodat plain", "mknodat", (0x2000, 0x2000, 0o644), ALLOW),
    ("mknod device", "mknod", (0, 0x2000), E_PERM),
    ("mknod block", "mknod", (0, 0x6000), E_PERM),
    ("mknod fifo", "mknod", (0, 0x1000), ALLOW),
    ("personality of Linux", "personality", (0,), ALLOW),
    ("ask personality", "personality", (0xFFFFFFFF,), ALLOW),
    ("linux32", "personality", (8,), ALLOW),
    ("uname 2.6", "personality", (0x20000,), ALLOW),
    ("no randomising", "personality", (0x40000,), ALLOW),
    ("no randomising, 32 bits", "personality", (0x40008,), ALLOW),
    ("read implies exec", "personality", (0x400000,), E_PERM),
    ("map page zero", "personality", (0x100000,), E_PERM),
    ("compat layout with a common bit", "personality", (0x240000,), E_PERM),
    ("SVR4", "personality", (0x4100001,), E_PERM),
    ("all but one bit", "personality", (0xFFFFFFFE,), E_PERM),
    ("new listener", "seccomp", (1, 8), E_BUSY),
    ("new listener with TSYNC", "seccomp", (1, 0x19), E_BUSY),
    ("plain filter", "seccomp", (1, 0), ALLOW),
    ("filter with TSYNC", "seccomp", (1, 1), ALLOW),
    ("TCP", "socket", (2, 1, 0), ALLOW),
    ("TCP by number, flags", "socket", (2, 1 | 0x80800, 6), ALLOW),
    ("TCP over IPv6", "socket", (10, 1, 6), ALLOW),
    ("UDP", "socket", (2, 2, 17), ALLOW),
    ("UDP over IPv6", "socket", (10, 2 | 0x80000, 0), ALLOW),
    ("raw", "socket", (2, 3, 255), E_PERM),
    ("raw with flags", "socket", (2, 3 | 0x80800, 1), E_PERM),
    ("raw over IPv6", "socket", (10, 3, 58), E_PERM),
    ("packet by IPv4", "socket", (2, 10, 0x300), E_PERM),
    ("DCCP", "socket", (2, 6, 33), E_PERM),
    ("SCTP stream", "socket", (2, 1, 132), E_PROTO),
    ("SCTP seqpacket", "socket", (2, 5, 132), E_PERM),
    ("MPTCP", "socket", (2, 1, 262), E_PROTO),
    ("ping", "socket", (2, 2, 1), E_PROTO),
    ("netlink route", "socket", (16, 3, 0), ALLOW),
    ("netlink route, flags", "socket", (16, 2 | 0x80000, 0), ALLOW),
    ("netlink netfilter", "socket", (16, 3, 12), E_PROTO),
    ("netlink audit", "socket", (16, 3, 9), E_PROTO),
    ("netlink uevent", "socket", (16, 2, 15), E_PROTO),
    ("netlink diag", "socket", (16, 3, 4), E_PROTO),
    *[(f"family {family}", "socket", (family, 1, 0), E_AF) for family in range(50) if family not in {1, 2, 10, 16}],
    ("pair of TIPC", "socketpair", (30, 1), E_AF),
    ("pair of IPv4", "socketpair", (2, 1), E_AF),
    ("read-only open without notify", "openat", (0, 0, 0x80000), ALLOW),
    ("write open without notify", "openat", (0, 0, 0x241), ALLOW),
]


@pytest.mark.parametrize("garbage", [0, GARBAGE], ids=["clean", "high garbage"])
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"), [pytest.param(*case, id=label) for label, *case in BY_ARGUMENT]
)
@both
def test_verdicts_by_argument(
    emulate: Emulate, arch: Arch, name: str, arguments: tuple[int, ...], verdict: str, garbage: int
) -> None:
    number = arch.numbers().get(name)
    if number is None:
        assert arch is AARCH64
        assert name in {"mknod", "chmod", "creat", "open"}
        return
    dirty = [argument | garbage for argument in arguments]
    assert spell(emulate(seccomp.program(arch, Features()), call(arch, number, *dirty))[0]) == verdict


@pytest.mark.parametrize(
    ("mode", "name", "kind", "verdict"),
    [
        pytest.param(mode, name, kind, verdict, id=f"{mode} {name} type {kind:#x}")
        for name, kind, by_mode in (
            ("socket", 1, (E_PERM, ALLOW, ALLOW)),
            ("socket", 1 | 0x80800, (E_PERM, ALLOW, ALLOW)),
            ("socket", 5, (E_PERM, ALLOW, ALLOW)),
            ("socket", 2, (E_PERM, E_PERM, ALLOW)),
            ("socket", 2 | 0x80000, (E_PERM, E_PERM, ALLOW)),
            ("socket", 3, (E_PERM, E_PERM, ALLOW)),
            ("socketpair", 1, (ALLOW, ALLOW, ALLOW)),
            ("socketpair", 5 | 0x800, (ALLOW, ALLOW, ALLOW)),
            ("socketpair", 2, (E_PERM, E_PERM, ALLOW)),
            ("socketpair", 3 | 0x80000, (E_PERM, E_PERM, ALLOW)),
        )
        for mode, verdict in zip(("none", "stream", "all"), by_mode, strict=True)
    ],
)
@both
def test_unix_sockets(
    emulate: Emulate, arch: Arch, mode: seccomp.UnixSockets, name: str, kind: int, verdict: str
) -> None:
    program = seccomp.program(arch, Features(mode))
    for garbage in (0, GARBAGE):
        data = call(arch, arch.numbers()[name], 1 | garbage, kind | garbage)
        assert spell(emulate(program, data)[0]) == verdict


WATCHED = frozenset({"connect", "open", "openat", "openat2", "mkdirat", "mknodat", "mount"})


@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        pytest.param("connect", (), NOTIFY, id="connect"),
        pytest.param("openat2", (), "ENOSYS", id="openat2, whose flags lie in memory, is refused before"),
        pytest.param("mkdirat", (), NOTIFY, id="mkdirat"),
        pytest.param("openat", (0, 0, 0x88000), ALLOW, id="openat to read"),
        pytest.param("openat", (0x241, 0x241, 0), ALLOW, id="openat, bits elsewhere"),
        pytest.param("openat", (0, 0, 1), NOTIFY, id="openat to write"),
        pytest.param("openat", (0, 0, 2 | GARBAGE), NOTIFY, id="openat to read and write"),
        pytest.param("openat", (0, 0, 0x40), NOTIFY, id="openat creating"),
        pytest.param("openat", (0, 0, 0x200), NOTIFY, id="openat truncating"),
        pytest.param("openat", (0, 0, 0x410002), NOTIFY, id="openat temporary"),
        pytest.param("open", (0, 0), ALLOW, id="open to read"),
        pytest.param("open", (0, 0x441), NOTIFY, id="open to append"),
        pytest.param("mknodat", (0, 0, 0x1000), NOTIFY, id="fifo"),
        pytest.param("mknodat", (0, 0, 0x2000), E_PERM, id="refused before it is asked"),
        pytest.param("mount", (), E_PERM, id="refused whole"),
        pytest.param("fchmodat", (0, 0, 0o2755), NOTIFY, id="a setgid mode, for a directory perhaps"),
        pytest.param("fchmodat", (0, 0, 0o6755), E_PERM, id="a setuid mode"),
        pytest.param("fchmodat", (0, 0, 0o755), ALLOW, id="another mode"),
        pytest.param("fchmod", (0, 0o2755 | GARBAGE), NOTIFY, id="a setgid mode by descriptor"),
        pytest.param("fchmodat2", (0, 0, 0o2755), NOTIFY, id="a setgid mode by the newer call"),
        pytest.param("mknodat", (0, 0, 0o2755), E_PERM, id="a new file with a setgid mode"),
        pytest.param("read", (), ALLOW, id="not watched"),
    ],
)
@both
def test_notification(emulate: Emulate, arch: Arch, name: str, arguments: tuple[int, ...], verdict: str) -> None:
    program = seccomp.program(arch, Features("stream", notify=WATCHED))
    number = arch.numbers().get(name)
    if number is None:
        assert (arch, name) == (AARCH64, "open")
        return
    assert spell(emulate(program, call(arch, number, *arguments))[0]) == verdict


@both
def test_notification_changes_no_other_call(emulate: Emulate, arch: Arch) -> None:
    numbers = arch.numbers()
    asked = {numbers[name]: NOTIFY for name in ("connect", "mkdirat", "mknodat")}
    plain = verdicts(emulate, arch, Features())
    assert verdicts(emulate, arch, Features(notify=WATCHED)) == plain | asked


@given(tail=st.binary(min_size=56, max_size=56), number=st.integers(0, 0xFFFF_FFFF), token=st.integers(0, 0xFFFF_FFFF))
@pytest.mark.parametrize("features", SOME_FEATURES)
@both
def test_every_call_gets_a_known_verdict(
    emulate: Emulate, arch: Arch, features: Features, tail: bytes, number: int, token: int
) -> None:
    program = seccomp.program(arch, features)
    known = {ALLOW, NOTIFY, KILL, errorcode[ENOSYS], E_PERM, E_AF, E_PROTO, E_BUSY}
    assert spell(emulate(program, pack("<II", number, token) + tail)[0]) in known
    assert spell(emulate(program, pack("<II", number % 480, arch.token) + tail)[0]) in known - {KILL}


@pytest.mark.parametrize("features", SOME_FEATURES)
@both
def test_the_program_is_short_and_quick(emulate: Emulate, arch: Arch, features: Features) -> None:
    program = seccomp.program(arch, features)
    assert len(program) // 8 < 256
    numbers = arch.numbers()
    hot = ("read", "write", "close", "futex", "mmap", "newfstatat", "epoll_pwait", "execve", "openat", "clone", "ioctl")
    steps = {name: emulate(program, call(arch, numbers[name]))[1] for name in hot}
    assert max(steps.values()) <= 18, steps
    assert max(steps[name] for name in ("read", "write", "close", "futex", "mmap")) <= 12, steps


@pytest.mark.parametrize("features", SOME_FEATURES)
def test_each_rule_says_why_in_one_line(features: Features) -> None:
    for rule in seccomp.rules(features):
        assert rule.reason
        assert "\n" not in str(rule)
        assert str(rule).startswith(rule.name)
    assert all(str(guard.verdict) in {"kill", "ENOSYS"} for arch in ARCHITECTURES for guard in seccomp.guards(arch))


def test_a_rule_prints_as_one_line() -> None:
    lines = {str(rule) for rule in seccomp.rules(Features())}
    assert "mknodat if (arg2 & 0xf000) in {0x2000, 0x6000}: EPERM (no devices)" in lines
    assert "setns: EPERM (no command enters or lists other namespaces)" in lines


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"notify": frozenset({"conect"})}, "no such system call: conect", id="unknown call"),
        pytest.param({"unix_sockets": "some"}, "unix_sockets cannot be 'some'", id="unknown mode"),
    ],
)
def test_features_that_would_filter_nothing_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidTextError, match=words) as caught:
        Features().but(**fields)
    assert caught.value.hint
