"""The warden answers, and tells each refusal of a command before it answers it. A pair of sockets plays the kernel."""

from __future__ import annotations

import os
import socket
from errno import EACCES
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import fuse, lineage, message, tree, warden
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.fuse import Request
from stockade.platforms.linux.mask import Masks, name_of
from stockade.platforms.linux.tally import KEPT, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.platforms.linux.tally import Refusal

COMMAND, OTHER, FIRST, SUPERVISOR = 1007, 1008, 1001, 1002


class Stage:
    """A warden between a kernel and a launcher that the test plays."""

    def __init__(self) -> None:
        self.kernel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        end.setblocking(False)
        self.launcher, theirs = Channel.pair()
        self.masks = Masks.over([(0, b"/k")], [], bool, 9)
        processes = os.open("/proc", os.O_PATH)
        self.warden = warden._Warden(theirs, end.detach(), self.masks, processes)
        known = {COMMAND: 7, OTHER: 8, FIRST: lineage.OWN, SUPERVISOR: lineage.BESIDE}
        self.warden.lineage._known = known
        self.warden.lineage._since = float("inf")

    def ask(self, thread: int, name: bytes) -> bytes:
        """Look a name up in the mask; return the answer."""
        number = self.masks.root.children[name_of(0, directory=True)].number
        self.kernel.send(Request(fuse.LOOKUP, 5, number, thread, name + b"\0").packed())
        assert self.warden.answer_all()
        return self.kernel.recv(fuse.LARGEST_REQUEST, socket.MSG_DONTWAIT)

    def told(self) -> list[tuple[bytes, int, list[Refusal]]]:
        """Return what the launcher can hear now."""
        heard = []
        while (packet := self.launcher.receive(wait=False)) is not None:
            heard.append((packet.kind, packet.number, unpacked(packet.fields())))
        return heard

    def close(self) -> None:
        self.kernel.close()
        self.launcher.close()
        self.warden.channel.close()
        os.close(self.warden.end)
        os.close(self.warden.processes)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def test_the_first_refusal_is_told_at_once_and_more_together(stage: Stage) -> None:
    assert stage.ask(COMMAND, b"a") == fuse.error(5, EACCES)
    assert stage.told() == [(message.KNOCKED, 7, [(b"/k/a", 1)])]
    for name in (b"a", b"b", b"a"):
        stage.ask(COMMAND, name)
    stage.ask(OTHER, b"c")
    assert stage.told() == [(message.KNOCKED, 8, [(b"/k/c", 1)])]
    stage.warden.tell()
    assert stage.told() == [(message.KNOCKED, 7, [(b"/k/a", 2), (b"/k/b", 1)])]
    assert stage.warden.patience() is None


def test_asked_for_the_rest_it_tells_the_rest(stage: Stage) -> None:
    for name in (b"a", b"b"):
        stage.ask(COMMAND, name)
    stage.ask(99999999, b"nobody's")
    stage.told()
    stage.ask(99999999, b"nobody's")
    stage.launcher.send(Packet(message.TELL, 7))
    assert stage.warden.obey()
    rest = [(message.KNOCKED, 0, [(b"/k/nobody's", 1)]), (message.KNOCKED, 7, [(b"/k/b", 1)]), (message.TOLD, 7, [])]
    assert stage.told() == rest
    stage.ask(COMMAND, b"c")
    assert stage.told() == [(message.KNOCKED, 7, [(b"/k/c", 1)])]


def test_what_the_sandbox_itself_asks_is_answered_and_not_told(stage: Stage) -> None:
    assert stage.ask(FIRST, b"a") == fuse.error(5, EACCES)
    stage.warden.tell()
    assert stage.told() == []


def test_what_a_supervisor_looked_at_is_told_by_the_supervisor(stage: Stage) -> None:
    stage.ask(SUPERVISOR, b"a")
    stage.ask(COMMAND, b"a")
    stage.warden.tell()
    assert stage.told() == []
    stage.ask(COMMAND, b"a")
    assert stage.told() == [(message.KNOCKED, 7, [(b"/k/a", 1)])]


def test_a_launcher_that_does_not_listen_is_told_sums_and_keeps_nobody_waiting(stage: Stage) -> None:
    rounds = 3000
    for number in range(rounds):
        assert stage.ask(COMMAND, b"%d" % number) == fuse.error(5, EACCES)
        stage.warden.tell()
    heard = stage.told()
    told = sum(times for _, _, refusals in heard for _, times in refusals)
    assert told < rounds
    stage.warden.tell()
    ((_, _, rest),) = stage.told()
    assert told + sum(times for _, times in rest) == rounds
    assert len(rest) <= KEPT + 1


def test_it_ends_with_either_side(stage: Stage) -> None:
    stage.launcher.close()
    assert not stage.warden.obey()


def test_a_status_that_is_not_there_is_empty(stage: Stage) -> None:
    assert stage.warden.status(2**22 + 1) == b""
    assert lineage.numbers(stage.warden.status(os.getpid()))[1][-1] == os.getpid()


@pytest.mark.parametrize(
    ("operation", "wanted"), [(tree.GUARDED, True), (tree.HIDDEN, False), (tree.READ_ONLY, False)], ids=str
)
def test_it_is_wanted_where_a_place_is_guarded(
    operation: bytes, *, wanted: bool, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = os.path.join(str(tmp_path), "fuse")
    monkeypatch.setattr(warden, "DEVICE", device.encode())
    places = tree.arrange([(operation, b"/p", b"")])
    assert not warden.is_wanted(places)
    with open(device, "wb"):
        assert warden.is_wanted(places) is wanted


def test_without_the_device_there_are_no_masks(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warden, "DEVICE", os.path.join(str(tmp_path), "fuse").encode())
    mine, theirs = Channel.pair()
    assert warden.new_masks(mine) == -1
    for end in (mine, theirs):
        end.close()
