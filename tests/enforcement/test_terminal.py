"""A command on the user's terminal cannot type into it, take it over or reprogram it."""

from __future__ import annotations

import os
import platform
import pty
import select
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

SCRIPT = """
import errno, fcntl, struct, sys
number, argument = int(sys.argv[1], 16), bytes.fromhex(sys.argv[2])
try:
    fcntl.ioctl(0, number, argument)
    print("done")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
#: TIOCSTI types a character; TIOCLINUX pastes the selection; TIOCCONS takes the console's output; TIOCSETD
#: loads a line discipline. The last two are TIOCSTI with bits that the kernel ignores.
CALLS = {
    "typing": (0x5412, b"x"),
    "pasting": (0x541C, b"\3"),
    "the console": (0x541D, b""),
    "a line discipline": (0x5423, b"\0\0\0\0"),
}


def _tell(master: int) -> str:
    text = b""
    while select.select([master], [], [], 0.3)[0]:
        try:
            text += os.read(master, 4096)
        except OSError:
            break
    return text.decode().replace("\r", "")


@pytest.mark.parametrize("owned", [False, True], ids=["a terminal as stream", "its own terminal"])
@pytest.mark.parametrize("name", CALLS)
def test_a_terminal_takes_no_orders(ground: Ground, name: str, owned: bool) -> None:  # noqa: FBT001 - a case
    number, argument = CALLS[name]
    master, terminal = pty.openpty()
    words = [sys.executable, "-I", "-S", "-c", SCRIPT, f"{number:x}", argument.hex()]
    result = ground.sandbox().attach(words, (terminal, terminal, terminal), terminal=owned)
    assert (result.exit_code, _tell(master)) == (0, "EPERM\n")
    os.close(terminal)
    os.close(master)


def test_the_control_types_into_its_terminal() -> None:
    child, master = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", SCRIPT, "5412", b"x".hex()])  # noqa: S606 - the control
    told = _tell(master)
    os.waitpid(child, 0)
    os.close(master)
    assert told.endswith(("done\n", "EIO\n")), "kernels may be told to refuse it"


def test_a_call_with_ignored_bits_is_the_same_call(ground: Ground) -> None:
    master, terminal = pty.openpty()
    number = arch_of(platform.machine()).numbers()["ioctl"]
    script = (
        "import ctypes; l = ctypes.CDLL(None, use_errno=True);"
        f"l.syscall(ctypes.c_long({number}), ctypes.c_long(0), ctypes.c_ulong((1 << 32) | 0x5412), b'x');"
        "print(ctypes.get_errno())"
    )
    ground.sandbox().attach([sys.executable, "-I", "-S", "-c", script], (terminal, terminal, terminal))
    assert _tell(master) == "1\n"
    os.close(terminal)
    os.close(master)


def test_a_command_has_no_terminal_that_it_was_not_given(ground: Ground) -> None:
    done = ground.sandbox().run("exec 3<>/dev/tty && echo got it; ls /dev/pts; tty")
    assert done.output == "ptmx\nnot a tty\n"


def test_terminals_made_inside_are_the_sessions_own(ground: Ground) -> None:
    master, terminal = pty.openpty()
    script = "import os, pty; m, t = pty.openpty(); print(os.ttyname(t), os.path.exists(os.ttyname(t)))"
    assert ground.sandbox().run([sys.executable, "-I", "-c", script]).output.split()[1] == "True"
    number = os.ttyname(terminal)
    assert ground.sandbox().run(f"echo typed > {number}").exit_code != 0
    os.close(terminal)
    assert _tell(master) == ""
    os.close(master)
