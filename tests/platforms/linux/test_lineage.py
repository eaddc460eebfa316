"""A thread's command is found by the way up to its first process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.lineage import BESIDE, OWN, UNKNOWN, Lineage, numbers

#: Thread: parent, and its numbers in the namespace around, in the jail, and in that of its command.
PROCESSES = {
    90: (1, "90"),
    100: (90, "100 1"),
    101: (100, "101 2"),
    110: (100, "110 7 1"),
    111: (110, "111 8 2"),
    112: (111, "112 9 3"),
    113: (110, "113 10 4"),
    120: (100, "120 11 1"),
    121: (120, "121 12 2 1"),
    122: (121, "122 13 3 2"),
    130: (131, "130 14 2"),
    140: (0, "140 15 2"),
    150: (150, "150 16 9"),
    160: (90, "160 17 9"),
}


def status(thread: int) -> bytes:
    """What /proc says of it."""
    if thread not in PROCESSES:
        return b""
    parent, own = PROCESSES[thread]
    tabs = "\t".join(own.split())
    return (
        f"Name:\tNSpid: 1\nPid:\t{thread}\nPPid:\t{parent}\nNStgid:\t{tabs}\nNSpid:\t{tabs}\nVmPeak:\t1 kB\n".encode()
    )


CASES = {
    "the builder": (90, OWN),
    "the launcher": (100, BESIDE),
    "a supervisor": (101, BESIDE),
    "a first process": (110, OWN),
    "a command": (111, 7),
    "a child": (112, 7),
    "an orphan": (113, 7),
    "a first process within a command": (121, 11),
    "a process within that": (122, 11),
    "one whose parent has just gone": (130, UNKNOWN),
    "one whose parent is not seen": (140, UNKNOWN),
    "a circle": (150, UNKNOWN),
    "one that has no first process": (160, UNKNOWN),
    "one that is gone": (999, UNKNOWN),
}


@pytest.mark.parametrize("name", CASES)
def test_a_thread_belongs_to_a_first_process(name: str) -> None:
    thread, expected = CASES[name]
    assert Lineage(status, status(90), lambda: 0.0).of(thread) == expected


def test_what_was_found_is_remembered_for_a_moment() -> None:
    now = [10.0]
    asked: list[int] = []

    def read(thread: int) -> bytes:
        asked.append(thread)
        return status(thread)

    lineage = Lineage(read, status(90), lambda: now[0])
    assert (lineage.of(111), lineage.of(111), asked) == (7, 7, [111, 110])
    now[0] += 0.3
    assert (lineage.of(111), len(asked)) == (7, 4)


def test_without_numbers_nothing_is_known() -> None:
    assert Lineage(status, b"", lambda: 0.0).of(111) == UNKNOWN


@given(st.binary())
def test_no_status_crashes_it(data: bytes) -> None:
    parent, own = numbers(b"PPid:\t" + data + b"\nNSpid:\t" + data)
    assert parent >= 0
    assert all(number >= 0 for number in own)
