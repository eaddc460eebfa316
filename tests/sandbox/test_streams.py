from __future__ import annotations

import os
import resource
from contextlib import suppress

import pytest

from stockade.errors import UnavailableError
from stockade.sandbox.streams import Streams


def test_all_three_open_and_close_together() -> None:
    before = os.listdir("/proc/self/fd")
    heard: list[bytes] = []
    streams = Streams(b"in", heard.append)
    source, out, err = streams.numbers
    assert os.read(source, 10) == b"in"
    os.write(out, b"out")
    os.write(err, b"err")
    streams.hand_over()
    assert streams.finish() == (b"out", b"err")
    assert heard == [b"out", b"err"]
    assert streams.finish() == (b"out", b"err")
    assert os.listdir("/proc/self/fd") == before


def test_where_not_all_can_be_opened_none_stays() -> None:
    before = os.listdir("/proc/self/fd")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 20, hard))
    filling: list[int] = []
    try:
        with suppress(OSError):
            while True:
                filling.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(5):  # as many are needed; each time one more is free
            with pytest.raises(UnavailableError, match="Too many open files"):
                Streams(None)
            os.close(filling.pop())
        Streams(None).finish()
    finally:
        for descriptor in filling:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir("/proc/self/fd") == before
