from __future__ import annotations

import os

import pytest

from stockade.sandbox.group import Group
from stockade.sandbox.limits import Limits


def test_nothing_to_count_needs_no_group() -> None:
    assert Group.make(Limits(cpu_seconds=1, output_bytes=5)) is None


def test_a_group_is_made_where_it_can_be_and_removed() -> None:
    group = Group.make(Limits(memory=64 << 20, processes=10))
    if group is None:
        pytest.skip("control groups are not writable here")
    paths = [os.path.dirname(os.readlink(f"/proc/self/fd/{one}")) for one in group.descriptors]
    assert paths
    assert all(os.path.isdir(path) for path in paths)
    group.close()
    group.close()
    assert group.verdict is None
    assert not any(os.path.exists(path) for path in paths)
