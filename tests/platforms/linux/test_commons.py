from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from stockade.filesystem.plan import Mount, Operation, Plan
from stockade.platforms.backend import Entrance
from stockade.platforms.linux.commons import Commons

if TYPE_CHECKING:
    from collections.abc import Iterator


class Made:
    """A jail as far as it made something for all: namespaces and entrances, both real descriptors."""

    def __init__(self, *entrances: str, namespaces: int = 0, joins: bool = True) -> None:
        self.joins = joins
        self.private: tuple[int, ...] = ()
        self.common = ""
        self.shared = tuple(os.open(os.devnull, os.O_RDONLY) for _ in range(namespaces))
        told = ("unrouted", "taken")
        self.entrances = tuple(
            (label, -1 if label.startswith(told) else os.open(os.devnull, os.O_RDONLY)) for label in entrances
        )


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.fixture
def commons() -> Iterator[Commons]:
    found = Commons()
    yield found
    found.close()


def test_what_a_jail_has_made_is_the_sessions(commons: Commons) -> None:
    jail = Made("http", "socks", "host 127.0.0.1 5432", "host ::1 5432", namespaces=3)
    (http, socks, four, six), namespaces = [end for _, end in jail.entrances], jail.shared
    assert commons.take(jail) == ()  # type: ignore[arg-type] # of a jail only this is used
    assert (commons.shared, jail.shared, jail.entrances, commons.unrouted) == (namespaces, (), (), "")
    assert commons.take_entrances() == (
        Entrance("http", http),
        Entrance("socks", socks),
        Entrance("host", four, "127.0.0.1", 5432),
        Entrance("host", six, "::1", 5432),
    )
    assert commons.take_entrances() == ()
    for descriptor in (http, socks, four, six):
        os.close(descriptor)


def test_what_could_not_be_had_is_told(commons: Commons) -> None:
    notes = commons.take(Made("http", "unrouted nftables: Protocol not supported", "taken 127.0.0.1 80", namespaces=1))  # type: ignore[arg-type]
    assert notes == ("port 80 of the host cannot be reached: a command in here listens on it",)
    assert commons.unrouted == "nftables: Protocol not supported"


WANTED = (("127.0.0.1", 80), ("::1", 443))


@pytest.mark.parametrize(
    ("entrances", "namespaces", "joins", "missing"),
    [
        pytest.param((), 1, True, list(WANTED), id="none is there"),
        pytest.param(("host 127.0.0.1 80",), 1, True, [("::1", 443)], id="one is there"),
        pytest.param(("host 127.0.0.1 80", "host ::1 443"), 1, True, [], id="all are there"),
        pytest.param(("taken 127.0.0.1 80",), 1, True, list(WANTED), id="a taken one is tried again"),
        pytest.param(("host 127.0.0.1 80",), 1, False, list(WANTED), id="a jail that brings its own localhost"),
        pytest.param(("host 127.0.0.1 80",), 0, True, list(WANTED), id="nothing is shared"),
    ],
)
def test_only_what_is_missing_is_opened(
    commons: Commons,
    entrances: tuple[str, ...],
    namespaces: int,
    joins: bool,  # noqa: FBT001
    missing: list[tuple[str, int]],
) -> None:
    commons.take(Made(*entrances, namespaces=namespaces))  # type: ignore[arg-type]
    assert commons.missing(WANTED, Made(joins=joins)) == missing  # type: ignore[arg-type]


def test_namespaces_that_replace_others_close_them(commons: Commons) -> None:
    first, second, joined = Made(namespaces=2), Made(namespaces=2), Made()
    old, new = first.shared, second.shared
    for jail in (first, second, joined):
        commons.take(jail)  # type: ignore[arg-type]
    assert commons.shared == new
    assert [is_open(one) for one in (*old, *new)] == [False, False, True, True]


def test_closing_lets_go_of_everything_that_nobody_took() -> None:
    commons = Commons()
    jail = Made("http", "host 127.0.0.1 80", namespaces=2)
    held = (*jail.shared, *(end for _, end in jail.entrances))
    commons.take(jail)  # type: ignore[arg-type]
    commons.close()
    commons.close()
    assert not any(map(is_open, held))
    assert (commons.shared, commons.take_entrances()) == ((), ())


def test_the_private_place_serves_one_jail_after_the_other(commons: Commons) -> None:
    first, second = Made(), Made()
    first.private, second.private = ((os.open(os.devnull, os.O_RDONLY),) for _ in range(2))
    old, new = first.private, second.private
    for jail in (first, second):
        assert commons.take(jail) == ()  # type: ignore[arg-type]
    assert commons.private == new
    assert [is_open(one) for one in (*old, *new)] == [False, True]
    commons.forget_private()
    assert (len(commons.private), is_open(new[0])) == (0, False)


def test_why_there_is_no_private_place_is_told(commons: Commons) -> None:
    jail = Made()
    jail.common = "something is mounted at /tmp/x"
    (note,) = commons.take(jail)  # type: ignore[arg-type]
    assert note == (
        "commands can write in $TMPDIR but not in /tmp, for something is mounted at /tmp/x;"
        " see `stockade doctor`, or set sandbox.filesystem.privateTmp to false"
    )


def test_layers_are_made_once_for_a_plan_that_needs_them_and_go_with_the_session() -> None:
    commons = Commons()
    assert commons.layers(Plan()) == ""
    plan = Plan((Mount(Operation.PRIVATE, "/tmp", ""),))
    layers = commons.layers(plan)
    assert commons.layers(plan) == layers
    assert os.stat(layers).st_mode & 0o777 == 0o700
    os.makedirs(f"{layers}/work0/work", mode=0)
    commons.close()
    assert not os.path.exists(layers)


class Doorway:
    """A porter that can be taken from once, as the real one; ``theirs`` is where it listens."""

    def __init__(self) -> None:
        mine, self.theirs = socket.socketpair()
        self.take = Mock(side_effect=[mine.detach()])
        self.close = Mock()


def test_one_porter_serves_a_session_until_it_is_killed_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Doorway(), Doorway()
    start = Mock(side_effect=[first, second])
    monkeypatch.setattr("stockade.platforms.linux.porter.Porter.start", start)
    commons = Commons()
    jail = Made(namespaces=1)
    namespaces = jail.shared
    commons.take(jail)  # type: ignore[arg-type]
    ways = [commons.open_way_in(), commons.open_way_in()]
    start.assert_called_once_with(namespaces)
    assert os.path.sameopenfile(*ways)
    first.theirs.close()
    ways.append(commons.open_way_in())
    assert (start.call_count, os.path.sameopenfile(ways[0], ways[2])) == (2, False)
    commons.close()
    commons.close()
    for way in ways:
        os.close(way)
    assert second.theirs.recv(1) == b""
    second.theirs.close()
    first.close.assert_called_once_with()
    second.close.assert_called_once_with()
