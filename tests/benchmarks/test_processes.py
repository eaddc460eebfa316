from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from processes import Holding, descendants, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

if os.uname().sysname != "Linux":
    pytest.skip("/proc is Linux's", allow_module_level=True)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    """Run a shell with one child, and say so when both are up."""
    # The child says so itself, when it opens and closes no file any more.
    words = ["bash", "-c", "bash -c 'echo up; kill -STOP $$' & read; kill -KILL $!; wait"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdin
        assert parent.stdout.readline() == "up\n"
        yield parent
        parent.stdin.close()


def test_children_and_their_children_are_found(family: subprocess.Popen[str]) -> None:
    (child,) = descendants(family.pid)
    assert {family.pid, child} <= set(descendants(os.getpid()))
    assert descendants(child) == []


def test_what_processes_hold_is_added_up(family: subprocess.Popen[str]) -> None:
    (child,) = descendants(family.pid)
    both, one, other = holding([family.pid, child]), holding([family.pid]), holding([child])
    assert (both.processes, one.processes, other.processes) == (2, 1, 1)
    assert both.descriptors == one.descriptors + other.descriptors >= 6
    assert one.memory >= one.written > 100_000


def test_what_is_gone_holds_nothing(family: subprocess.Popen[str]) -> None:
    assert family.stdin
    family.stdin.close()
    family.wait()
    assert holding([family.pid]) == Holding(1)
    assert descendants(family.pid) == []
