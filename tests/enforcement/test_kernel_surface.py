"""What the kernel offers beyond files is closed where it reaches the host, or could undo the walls."""

from __future__ import annotations

import os
import platform
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground, MakeTrial, Trial

ROOT = os.geteuid() == 0
#: What an ordinary user is refused without walls as well, by the kernel itself.
BARE = "ok" if ROOT else "EPERM"
USER, MOUNT, PID, NET, IPC, UTS, CGROUP, TIME = (
    0x10000000,
    0x20000,
    0x20000000,
    0x40000000,
    0x8000000,
    0x4000000,
    0x2000000,
    0x80,
)

ATTACKS: dict[str, tuple[str, ...]] = {
    "unshare: a user namespace": (f"call(libc.unshare({USER}))", "EPERM"),
    "unshare: a user and a mount namespace": (f"call(libc.unshare({USER | MOUNT}))", "EPERM"),
    "unshare: a user and a network namespace": (f"call(libc.unshare({USER | NET}))", "EPERM"),
    **{
        f"unshare: {name}": (f"call(libc.unshare({flag}))", "EPERM", BARE)
        for name, flag in (
            ("mounts", MOUNT),
            ("processes", PID),
            ("network", NET),
            ("ipc", IPC),
            ("names", UTS),
            ("cgroups", CGROUP),
            ("clocks", TIME),
        )
    },
    "clone: a user namespace": (
        f"""
child = kernel('clone', {USER} | signal.SIGCHLD, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
""",
        "EPERM",
    ),
    "clone3: a user namespace": (
        f"""
child = kernel('clone3', struct.pack('8Q', {USER}, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
""",
        "ENOSYS",
    ),
    "entering a namespace": (
        "kernel('setns', os.open('/proc/self/ns/user', os.O_RDONLY), 0)",
        "EPERM",
        "EINVAL",
    ),
    "entering by a process": ("kernel('setns', os.pidfd_open(os.getpid()), 0x40000000)", "EPERM", BARE),
    "io_uring": ("kernel('io_uring_setup', 1, ctypes.create_string_buffer(120))", "ENOSYS"),
    "io_uring on a number": ("kernel('io_uring_enter', 0, 0, 0, 0, 0, 0)", "ENOSYS", "*"),
    "a key": ("kernel('add_key', 'user', 'stockade-test', b'x', 1, -1)", "EPERM"),
    "a keyring": ("kernel('keyctl', 0, -3, 1)", "EPERM"),
    "asking for a key": ("kernel('request_key', 'user', 'stockade-test', 0, -1)", "EPERM", "ENOKEY"),
    "user faults": ("kernel('userfaultfd', 1)", "EPERM"),
    "performance counters": (
        (
            "kernel('perf_event_open', struct.pack('IIQ', 1, 112, 9) + bytes(24) + struct.pack('Q', 0x61) + bytes(64),"
            " 0, -1, -1, 0)"
        ),
        "EPERM",
    ),
    "the kernel's log": ("kernel('syslog', 3, ctypes.create_string_buffer(64), 64)", "EPERM", "*"),
    "a filter's listener": (
        (
            "libc.prctl(38, 1, 0, 0, 0); kernel('seccomp', 1, 8, struct.pack('Hxxxxxx', 1) + struct.pack('P',"
            " ctypes.addressof(filter_ := ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000)))))"
        ),
        "EBUSY",
    ),
    "an odd execution domain": ("kernel('personality', 0x0400000)", "EPERM"),
    "chroot": ("os.chroot('.')", "EPERM", BARE),
    "a new root": ("kernel('pivot_root', '.', '.')", "EPERM", "*"),
    "detaching a tree": ("kernel('open_tree', -100, '/', 0x80001)", "EPERM", BARE),
    "opening a tree": ("kernel('open_tree', -100, '/', 0x80000)", "EPERM"),
    "a file system": ("kernel('fsopen', 'tmpfs', 0)", "EPERM", BARE),
    "picking a file system": ("kernel('fspick', -100, '/', 0)", "EPERM", BARE),
    "attributes of a mount": (
        "kernel('mount_setattr', -100, here, 0, struct.pack('4Q', 0, 0, 0, 0), 32)",
        "EPERM",
        BARE,
    ),
    "watching everything": ("kernel('fanotify_init', 0, 0)", "EPERM", BARE),
    "direct access to ports": ("kernel('iopl', 0)", "EPERM", "*"),
    "segment tables": ("kernel('modify_ldt', 0, ctypes.create_string_buffer(64), 64)", "EPERM"),
    "the host's name by a call": ("socket.sethostname(socket.gethostname())", "EPERM", BARE),
    "process accounting": ("kernel('acct', 0)", "EPERM", BARE),
    "swap": ("kernel('swapoff', f'{there}/victim')", "EPERM", "*"),
    "quota": ("kernel('quotactl', 0x80000100, 0, 0, 0)", "EPERM", "ok"),
    "the clock": ("kernel('clock_settime', 1, struct.pack('qq', 1, 0))", "EPERM", "EINVAL"),
    "a module": ("kernel('delete_module', 'stockade-test', 0)", "EPERM", "*"),
    "a kernel program": (
        "kernel('bpf', 0, struct.pack('IIIII', 2, 4, 8, 1, 0) + bytes(100), 72)",
        "EPERM",
        BARE,
    ),
}
if platform.machine() != "x86_64":
    for absent in ("direct access to ports", "segment tables"):
        del ATTACKS[absent]

