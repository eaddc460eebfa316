"""A second opinion on seccomp programs (an emulator of the interpreter, the kernel); a network apart; a supervisor."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from struct import iter_unpack, unpack_from
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from stockade.platforms.linux import identity, kernel

if TYPE_CHECKING:
    from stockade.platforms.linux.channel import Packet

Emulate: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]
InNetwork: TypeAlias = Callable[[Callable[[], object]], Any]
UnderFilter: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]

DATA_BYTES = 64  # sizeof(struct seccomp_data)
MAX_INSTRUCTIONS = 4096
LOAD, AND, JUMP, RETURN = 0x20, 0x54, 0x05, 0x06
TESTS: dict[int, Callable[[int, int], bool]] = {
    0x15: lambda word, operand: word == operand,
    0x25: lambda word, operand: word > operand,
    0x35: lambda word, operand: word >= operand,
    0x45: lambda word, operand: bool(word & operand),
}

# Every program under the filter starts here: a plain install by ctypes, then the program text or an exec.
INSTALL = """
import ctypes, os, sys
code = bytes.fromhex(sys.argv[1])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
if code:
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0):
        sys.exit("cannot install: " + os.strerror(ctypes.get_errno()))
sys.argv[1:2] = []
"""
EXECUTE = INSTALL + "os.execvp(sys.argv[1], sys.argv[1:])"


def check(program: bytes) -> list[tuple[int, int, int, int]]:
    """Refuse what the kernel's checker refuses when a filter is installed."""
    code: list[tuple[int, int, int, int]] = list(iter_unpack("<HBBI", program))
    assert 0 < len(code) <= MAX_INSTRUCTIONS
    assert code[-1][0] == RETURN
    for place, (operation, then, otherwise, operand) in enumerate(code):
        if operation == LOAD:
            assert operand % 4 == 0
            assert operand < DATA_BYTES
        elif operation == JUMP:
            assert place + 1 + operand < len(code)
        elif operation in TESTS:
            assert place + 1 + max(then, otherwise) < len(code)
        else:
            assert operation in {AND, RETURN}
    return code


def run(program: bytes, data: bytes) -> tuple[int, int]:
    """Return the word that the program gives for this call, and how many instructions it took."""
    code = check(program)
    assert len(data) == DATA_BYTES
    accumulator = place = steps = 0
    while True:
        operation, then, otherwise, operand = code[place]
        place, steps = place + 1, steps + 1
        if operation == RETURN:
            return operand, steps
        if operation == LOAD:
            (accumulator,) = unpack_from("<I", data, operand)
        elif operation == AND:
            accumulator &= operand
        elif operation == JUMP:
            place += operand
        else:
            place += then if TESTS[operation](accumulator, operand) else otherwise


def start(program: bytes, *argv: str, text: str = "", cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run argv, or Python program text, under the filter; an empty filter is the control run."""
    script = INSTALL + text if text else EXECUTE
    command = [sys.executable, "-I", "-c", script, program.hex(), *argv]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=100, check=False)


@pytest.fixture(scope="session")
def emulate() -> Emulate:
    return run


@pytest.fixture(scope="session")
def under_filter() -> UnderFilter:
    return start


def run_in_network(action: Callable[[], object]) -> Any:
    """Return what an action returns, plain data, in a process that is root of a network of its own; ``lo`` is up."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            uid, gid = os.geteuid(), os.getegid()
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET | kernel.CLONE_NEWNS)
            identity.write_maps(b"self", b"0 %d 1" % uid, b"0 %d 1" % gid)
            kernel.raise_loopback()
            os.write(writing, repr(action()).encode())
        except BaseException:  # noqa: BLE001 - the other process shows it
            os.write(writing, repr(Exception).encode() + traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    if text.startswith(repr(Exception)):
        pytest.fail(text)
    return ast.literal_eval(text)


@pytest.fixture(scope="session")
def in_network() -> InNetwork:
    return run_in_network


class Ends:
    """A supervisor with one listener that nobody listens at, and the other ends of its channels."""

    LISTENER, SERIAL = 99, 5
    KEY = (b"write", b"/x")
    ASKED = (1, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    def __init__(self) -> None:
        from stockade.platforms.linux.channel import Channel
        from stockade.platforms.linux.supervision import HostView, Supervision
        from stockade.platforms.linux.supervisor import Supervisor

        self.launcher, to_launcher = Channel.pair()
        self.owner, to_owner = Channel.pair()
        self.supervision = Supervision(HostView(), [], lambda _: False, 0)
        self.supervisor = Supervisor(to_launcher, to_owner, self.supervision)
        self.supervisor.listeners[self.LISTENER] = self.SERIAL
        self.channels = (self.launcher, to_launcher, self.owner, to_owner)

    def say(self, packet: Packet) -> bool:
        self.launcher.send(packet)
        return self.supervisor.obey()

    def refuse(self, times: int) -> None:
        for _ in range(times):
            self.supervisor.report(self.LISTENER, self.ASKED, self.KEY)

    def close(self) -> None:
        self.supervision.close()
        self.supervisor.poller.close()
        self.supervisor.own.close()
        for channel in self.channels:
            channel.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()
