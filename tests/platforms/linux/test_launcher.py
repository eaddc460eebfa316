from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.platforms.linux import launcher, message
from stockade.platforms.linux.channel import Channel
from stockade.platforms.linux.jail import Ended, Jail, Request, Started
from stockade.platforms.linux.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Callable

    Outcome = Callable[..., tuple[int, str, str]]

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def test_announced_signalled_and_ended(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    streams = (nothing, nothing, nothing)
    polite = jail.run(
        Request(
            ("sh", "-c", "trap 'exit 7' TERM; touch up; while :; do sleep 0.01; done"),
            ENVIRONMENT,
            str(tmp_path),
            announce=True,
        ),
        streams,
    )
    assert jail.receive() == Started(polite)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    jail.signal(polite, signal.SIGTERM)
    answer = jail.receive()
    assert isinstance(answer, Ended)
    assert (answer.number, os.waitstatus_to_exitcode(answer.status)) == (polite, 7)
    stubborn = jail.run(Request(("sh", "-c", "trap '' TERM INT HUP; sleep 60"), ENVIRONMENT, str(tmp_path)), streams)
    jail.end(stubborn)
    answer = jail.receive()
    assert isinstance(answer, Ended)
    assert (answer.number, os.waitstatus_to_exitcode(answer.status)) == (stubborn, -9)
    os.close(nothing)


def test_a_spare_that_was_killed_costs_no_command(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    (launcher,) = children(jail.pid)
    (spare,) = children(launcher)
    # Both happen before the launcher looks.
    os.kill(launcher, signal.SIGSTOP)
    kill(spare)
    number = jail.run(Request(("sh", "-c", "exit 7"), ENVIRONMENT, str(tmp_path)), (nothing,) * 3)
    os.kill(launcher, signal.SIGCONT)
    answer = jail.receive()
    os.close(nothing)
    assert isinstance(answer, Ended)
    assert (answer.number, os.waitstatus_to_exitcode(answer.status)) == (number, 7)


def test_a_signal_for_a_command_whose_first_process_was_killed_hurts_nobody(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    (launcher,) = children(jail.pid)
    number = jail.run(Request(("sleep", "60"), ENVIRONMENT, str(tmp_path), announce=True), (nothing,) * 3)
    assert jail.receive() == Started(number)
    first = next(pid for pid in children(launcher) if children(pid))
    os.kill(first, signal.SIGSTOP)
    jail.signal(number, signal.SIGUSR1)  # is never read
    other = jail.run(Request(("true",), ENVIRONMENT, str(tmp_path)), (nothing,) * 3)
    answer = jail.receive()
    assert isinstance(answer, Ended)
    assert answer.number == other
    os.kill(launcher, signal.SIGSTOP)
    kill(first)
    jail.signal(number, signal.SIGUSR1)
    os.kill(launcher, signal.SIGCONT)
    answer = jail.receive()
    os.close(nothing)
    assert isinstance(answer, Ended)
    assert (answer.number, os.waitstatus_to_exitcode(answer.status)) == (number, -9)


def test_fifty_commands_at_once(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    numbers = [
        jail.run(Request(("sh", "-c", f"sleep 0.05; exit {i}"), ENVIRONMENT, str(tmp_path)), (nothing,) * 3)
        for i in range(50)
    ]
    answers = [jail.receive() for _ in numbers]
    os.close(nothing)
    found = {a.number: os.waitstatus_to_exitcode(a.status) for a in answers if isinstance(a, Ended)}
    assert found == dict(zip(numbers, range(50), strict=True))


def test_commands_ended_while_they_are_prepared_spoil_nothing(jail: Jail, tmp_path: Path, outcome: Outcome) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    request = Request(("true",), ENVIRONMENT, str(tmp_path))
    for _ in range(40):
        numbers = [jail.run(request, (nothing,) * 3) for _ in range(2)]
        for number in numbers:
            jail.end(number)
        answers = [jail.receive() for _ in numbers]
        assert {a.number for a in answers if isinstance(a, Ended)} == set(numbers)
    os.close(nothing)
    for _ in range(10):
        assert outcome(jail, "sh", "-c", "test -e /proc/self && echo whole") == (0, "whole\n", "")


def test_an_owner_that_sends_much_before_it_listens_is_served(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    request = Request(("true",), ENVIRONMENT | {"LONG": "x" * 4000}, str(tmp_path))
    numbers = [jail.run(request, (nothing,) * 3) for _ in range(1200)]
    answers = [jail.receive() for _ in numbers]
    os.close(nothing)
    assert sorted(a.number for a in answers if isinstance(a, Ended) and a.status == 0) == numbers


def test_a_thousand_commands_leave_nothing(jail: Jail, outcome: Outcome) -> None:
    def held() -> tuple[int, list[int]]:
        deadline = time.monotonic() + 5
        while len(children(launcher_of(jail))) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(children(launcher_of(jail))), [
            sum(1 for _ in Path(f"/proc/{p}/fd").iterdir()) for p in (os.getpid(), jail.pid)
        ]

    for _ in range(20):
        outcome(jail, "true")
    before = held()
    for _ in range(1000):
        assert outcome(jail, "true") == (0, "", "")
    assert held() == before


def launcher_of(jail: Jail) -> int:
    (launcher,) = children(jail.pid)
    return launcher


def kill(pid: int) -> None:
    """Kill a process and wait until it is dead, though nobody buries it."""
    process = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([process], [], [], 20)[0]
    os.close(process)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def test_a_first_process_that_fails_in_silence_is_no_success() -> None:
    failed = launcher._unreported(0, (0, 0), 0)
    assert (failed.kind, message.Failed.read(failed).step) == (message.FAILED, b"first process")
    killed = launcher._unreported(9, (1, 2), 3)
    assert (killed.kind, message.Ended.read(killed).status) == (message.ENDED, 9)


def test_a_supervisor_that_was_heard_meanwhile_is_not_waited_for() -> None:
    """A flush takes what was said, and the event that told of it is older."""
    mine, theirs = Channel.pair()
    held = object.__new__(launcher.Launcher)
    held.supervisor = Supervised(mine)
    assert held.hear_others(mine.fileno(), select.POLLIN)
    theirs.close()
    assert not held.hear_others(mine.fileno(), select.POLLIN | select.POLLHUP)
    mine.close()
