from __future__ import annotations

import os
import resource
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.file_limit import for_commands, raise_own

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        pytest.param(1024, 1 << 20, (1024, 1 << 19), id="usual"),
        pytest.param(1024, 4096, (1024, 2048), id="older systems"),
        pytest.param(20000, 20000, (18976, 18976), id="no hard limit above the soft one"),
        pytest.param(1 << 20, 1 << 20, ((1 << 20) - 1024, (1 << 20) - 1024), id="containers"),
        pytest.param(1024, 1024, (1024, 1024), id="few"),
        pytest.param(256, 4095, (256, 4095), id="nearly enough"),
        pytest.param(1024, resource.RLIM_INFINITY, (1024, 1 << 19), id="no limit"),
    ],
)
def test_limits_of_commands(soft: int, hard: int, expected: tuple[int, int]) -> None:
    assert for_commands(soft, hard) == expected


@given(st.integers(1, 1 << 21), st.integers(0, 1 << 21))
def test_commands_have_less_than_helpers_where_there_is_room(soft: int, more: int) -> None:
    found = for_commands(soft, soft + more)
    assert 0 < found[0] <= soft
    assert found[0] <= found[1] <= soft + more
    if soft + more >= 4096:
        assert found[1] <= soft + more - 1024


def _raise(end: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
    end.send((raise_own(), resource.getrlimit(resource.RLIMIT_NOFILE)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of its own")
def test_helpers_get_all_that_is_allowed() -> None:
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_raise, args=(theirs,))
    process.start()
    assert ours.recv() == ((256, 2048), (4096, 4096))
    process.join()
