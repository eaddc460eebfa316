"""The kernel's own verdict on the filter: it answers as the emulator does, and ordinary programs do not notice it."""

from __future__ import annotations

import json
import platform
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from struct import pack
from typing import TYPE_CHECKING, TypeAlias

import pytest

from stockade.platforms.linux import seccomp
from stockade.platforms.linux.seccomp import Features
from stockade.platforms.linux.syscalls import X86_64, arch_of

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

Emulate: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]
UnderFilter: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"}, reason="no filter for this machine"
)
on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="an ABI of x86_64")

BAD = 0xFFFF_FFFF_FFFF_F000  # no address, no descriptor: a call that is let through fails without effect
HIGH = 0xDEAD_BEEF_0000_0000
NOT_A_DESCRIPTOR = 0xFFFF_FFFF

# Each is harmless even if the filter failed to stop it: bad pointers, bad descriptors, bad magic numbers.
CALLS: list[tuple[str, tuple[int, ...]]] = [
    ("getpgid", (BAD,)),
    ("read", (NOT_A_DESCRIPTOR, BAD, 1)),
    ("write", (NOT_A_DESCRIPTOR, BAD, 1)),
    ("openat", (NOT_A_DESCRIPTOR, BAD, 0)),
    ("io_uring_setup", (0, BAD)),
    ("io_uring_enter", (NOT_A_DESCRIPTOR, 0, 0, 0, 0, 0)),
    ("io_uring_register", (NOT_A_DESCRIPTOR, 0, 0, 0)),
    ("clone3", (BAD, 1)),
    ("mount", (BAD, BAD, BAD, 0, 0)),
    ("umount2", (BAD, 0)),
    ("chroot", (BAD,)),
    ("pivot_root", (BAD, BAD)),
    ("fsopen", (BAD, 0)),
    ("open_tree", (NOT_A_DESCRIPTOR, BAD, 0)),
    ("open_tree_attr", (NOT_A_DESCRIPTOR, BAD, 0, 0, 0)),
    ("mount_setattr", (NOT_A_DESCRIPTOR, BAD, 0, 0, 0)),
    ("setns", (NOT_A_DESCRIPTOR, 0)),
    ("unshare", (0,)),
    ("unshare", (0x10000000 | 0x1,)),
    ("unshare", (0x80 | 0x1,)),
    ("clone", (0x10000000 | 0x10000,)),
    ("clone", (HIGH | 0x10000000 | 0x10000,)),
    ("clone", (0x10000,)),
    ("bpf", (NOT_A_DESCRIPTOR, BAD, 1)),
    ("perf_event_open", (BAD, 0, 0, 0, 0)),
    ("userfaultfd", (0xFFFF,)),
    ("keyctl", (9999,)),
    ("add_key", (BAD, BAD, BAD, 0, 0)),
    ("request_key", (BAD, BAD, BAD, 0)),
    ("init_module", (BAD, 0, BAD)),
    ("finit_module", (NOT_A_DESCRIPTOR, BAD, 0)),
    ("kexec_load", (0, 99, 0, 0xFFFF)),
    ("open_by_handle_at", (NOT_A_DESCRIPTOR, BAD, 0)),
    ("name_to_handle_at", (NOT_A_DESCRIPTOR, BAD, BAD, BAD, 0)),
    ("swapon", (BAD, 0)),
    ("reboot", (0, 0, 0, 0)),
    ("sethostname", (BAD, 1)),
    ("settimeofday", (BAD, BAD)),
    ("clock_settime", (99, BAD)),
    ("syslog", (99, BAD, 0)),
    ("socket", (2, 1, 0)),
    ("socket", (HIGH | 2, HIGH | 3, HIGH | 1)),
    ("socket", (2, 10, 0x300)),
    ("socket", (1, 1, 0)),
    ("socket", (HIGH | 1, 1, 0)),
    ("socket", (17, 3, 0)),
    ("socket", (38, 5, 0)),
    ("socket", (40, 1, 0)),
    ("socket", (16, 3, 0)),
    ("socket", (16, 3, 12)),
    ("socket", (2, 1, 132)),
    ("socketpair", (1, 1, 0, BAD)),
    ("socketpair", (1, 2, 0, BAD)),
    ("socketpair", (HIGH | 2, 1, 0, BAD)),
    ("ioctl", (NOT_A_DESCRIPTOR, 0x5412, BAD)),
    ("ioctl", (NOT_A_DESCRIPTOR, HIGH | 0x5412, BAD)),
    ("ioctl", (NOT_A_DESCRIPTOR, HIGH | 0x541C, BAD)),
    ("ioctl", (NOT_A_DESCRIPTOR, 0x5401, BAD)),
    ("mknodat", (NOT_A_DESCRIPTOR, BAD, 0x2000, 0)),
    ("mknodat", (NOT_A_DESCRIPTOR, BAD, HIGH | 0x6000, 0)),
    ("mknodat", (NOT_A_DESCRIPTOR, BAD, 0x1000, 0)),
    ("personality", (0xFFFFFFFF,)),
    ("personality", (HIGH | 0x400000,)),
    ("seccomp", (1, 8, 0)),
    ("seccomp", (99, 0, 0)),
    ("ptrace", (9999, 0, 0, 0)),
    ("process_vm_readv", (0, BAD, 1, BAD, 1, 99)),
    ("pidfd_getfd", (NOT_A_DESCRIPTOR, 0, 0)),
]

