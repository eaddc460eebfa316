"""A filter that notifies, a child under it, and this process as its listener."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from errno import EPERM, errorcode
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import kernel, notification
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.memory_reader import read_text
from stockade.platforms.linux.seccomp import Features, program
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from collections.abc import Callable

ARCH = arch_of(os.uname().machine)


def _asked(answer: Callable[[int, notification.Notification], object]) -> tuple[notification.Notification, bytes, int]:
    """Have a child ask for ``truncate``; return what was heard, the path, and the error number that it got."""
    mine, theirs = Channel.pair()
    child = os.fork()
    if child == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        features = Features(unix_sockets="all", notify=frozenset(["truncate"]))
        listener = kernel.install_filter(program(ARCH, features), listen=True)
        theirs.send(Packet(b"L", 0, b"", (listener,)))
        os.close(listener)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        libc = ctypes.CDLL(None, use_errno=True)
        os._exit(ctypes.get_errno() if libc.truncate(b"/missing/file", ctypes.c_long(7)) else 0)
    packet = mine.receive()
    assert packet is not None
    (listener,) = packet.descriptors
    notification.hurry(listener)
    heard = notification.receive(listener)
    path = read_text(heard[notification.THREAD], heard[notification.ARGUMENTS])
    assert notification.is_valid(listener, heard[notification.ID])
    answer(listener, heard)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not notification.is_valid(listener, heard[notification.ID])
    assert not notification.let_go(listener, heard[notification.ID])
    packet.close()
    mine.close()
    theirs.close()
    return heard, path, code


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        pytest.param(lambda listener, heard: notification.let_go(listener, heard[0]), "ENOENT", id="the kernel's"),
        pytest.param(lambda listener, heard: notification.answer(listener, heard[0], EPERM), "EPERM", id="an error"),
        pytest.param(lambda listener, heard: notification.answer(listener, heard[0], 0), "", id="success"),
        pytest.param(lambda listener, heard: notification.give(listener, heard[0], 0), "", id="a result"),
    ],
)
def test_a_caller_gets_the_answer(answer: Callable[[int, notification.Notification], object], end: str) -> None:
    heard, path, code = _asked(answer)
    assert heard[notification.NUMBER] == ARCH.numbers()["truncate"]
    assert (path, heard[notification.ARGUMENTS + 1]) == (b"/missing/file", 7)
    assert errorcode.get(code, "") == end


def test_a_caller_whose_call_was_heard_is_not_interrupted() -> None:
    def answer(listener: int, heard: notification.Notification) -> None:
        os.kill(heard[notification.THREAD], signal.SIGUSR1)
        assert not select.select([], [], [], 0.05)[0]
        assert notification.answer(listener, heard[notification.ID], EPERM)

    assert errorcode[_asked(answer)[2]] == "EPERM"


@pytest.mark.parametrize(
    ("argument", "value"),
    [(0, 0), (5, 5), (0xFFFF_FF9C, -100), (0xFFFF_FFFF_FFFF_FF9C, -100), (0xDEAD_BEEF_0000_0003, 3)],
)
def test_an_int_is_the_lower_half(argument: int, value: int) -> None:
    assert notification.as_int(argument) == value
