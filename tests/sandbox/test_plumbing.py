from __future__ import annotations

import fcntl
import os
import struct
import termios

import pytest

from stockade.errors import StockadeError
from stockade.sandbox.plumbing import PIPE, STDOUT, Plumbing, resize


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_pipes_lead_from_one_end_to_the_other() -> None:
    before = descriptors()
    laid = Plumbing.lay(PIPE, PIPE, PIPE)
    os.write(laid.stdin, b"in")
    os.write(laid.inside[1], b"out")
    os.write(laid.inside[2], b"err")
    assert [os.read(end, 9) for end in (laid.inside[0], laid.stdout, laid.stderr)] == [b"in", b"out", b"err"]
    laid.give_up_inside()
    assert os.read(laid.stdout, 9) == b""
    laid.close()
    laid.close()
    assert descriptors() == before


def test_nothing_is_a_null_device_that_can_only_be_read_or_written() -> None:
    laid = Plumbing.lay(None, None, STDOUT)
    assert os.read(laid.inside[0], 1) == b""
    assert os.write(laid.inside[1], b"x") == 1
    assert laid.inside[2] == laid.inside[1]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(laid.inside[0], b"x")
    assert (laid.stdin, laid.stdout, laid.stderr) == (-1, -1, -1)
    laid.close()


def test_a_descriptor_stays_the_caller_s() -> None:
    reader, writer = os.pipe()
    laid = Plumbing.lay(reader, writer, writer)
    assert laid.inside == [reader, writer, writer]
    laid.close()
    for end in (reader, writer):
        os.close(end)


@pytest.mark.parametrize("wishes", [(STDOUT, None, None), (None, STDOUT, None), (None, None, -7)])
def test_what_makes_no_sense_leaves_nothing_open(wishes: tuple[int | None, ...]) -> None:
    before = descriptors()
    with pytest.raises(StockadeError, match="cannot be -"):
        Plumbing.lay(*wishes)
    assert descriptors() == before


def test_a_terminal_is_one_stream_in_both_directions() -> None:
    before = descriptors()
    laid = Plumbing.terminal(*os.openpty())
    assert (laid.is_terminal, laid.stderr, len(set(laid.inside))) == (True, -1, 1)
    resize(laid.stdout, 12, 345)
    assert struct.unpack("4H", fcntl.ioctl(laid.inside[0], termios.TIOCGWINSZ, bytes(8))) == (12, 345, 0, 0)
    os.write(laid.stdin, b"typed\n")
    assert os.read(laid.inside[0], 99) == b"typed\n"
    laid.close()
    assert descriptors() == before
