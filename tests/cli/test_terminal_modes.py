"""What `stockade run` puts back on the terminal that it shares with its command."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Outside


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("stty -echo; echo now; exit 3", 3, id="ends"),
        pytest.param("stty raw; echo now; kill -9 $$", 137, id="is killed"),
    ],
)
def test_the_terminal_has_its_modes_back(outside: Outside, line: str, expected: int) -> None:
    before = outside.seat("true").modes()
    seat = outside.seat(*outside.words, "run", "-T", "-c", line)
    seat.sees("now")
    assert seat.status() == expected
    assert seat.modes() == before


def test_the_control_leaves_the_terminal_without_echo(outside: Outside) -> None:
    before = outside.seat("true").modes()
    seat = outside.seat("sh", "-c", "stty -echo; echo now")
    seat.sees("now")
    assert seat.status() == 0
    assert seat.modes() != before


def test_reading_waits_again(outside: Outside) -> None:
    line = "python3 -c 'import os; os.set_blocking(0, False)'; echo now"
    seat = outside.seat(*outside.words, "run", "-T", "-c", line)
    seat.sees("now")
    assert seat.status() == 0
    assert not fcntl.fcntl(seat.line, fcntl.F_GETFL) & os.O_NONBLOCK


def test_another_program_of_the_pipeline_keeps_its_modes(outside: Outside) -> None:
    """In `stockade run a | less` the pager has set the terminal when our command ends."""
    run = " ".join(outside.words) + " run -c 'until test -e set; do sleep 0.01; done'"
    seat = outside.seat(
        "sh", "-c", f"{run} | {{ stty -F /dev/tty raw; touch set; cat; echo now >/dev/tty; sleep 0.2; }}"
    )
    seat.sees("now")
    assert seat.is_raw()
    assert seat.status() == 0