#: Settings of the machine, of which kernels have some or others. Opened for writing; not even the control writes them.
SWITCHES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/virtual/mem/null/uevent",
    "/sys/fs/cgroup/cgroup.subtree_control",
)
# Root is refused by the mount, a user by the owner of the file.
ATTACKS |= {
    f"opening {path}": (
        f"os.open({path!r}, os.O_WRONLY)",
        "EROFS" if ROOT else "EACCES",
        "ok" if ROOT else "EACCES",
    )
    for path in SWITCHES
    if os.path.exists(path)
}
ATTACKS["the limits of namespaces"] = (
    "os.open('/proc/sys/user/max_user_namespaces', os.O_WRONLY)",
    "EACCES",
    "*",
)
ATTACKS["making a cgroup"] = (
    "name = f'/sys/fs/cgroup/stockade-test-{os.getpid()}'; os.mkdir(name); os.rmdir(name)",
    "EROFS",
    "*",
)


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_kernel_is_closed_where_it_reaches_the_host(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])


PROBE = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(int count, char **words) {
    long result = -1;
    if (!strcmp(words[1], "unknown"))
        result = syscall(4000);
#ifdef __x86_64__
    else if (!strcmp(words[1], "i386"))
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    else if (!strcmp(words[1], "x32"))
        result = syscall(0x40000000 + 39);
#endif
    else
        result = syscall(SYS_getpid);
    printf("%ld\n", result);
    return result > 0 ? 0 : 3;
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that makes one call by another table of numbers."""
    folder = tmp_path_factory.mktemp("probe").resolve()
    (folder / "probe.c").write_text(PROBE)
    subprocess.run(["gcc", "-O1", "-w", "-o", folder / "probe", folder / "probe.c"], check=True)
    return folder / "probe"


#: Tables of numbers beside the machine's own, and the signal that ends who uses them.
TABLES = {"i386": 31, "x32": 31} if platform.machine() == "x86_64" else {"unknown": None}


@pytest.mark.parametrize("table", TABLES)
def test_another_table_of_calls_ends_the_process(ground: Ground, probe: Path, table: str) -> None:
    assert subprocess.run([probe, table], check=False, capture_output=True).returncode in (0, 3), "bare, it lives"
    sandbox = ground.sandbox()
    assert sandbox.run([str(probe), "plain"]).exit_code == 0
    done = sandbox.run([str(probe), table])
    assert (done.signal, done.ok) == (TABLES[table], False)


def test_an_unknown_call_is_absent(ground: Ground) -> None:
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(4000); print(ctypes.get_errno())"
    assert ground.sandbox().run(["python3", "-I", "-S", "-c", script]).output == "38\n"


def test_the_hosts_name_stays(ground: Ground) -> None:
    before = os.uname().nodename
    ground.sandbox().run("hostname intruder; echo intruder > /proc/sys/kernel/hostname")
    assert os.uname().nodename == before