PROBE = """
import json
libc.syscall.restype = ctypes.c_long
outcomes = []
for number, arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(argument) for argument in arguments))
    outcomes.append(ctypes.get_errno() if result == -1 else 0)
print(json.dumps(outcomes))
"""


def probe(under_filter: UnderFilter, program: bytes, calls: list[tuple[int, tuple[int, ...]]]) -> list[int]:
    """Make the calls and return the error number of each, 0 where it succeeded."""
    done = under_filter(program, json.dumps(calls), text=PROBE)
    assert (done.returncode, done.stderr) == (0, "")
    outcomes: list[int] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(Features(), id="default"),
        pytest.param(Features("stream", tracing=False), id="stream, no tracing"),
        pytest.param(Features("all"), id="all unix sockets"),
    ],
)
def test_the_kernel_answers_as_the_emulator_does(
    emulate: Emulate, under_filter: UnderFilter, features: Features
) -> None:
    """A refused call gives the filter's error; one that is let through gives what it gives without a filter."""
    arch = arch_of(platform.machine())
    numbers = arch.numbers()
    program = seccomp.program(arch, features)
    calls = [(numbers[name], arguments) for name, arguments in CALLS] + [(337, ()), (471, ()), (600, ()), (-1, ())]
    words = []
    for number, arguments in calls:
        padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
        words.append(emulate(program, pack("<IIQ6Q", number & 0xFFFF_FFFF, arch.token, 0, *padded))[0])
    allowed = [call for call, word in zip(calls, words, strict=True) if word == seccomp.ALLOWED.word]
    assert 15 < len(allowed) < len(calls) - 40
    without = iter(probe(under_filter, b"", allowed))
    expected = [next(without) if word == seccomp.ALLOWED.word else word & 0xFFFF for word in words]
    found = probe(under_filter, program, calls)
    labels = [*(f"{name}{arguments}" for name, arguments in CALLS), "337", "471", "600", "-1"]
    assert dict(zip(labels, found, strict=True)) == dict(zip(labels, expected, strict=True))


@on_x86_64
def test_an_x32_call_ends_the_process(under_filter: UnderFilter) -> None:
    text = "libc.syscall.restype = ctypes.c_long\nlibc.syscall(ctypes.c_long(0x40000000 + 39))\nprint('alive')"
    control = under_filter(b"", text=text)
    assert (control.returncode, control.stdout) == (0, "alive\n")
    done = under_filter(seccomp.program(X86_64, Features()), text=text)
    assert (done.returncode, done.stdout) == (-signal.SIGSYS, "")


# mov eax, 20 (getpid of i386); int 0x80; ret
INT_80 = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid())
"""


@on_x86_64
def test_an_i386_call_ends_the_process(under_filter: UnderFilter) -> None:
    control = under_filter(b"", text=INT_80)
    if control.returncode == -signal.SIGSEGV:
        pytest.skip("this kernel has no i386 calls")
    assert (control.returncode, control.stderr) == (0, "")
    done = under_filter(seccomp.program(X86_64, Features()), text=INT_80)
    assert (done.returncode, done.stdout) == (-signal.SIGSYS, "")


DATAGRAM = """
import socket
try:
    if sys.argv[1] == "pair":
        sender, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    else:
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_RAW)
    sender.sendto(b"out", sys.argv[2])
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("how", ["pair", "raw"])
@pytest.mark.parametrize("features", [Features("none"), Features("stream")], ids=["none", "stream"])
def test_no_datagram_reaches_a_unix_socket_by_path(
    under_filter: UnderFilter, tmp_path: Path, how: str, features: Features
) -> None:
    path = str(tmp_path / "s")
    program = seccomp.program(arch_of(platform.machine()), features)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        receiver.settimeout(10)
        under_filter(b"", how, path, text=DATAGRAM)
        assert receiver.recv(9) == b"out"
        done = under_filter(program, how, path, text=DATAGRAM)
        assert (done.returncode, done.stdout) == (0, "PermissionError\n")
        receiver.setblocking(False)
        with pytest.raises(BlockingIOError):
            receiver.recv(9)


NOTIFIED = """
print(open(sys.argv[1]).read())
try:
    open(sys.argv[1], "w")
except OSError as error:
    print(error.strerror)
"""


