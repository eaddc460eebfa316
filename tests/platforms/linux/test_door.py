from __future__ import annotations

import os
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.door import Door
from stockade.platforms.linux.jail import Jail, Request
from stockade.platforms.linux.visitor import SOCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    # A path that is much longer than an address of a socket may be.
    place = tmp_path / ("long" * 40)
    place.mkdir()
    made = Door(f"{place}/stockade")
    yield made
    made.close()


def request(line: str, directory: Path, **environment: str) -> Request:
    return Request(("/bin/sh", "-c", line), {"PATH": "/usr/bin:/bin", **environment}, str(directory))


def run(words: tuple[str, ...]) -> tuple[int, bytes, bytes]:
    ran = subprocess.run(words, capture_output=True, timeout=60, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_the_socket_is_the_user_s_alone_and_goes_with_the_door(door: Door, jail: Jail, tmp_path: Path) -> None:
    directory = door.order(request("true", tmp_path), jail)[-2]
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    socket = os.stat(f"{directory}/{SOCKET}").st_mode
    assert (stat.S_ISSOCK(socket), stat.S_IMODE(socket)) == (True, 0o600)
    door.close()
    assert not os.path.exists(directory)
    door.close()


def test_orders_are_kept_once(door: Door, jail: Jail, tmp_path: Path) -> None:
    first = door.order(request("exit 1", tmp_path), jail)
    assert door.order(request("exit 1", tmp_path), jail) == first
    others = [door.order(request("exit 2", tmp_path), jail), door.order(request("exit 1", tmp_path, A="b"), jail)]
    assert len({first, *others}) == 3
    assert (len(door._orders), len(door._environments)) == (3, 2)


def test_the_door_leads_to_one_jail_after_the_other(
    door: Door, jail: Jail, tmp_path: Path, open_jail: Callable[[], Jail]
) -> None:
    words = door.order(request("echo here; touch made", tmp_path), jail)
    door.lead_to(jail)
    assert run(words) == (0, b"here\n", b"")
    assert (tmp_path / "made").exists()
    other = open_jail()
    jail.receive_visitors(None)
    door.lead_to(other)
    (tmp_path / "made").unlink()
    status, out, _ = run(words)
    assert (status, out) == (1, b"here\n")
    assert not (tmp_path / "made").exists()
