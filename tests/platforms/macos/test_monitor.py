"""The monitor with a program in place of ``log``, which says recorded things in awkward pieces."""

from __future__ import annotations

import json
import select
import sys
import time
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.backend import Report
from stockade.platforms.macos.monitor import Monitor, words
from stockade.platforms.macos.tag import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SUFFIX = "0123abcd_SBX"
PATIENCE = 30.0
# Says each piece by itself, notes how it was called, and stays, or ends, as it was told.
FAKE = """#!{python}
import json, os, sys, time
with open({calls!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
for piece in {pieces!r}:
    os.write(1, piece)
    time.sleep(0.005)
if {stays!r}:
    time.sleep(300)
"""


def _said(ticket: int, operation: str, target: str) -> bytes:
    message = f"Sandbox: sh({ticket}) deny(1) {operation} {target}\n{encode(ticket, 'make', SUFFIX)}"
    return json.dumps({"eventMessage": message}).encode() + b"\n"


@pytest.fixture
def fake_log(tmp_path: Path) -> Callable[..., str]:
    def make(*pieces: bytes, stays: bool = True) -> str:
        program = tmp_path / "log"
        program.write_text(
            FAKE.format(python=sys.executable, calls=str(tmp_path / "calls"), pieces=list(pieces), stays=stays)
        )
        program.chmod(0o755)
        return str(program)

    return make


def _reports(monitor: Monitor, count: int) -> list[Report]:
    found: list[Report] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < deadline, found
        if monitor.fileno() >= 0:
            select.select([monitor.fileno()], [], [], 0.05)
        else:
            time.sleep(0.01)
        found += monitor.receive()
    return found


def test_what_is_said_in_pieces_is_heard(fake_log: Callable[..., str], tmp_path: Path) -> None:
    data = b'Filtering the log data using "x"\n' + _said(1, "file-read-data", "/a") + _said(2, "mach-lookup", "x")
    data += _said(2, "file-write-create", "/b\n\u00e9")
    monitor = Monitor(SUFFIX, fake_log(*(data[at : at + 37] for at in range(0, len(data), 37))))
    assert _reports(monitor, 2) == [Report(1, "read", "/a"), Report(2, "create", "/b\n\u00e9")]
    monitor.close()
    monitor.close()
    assert monitor.receive() == ()
    assert monitor.fileno() == -1
    called = json.loads((tmp_path / "calls").read_text())
    assert called == list(words(SUFFIX)[1:])
    assert called[-1] == f'eventMessage ENDSWITH "{SUFFIX}"'


def test_it_is_started_again_when_it_dies(fake_log: Callable[..., str], tmp_path: Path) -> None:
    times = iter(float(number) for number in range(0, 100000, 2))
    monitor = Monitor(SUFFIX, fake_log(_said(1, "file-read-data", "/a"), stays=False), lambda: next(times))
    assert len(_reports(monitor, 3)) == 3
    monitor.close()
    assert len((tmp_path / "calls").read_text().splitlines()) >= 3


def test_it_waits_longer_each_time() -> None:
    now = 0.0
    monitor = Monitor(SUFFIX, "/no/such/log", lambda: now)
    delays = []
    for _ in range(10):
        delays.append(monitor._next - now)
        now = monitor._next
        monitor.receive()
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    before = monitor._next
    now = before - 0.1
    monitor.receive()
    assert monitor._next == before, "it is not time yet"
    monitor.close()


def test_after_a_long_life_it_is_started_soon(fake_log: Callable[..., str]) -> None:
    now = 0.0
    monitor = Monitor(SUFFIX, fake_log(stays=False), lambda: now, start=False)
    monitor._delay = 60.0
    monitor.receive()
    select.select([monitor.fileno()], [], [], PATIENCE)
    now = 100.0
    monitor.receive()
    assert monitor._next == 100.5
    monitor.close()
