from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from stockade.cli.running import Forwarding, Interrupted

if TYPE_CHECKING:
    import subprocess

    from tests.cli.conftest import Outside

WAITING = "touch up; while :; do sleep 0.01; done"


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGHUP, id="HUP"),
        pytest.param(signal.SIGINT, id="INT"),
        pytest.param(signal.SIGQUIT, id="QUIT"),
        pytest.param(signal.SIGTERM, id="TERM"),
        pytest.param(signal.SIGUSR1, id="USR1"),
    ],
)
@pytest.mark.parametrize("flags", [pytest.param((), id="streams"), pytest.param(("-t",), id="terminal")])
def test_a_signal_ends_the_command_and_is_our_status(
    outside: Outside, number: signal.Signals, flags: tuple[str, ...]
) -> None:
    process = outside.start("run", *flags, "--", "sh", "-c", WAITING)
    outside.appears("up")
    process.send_signal(number)
    assert ended(process) == (128 + number, b"", b"")


def test_the_command_may_make_of_a_signal_what_it_likes(outside: Outside) -> None:
    process = outside.start("run", "-c", f"trap 'echo bye; exit 9' TERM; trap '' HUP; {WAITING}")
    outside.appears("up")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[:2] == (9, b"bye\n")


def test_the_tree_dies_with_us(outside: Outside) -> None:
    process = outside.start("run", "-c", f"echo $$ >pid; setsid sleep 3600 & {WAITING}")
    outside.appears("up")
    started = {pid for pid in _processes() if b"sleep\x003600" in _command(pid)}
    process.kill()
    ended(process)
    for pid in started:
        _until_gone(pid)


def test_before_the_command_runs_a_signal_ends_us() -> None:
    forwarding = Forwarding()
    try:
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGCONT)
        assert caught.value.number == signal.SIGTERM
        assert forwarding.unrunnable() is None
    finally:
        forwarding.end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_python_dropped_ends_us_when_the_command_starts() -> None:
    forwarding = Forwarding()
    try:
        with suppress(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught:
            forwarding.to(Mock())(Mock())
        assert caught.value.number == signal.SIGTERM
    finally:
        forwarding.end()


def test_keys_of_a_terminal_reach_the_command(outside: Outside) -> None:
    """Ctrl-C is the command's, Ctrl-Z stops it and us, and fg lets both go on."""
    seat = outside.shell()
    seat.type("stockade run -c 'trap \"echo caught\" INT; echo $$; while read word; do echo got $word; done'\n")
    seat.sees(r"\n\d+\r\n")
    seat.type("one\n")
    seat.sees("got one")
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    seat.type("fg\n")
    seat.sees("stockade run")
    seat.type("two\n")
    seat.sees("got two")
    seat.type("\x03")
    seat.sees("caught")
    seat.type("\x04")
    seat.sees(r"ready\$ ")
    seat.type("echo status $?\n")
    seat.sees(r"status 0\r\n")


def test_ctrl_z_stops_the_command_itself(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -c 'trap \"exit 3\" INT; while :; do echo >>ticks; sleep 0.01; done'\n")
    ticks = outside.appears("ticks")
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    before = _settled(ticks)
    seat.type("fg\n")
    seat.until(lambda: ticks.stat().st_size > before)
    seat.type("\x03")
    seat.sees(r"ready\$ ")
    seat.type("echo status $?\n")
    seat.sees(r"status 3\r\n")


def _settled(ticks: Path) -> int:
    """Return the size once it has stayed the same for a while in which a running command would have written."""
    import time

    size = -1
    for _ in range(100):
        if ticks.stat().st_size == size:
            return size
        size = ticks.stat().st_size
        time.sleep(0.2)
    pytest.fail("the command was not stopped")


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _until_gone(pid: int) -> None:
    import time

    for _ in range(1000):
        if not _command(pid):
            return
        time.sleep(0.01)
    pytest.fail(f"{pid} still runs")
