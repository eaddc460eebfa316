from __future__ import annotations

import os
import signal

import pytest

from stockade.sandbox.group import MOUNT, Group
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


def test_nothing_is_made_where_groups_are_mounted_but_are_none() -> None:
    before = os.listdir(MOUNT) if os.path.isdir(MOUNT) else []
    group = Group.make(Limits(memory=64 << 20, processes=10))
    if group is not None:
        group.close()
    assert (os.listdir(MOUNT) if os.path.isdir(MOUNT) else []) == before


def test_a_group_whose_owner_was_killed_goes_with_the_next_and_one_in_use_stays() -> None:
    limits = Limits(processes=10)
    mine = Group.make(limits)
    if mine is None:
        pytest.skip("control groups are not writable here")
    reader, writer = os.pipe()
    owner = os.fork()
    if owner == 0:
        theirs = Group.make(limits)
        os.write(writer, os.readlink(f"/proc/self/fd/{theirs.descriptors[0]}").encode() if theirs else b"none")
        signal.pause()
    left = os.path.dirname(os.read(reader, 4096).decode())
    assert os.path.isdir(left)
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    Group.make(limits).close()  # type: ignore[union-attr] # one could be made a moment ago
    kept = os.path.dirname(os.readlink(f"/proc/self/fd/{mine.descriptors[0]}"))
    assert (os.path.isdir(left), os.path.isdir(kept)) == (False, True)
    mine.close()
    os.close(reader)
    os.close(writer)
