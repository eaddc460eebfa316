from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Outside, Seat


def relayed(outside: Outside, line: str, size: tuple[int, int] = (24, 80)) -> Seat:
    return outside.seat(*outside.words, "run", "-t", "-c", line, size=size)


def test_the_window_has_the_user_s_size_and_follows_it(outside: Outside) -> None:
    line = "trap 'stty size' WINCH; stty size; while ! test -e stop; do sleep 0.01; done; exit 4"
    seat = relayed(outside, line, size=(31, 97))
    seat.sees(r"31 97\r\n")
    seat.resize(40, 120)
    seat.sees(r"40 120\r\n")
    (outside.project / "stop").touch()
    assert seat.status() == 4


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("stty -echo; echo now; exit 3", 3, id="ends"),
        pytest.param("stty raw; echo now; kill -9 $$", 137, id="is killed"),
    ],
)
def test_the_user_s_terminal_is_as_it_was(outside: Outside, line: str, expected: int) -> None:
    before = outside.seat("true").modes()
    seat = relayed(outside, line)
    seat.sees("now")
    assert seat.status() == expected
    assert seat.modes() == before


def test_a_command_killed_from_outside_gives_the_terminal_back(outside: Outside) -> None:
    seat = relayed(outside, "echo pid $$; stty raw -echo; touch up; exec sleep 3601")
    before = outside.seat("true").modes()
    outside.appears("up")
    assert seat.is_raw()
    (pid,) = (int(p) for p in os.listdir("/proc") if p.isdigit() and _command(p) == b"sleep\x003601\x00")
    os.kill(pid, signal.SIGKILL)
    assert seat.status() == 137
    assert seat.modes() == before


def _command(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_more_than_the_command_takes_now_blocks_nobody(outside: Outside) -> None:
    """Much is pasted while the command only writes, and its words still reach the screen; then it reads."""
    size = 300_000
    seat = relayed(
        outside, f"stty raw -echo; echo go; while ! test -e read; do seq 200; done; echo reads; head -c {size} | wc -c"
    )
    seat.sees("go")
    left = seat.paste(b"x" * size)
    assert left
    (outside.project / "read").touch()
    assert seat.paste(left) == b""
    seat.sees(rf"reads.*\b{size}\b")
    assert seat.status() == 0


def test_a_closed_window_ends_the_command(outside: Outside) -> None:
    seat = relayed(outside, "trap 'touch hung-up; exit' HUP; touch up; while :; do sleep 0.01; done")
    outside.appears("up")
    seat.hang_up()
    outside.appears("hung-up")
    assert seat.process.wait(30) == 129 or seat.process.returncode == 0


def test_stopped_from_outside_the_terminal_is_the_user_s_again(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -t -c 'echo pid; read word; echo got $word'\n")
    seat.sees(r"\npid\r\n")
    assert seat.is_raw()
    (us,) = _children(seat.process.pid)
    os.kill(us, signal.SIGTSTP)
    seat.sees(r"Stopped.*ready\$ ")
    assert not seat.is_raw()
    seat.type("fg\n")
    seat.until(seat.is_raw)
    seat.type("again\r")
    seat.sees("got again")
    seat.sees(r"ready\$ ")


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in re.findall(r"\d+", file.read())]


def test_a_terminal_that_nobody_has_open_for_a_while_is_no_end(outside: Outside) -> None:
    seat = relayed(outside, "exec 3>&1; (exec </dev/null >/dev/null 2>&1 3>&-; sleep 0.3; echo back >/dev/tty)")
    seat.sees("back")
    assert seat.status() == 0
