"""What is done when too many open files are on their way; ``tests/enforcement/test_descriptors.py`` brings it about."""

from __future__ import annotations

import os
import resource
import socket
from array import array
from errno import EBADF, ETOOMANYREFS
from typing import Any, cast

import pytest

from stockade import passing
from stockade.platforms.linux.channel import Channel, Packet


class Full:
    """A socket whose user has too many on the way for all limits below one."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.limits: list[int] = []

    def sendmsg(self, data: list[bytes], *_: object) -> int:
        self.limits.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if self.limits[-1] < self.enough:
            raise OSError(ETOOMANYREFS, os.strerror(ETOOMANYREFS))
        return len(data[0])


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of this process, kept apart from the real ones."""
    now = [(256, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: now.append(wanted))
    return now


def _sent(end: Full) -> int:
    return passing.send_again(cast("Any", end), b"abc", [])


def test_one_more_try_is_made_with_the_hard_limit(limits: list[tuple[int, int]]) -> None:
    end = Full(4096)
    assert (_sent(end), end.limits, limits[-1]) == (3, [4096], (256, 4096))


def test_a_channel_tries_again(limits: list[tuple[int, int]]) -> None:
    end = Full(4096)
    Channel(cast("Any", end)).send(Packet(b"x", 0))
    assert (end.limits, limits[-1]) == ([256, 4096], (256, 4096))


def test_where_that_is_not_enough_the_words_say_what_it_is(limits: list[tuple[int, int]]) -> None:
    with pytest.raises(OSError, match="on their way between programs") as caught:
        _sent(Full(1 << 20))
    assert (caught.value.errno, limits[-1]) == (ETOOMANYREFS, (256, 4096))
    assert passing.hint(caught.value, "usual") == passing.HINT


@pytest.mark.parametrize("error", [None, OSError(EBADF, ""), ValueError()], ids=repr)
def test_other_failures_have_their_own_hint(error: BaseException | None) -> None:
    assert passing.hint(error, "usual") == "usual"


def test_a_file_goes_along() -> None:
    one, other = socket.socketpair()
    with one, other:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [one.fileno()]).tobytes())]
        assert passing.send_again(one, b"x", rights) == 1
        data, ((_, kind, found),) = other.recvmsg(1, socket.CMSG_SPACE(4))[:2]
        os.close(int.from_bytes(found, "little"))
    assert (data, kind) == (b"x", socket.SCM_RIGHTS)
