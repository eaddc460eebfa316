from __future__ import annotations

import os
import resource

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
    for room in range(5):
        used = {int(name) for name in os.listdir("/proc/self/fd")} - {max(map(int, before))}
        free = [number for number in range(len(used) + 10) if number not in used]
        # Five are needed; below this limit as many as ``room`` are free.
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[room], hard))
        try:
            with pytest.raises(UnavailableError, match="Too many open files"):
                Streams(None)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir("/proc/self/fd") == before
