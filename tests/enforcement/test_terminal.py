"""A command on the user's terminal cannot type into it, take it over or reprogram it."""

from __future__ import annotations

import fcntl
import os
import platform
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

    from stockade.sandbox.blocking_process import BlockingProcess

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
#: loads a line discipline; TIOCEXCL keeps others from opening it; TIOCSLCKTRMIOS locks its modes; TCXONC stops output.
CALLS = {
    "typing": (0x5412, b"x"),
    "pasting": (0x541C, b"\3"),
    "the console": (0x541D, b""),
    "a line discipline": (0x5423, b"\0\0\0\0"),
    "exclusive use": (0x540C, b""),
    "locked modes": (0x5457, bytes(64)),
    "hanging up": (0x5437, b""),
    "break": (0x5427, b""),
    "the keyboard of a console": (0x4B45, b"\0\0\0\0"),
    "switching consoles": (0x5602, bytes(8)),
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


@pytest.mark.parametrize("program", ["true", "program-that-is-not-there"])
def test_the_terminal_is_free_for_the_next_command_once_one_has_ended(ground: Ground, program: str) -> None:
    """The first process leads the session, and may live on for a moment after it has told of the end."""
    master, terminal = pty.openpty()
    for _ in range(30):
        with suppress(StockadeError):
            ground.sandbox().attach([program], (terminal, terminal, terminal), terminal=True)
        with pytest.raises(OSError, match="Inappropriate ioctl"):
            fcntl.ioctl(master, 0x5429, bytes(4))  # TIOCGSID: the session whose terminal this is
    os.close(terminal)
    os.close(master)


LOCK = "import fcntl; fcntl.ioctl(0, 0x540C)"
STOP = "import termios; termios.tcflow(0, termios.TCOOFF)"


def _bare(script: str, terminal: int) -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", script], stdin=terminal, check=True)


def _inside(ground: Ground, script: str, terminal: int) -> bool:
    words = [sys.executable, "-I", "-S", "-c", script]
    return ground.sandbox().attach(words, (terminal, terminal, terminal)).exit_code == 0


def test_no_lock_is_on_the_terminal_after_the_command(ground: Ground) -> None:
    """The kernel says whether there is a lock (TIOCGEXCL); root would open a locked terminal all the same."""
    master, terminal = pty.openpty()
    assert not _inside(ground, LOCK, terminal)
    assert fcntl.ioctl(terminal, 0x8004_5440, bytes(4)) == bytes(4)
    os.close(os.open(os.ttyname(terminal), os.O_RDWR | os.O_NOCTTY))
    _bare(LOCK, terminal)
    assert fcntl.ioctl(terminal, 0x8004_5440, bytes(4)) != bytes(4)
    os.close(terminal)
    os.close(master)


def test_output_goes_on_after_the_command(ground: Ground) -> None:
    master, terminal = pty.openpty()
    assert not _inside(ground, STOP, terminal)
    _tell(master)
    os.set_blocking(terminal, False)
    assert os.write(terminal, b"x")
    _bare(STOP, terminal)
    with pytest.raises(BlockingIOError):
        os.write(terminal, b"x")
    os.close(terminal)
    os.close(master)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("script -qec 'stty size; tty' /dev/null", id="script"),
        pytest.param("stty -echo; stty sane; stty rows 30; stty size", id="stty"),
        pytest.param("python3 -c 'import pty; pty.spawn([\"tty\"])'", id="a terminal of Python's"),
        pytest.param("python3 -c 'import os; p, f = os.forkpty(); print(p) if p else os._exit(0)'", id="forkpty"),
        pytest.param("printf 'x\\n' | TERM=xterm less -E", id="less"),
        pytest.param("bash -ic 'sleep 0 & wait; echo on'", id="job control"),
    ],
)
def test_programs_on_a_terminal_work(ground: Ground, line: str) -> None:
    with ground.sandbox().spawn(line, pty=True) as process:
        assert process.wait(60).exit_code == 0


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


LEADER = """
import os
print(os.getsid(0), os.getpgrp() == os.getpid(), os.tcgetpgrp(0) == os.getpid(), os.ttyname(0))
os.close(os.open("/dev/tty", os.O_RDWR))
"""


def test_on_its_own_terminal_a_command_is_the_job_in_front(ground: Ground) -> None:
    """Its first process leads the session, so that the kernel lets it be stopped, and can tell."""
    with ground.sandbox().spawn([sys.executable, "-I", "-S", "-c", LEADER], pty=True) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"1 True True /dev/pts/0\r\n"
        assert process.wait(60).exit_code == 0


@pytest.mark.parametrize("how", ["a key", "itself", "a signal of ours"])
def test_a_stopped_command_is_told_of_and_goes_on(ground: Ground, how: str) -> None:
    stop = "kill -STOP $$" if how == "itself" else "read word"
    with ground.sandbox().spawn(f"echo up; {stop}; echo went on", pty=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\r\n"
        if how == "a key":
            process.stdin.write(b"\x1a")
        elif how == "a signal of ours":
            process.signal(signal.SIGTSTP)
        _until(process, "stopped")
        process.signal(signal.SIGCONT)
        if how != "itself":
            process.stdin.write(b"word\r")
        assert b"went on\r\n" in process.stdout.read()
        assert process.wait(60).exit_code == 0


def _until(process: BlockingProcess, news: str) -> None:
    deadline = time.monotonic() + 60
    while news not in process.running.news:
        assert time.monotonic() < deadline, process.running.news
        assert process.poll() is None
        time.sleep(0.01)


def test_the_last_words_outlive_the_command(ground: Ground) -> None:
    """They lie in the terminal until somebody reads them, though its session has ended."""
    sandbox = ground.sandbox()
    for size in (1, 4000, 9000):
        with sandbox.spawn(f"printf '%0{size}d' 0; printf end", pty=True) as process:
            assert process.stdout is not None
            if size < 4000:
                assert process.wait(60).exit_code == 0
            assert process.stdout.read() == b"0" * size + b"end"


def test_a_terminal_that_is_hung_up_ends_what_runs_on_it(ground: Ground) -> None:
    line = "trap 'echo heard >heard; exit 3' HUP; echo up; while :; do sleep 0.01; done"
    with ground.sandbox().spawn(line, pty=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\r\n"
        process.close()
        assert process.wait(60).exit_code == 3
    assert (ground.project / "heard").exists()