def test_a_watched_call_without_a_supervisor_fails_closed(under_filter: UnderFilter, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("kept")
    features = Features(notify=frozenset({"open", "openat", "openat2", "creat"}))
    done = under_filter(seccomp.program(arch_of(platform.machine()), features), str(file), text=NOTIFIED)
    assert (done.stdout, file.read_text()) == ("kept\nFunction not implemented\n", "kept")


PYTHON = """
import asyncio, concurrent.futures, multiprocessing, socket, subprocess, tempfile, threading
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(await reader.read(), (await asyncio.create_subprocess_exec("true")).pid > 0)
asyncio.run(main())
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, range(9))))
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
with tempfile.TemporaryFile() as file: print(file.write(b"x"))
print(socket.getaddrinfo("127.0.0.1", 80)[0][4], subprocess.run(["true"]).returncode)
"""
NODE = """
const {Worker} = require("worker_threads"), cp = require("child_process"), fs = require("fs"), net = require("net");
console.log(cp.execSync("echo child").toString());
fs.promises.readFile("/etc/passwd").then(text => console.log(text.length > 0));
new Worker("require('worker_threads').parentPort.postMessage(7)", {eval: true}).on("message", console.log);
const server = net.createServer(s => s.end("hi")).listen(0, "127.0.0.1", () =>
    net.connect(server.address().port, "127.0.0.1").on("data", d => { console.log(String(d)); server.close(); }));
"""
GIT = """
git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add -A &&
git commit -qm m && git clone -q . copy && git -C copy log --format=%s && git status --short
"""
C = r"""
printf '#include <pthread.h>\n#include <stdio.h>\nstatic void *f(void *p){return p;}\n' > t.c &&
printf 'int main(){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);puts("ok");}\n' >> t.c &&
gcc -pthread t.c -o t && ./t
"""

# tool, shell line; each runs without the filter first, and has to say the same under it.
PROGRAMS = [
    ("bash", "for i in 1 2 3; do echo $i; done | wc -l; (exit 3) || echo $?; cat <(echo process) <<< here; ulimit -n"),
    ("bash", "mkfifo p && (echo through > p &) && cat p"),
    ("python3", f"python3 -c '{PYTHON}'"),
    ("git", GIT),
    ("node", f"node -e '{NODE}' | sort"),
    ("npm", "npm --version"),
    ("gcc", C),
    ("make", "printf 'all: a b\\na b:\\n\\t@true $@\\n' > Makefile && make -j2 all && echo made"),
    ("java", "java -version 2>&1"),
    ("pip", "python3 -m pip --version"),
    ("tmux", "tmux -V"),
    ("sqlite3", "sqlite3 db 'pragma journal_mode=wal; create table t(a); insert into t values(1); select * from t'"),
    ("curl", "curl --version"),
    ("tar", "mkdir d && touch d/a && tar cf a.tar d && tar tf a.tar"),
    ("perl", "perl -e 'print `echo perl`'"),
    ("strace", "strace -f -o trace true && grep -c exit_group trace"),
    ("gdb", "gdb -nx -batch -ex 'break main' -ex run -ex kill --args bash -c true 2>&1 | grep -c 'exited\\|killed'"),
    ("setarch", "setarch -R true && echo set"),
    ("ip", "ip -o addr show dev lo | wc -l"),
    ("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f key && ls key key.pub"),
]


@pytest.mark.parametrize(
    ("tool", "line"), [pytest.param(tool, line, id=f"{tool} {index}") for index, (tool, line) in enumerate(PROGRAMS)]
)
def test_ordinary_programs_do_not_notice(under_filter: UnderFilter, tmp_path: Path, tool: str, line: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "free").mkdir()
    (tmp_path / "held").mkdir()
    control = under_filter(b"", "bash", "-c", line, cwd=str(tmp_path / "free"))
    assert control.returncode == 0, control.stderr
    program = seccomp.program(arch_of(platform.machine()), Features())
    done = under_filter(program, "bash", "-c", line, cwd=str(tmp_path / "held"))
    assert (done.returncode, done.stdout) == (0, control.stdout), done.stderr


def test_tmux_talks_to_itself_when_stream_sockets_are_allowed(under_filter: UnderFilter, tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    line = "tmux -S s -f /dev/null new-session -d sleep 60 && tmux -S s list-sessions -F ok; tmux -S s kill-server"
    outputs = {}
    for mode in ("none", "stream"):
        program = seccomp.program(arch_of(platform.machine()), Features(mode))
        done = under_filter(program, "bash", "-c", line, cwd=str(tmp_path))
        outputs[mode] = done.stdout
    assert outputs == {"none": "", "stream": "ok\n"}


def test_the_loader_itself_is_filtered(under_filter: UnderFilter) -> None:
    """The controls above mean nothing if the filter was not in force: the kernel must say so."""
    program = seccomp.program(arch_of(platform.machine()), Features())
    line = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status"
    assert under_filter(program, "bash", "-c", line).stdout.split() == ["NoNewPrivs:", "1", "Seccomp:", "2"]
