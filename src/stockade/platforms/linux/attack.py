"""Attempts to get past the walls, as values: a few lines of Python each, and what they are aimed at.

Each is written so that it works outside: only then does its failure inside prove anything. Rules: a script
gets an ``arena`` (see ``proof``) as a mapping of names to paths, ports and process ids, and works on that alone;
it raises, or prints one of the markers below if the proof cannot see the damage from outside.
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import Final
from stockade.value import Value


class Damage(Enum):
    """Where success shows."""

    WRITTEN = "a file outside has changed"
    HOOKED = "the protected git hook is there"
    DEAD = "the process outside has ended"
    CONNECTED = "a service outside was reached"
    SAID = "the script ran to its end"
    READ = "the script printed the secret"


class Attack(Value):
    """One attempt. ``harmless`` says that it can be made outside too, as the control."""

    name: str
    damage: Damage
    script: str
    harmless: bool = True


#: Put before every script.
PRELUDE: Final = """\
import ctypes, json, os, socket, sys
arena = json.loads(sys.argv[1])
outside, project = arena["outside"], arena["project"]
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def write(path):
    with open(path, "w") as file:
        file.write("changed")
"""

ATTACKS: Final = (
    Attack("write outside the project", Damage.WRITTEN, "write(f'{outside}/victim')"),
    Attack("write through a symbolic link", Damage.WRITTEN, "write(f'{project}/link/victim')"),
    Attack("write through ..", Damage.WRITTEN, "os.chdir(project); write('../outside/victim')"),
    Attack("write through /proc/self/root", Damage.WRITTEN, "write(f'/proc/self/root{outside}/victim')"),
    Attack(
        "write through a hard link",
        Damage.WRITTEN,
        "os.link(f'{outside}/victim', f'{project}/alias'); write(f'{project}/alias')",
    ),
    Attack(
        "plant a git hook by renaming its parent",
        Damage.HOOKED,
        """\
os.rename(f'{project}/.git', f'{project}/aside')
os.makedirs(f'{project}/.git/hooks')
write(f'{project}/.git/hooks/pre-commit')""",
    ),
    Attack("read a denied file", Damage.READ, "print(open(f'{project}/denied/secret').read())"),
    Attack(
        "read a denied file through /proc",
        Damage.READ,
        "print(open(f'/proc/self/root{project}/denied/secret').read())",
    ),
    Attack(
        "read the environment of a process outside",
        Damage.READ,
        "print(open(f'/proc/{arena[\"process\"]}/environ').read())",
    ),
    Attack("signal a process outside", Damage.DEAD, "os.kill(arena['process'], 15)"),
    Attack(
        "trace a process outside",
        Damage.SAID,
        "call(libc.ptrace(16, ctypes.c_long(arena['process']), ctypes.c_long(0), ctypes.c_long(0)))",
    ),
    Attack(
        "reach a TCP service of this machine",
        Damage.CONNECTED,
        "socket.create_connection(('127.0.0.1', arena['tcp']), 5)",
    ),
    Attack(
        "reach a UDP service of this machine",
        Damage.CONNECTED,
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', arena['udp']))",
    ),
    Attack(
        "reach a service by its unix socket",
        Damage.CONNECTED,
        "socket.socket(socket.AF_UNIX).connect(f'{outside}/socket')",
    ),
    Attack(
        "reach a service by an abstract socket",
        Damage.CONNECTED,
        "socket.socket(socket.AF_UNIX).connect('\\0' + arena['abstract'])",
    ),
    Attack(
        "find a device that leads to the network",
        Damage.SAID,
        # SIOCGIFFLAGS, IFF_UP: some kernels put devices that lead nowhere into every namespace.
        "import fcntl; socket_ = socket.socket()\n"
        "up = lambda name: fcntl.ioctl(socket_, 0x8913, name.encode().ljust(40, b'\\0'))[16] & 1\n"
        "assert [name for _, name in socket.if_nameindex() if name != 'lo' and up(name)]",
    ),
    Attack("make a user namespace", Damage.SAID, "call(libc.unshare(0x10000000))"),
    Attack(
        "mount over the walls",
        Damage.SAID,
        "call(libc.mount(b'none', project.encode(), b'tmpfs', ctypes.c_ulong(0), None))",
        harmless=False,
    ),
    Attack(
        "open a setting of the kernel for writing",
        Damage.SAID,
        "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
    ),
    Attack(
        "type into a terminal",
        Damage.SAID,
        """\
import fcntl, pty
child, terminal = pty.fork()
if child == 0:
    try:
        fcntl.ioctl(0, 0x5412, b'x')
        os._exit(0)
    except OSError as error:
        os._exit(error.errno)
error = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if error:
    raise OSError(error, os.strerror(error))""",
    ),
    Attack(
        "make an io_uring",
        Damage.SAID,
        "call(libc.syscall(ctypes.c_long(425), ctypes.c_long(1), ctypes.create_string_buffer(120)))",
    ),
    Attack(
        "gain rights by a setuid program",
        Damage.SAID,
        """\
if 'NoNewPrivs:\\t1' in open('/proc/self/status').read():
    raise PermissionError(1, 'such programs gain nothing here')""",
    ),
)
