"""When a command gets a deputy, and what is said about it; with real walls in ``tests/enforcement/test_deputy.py``."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from errno import EMFILE
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Packet
from stockade.platforms.linux.deputy import LONG, slept_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.platforms.linux.conftest import Ends

KEY = (b"write", b"/x")
ASKED = (1, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
NUMBER, SERIAL = 12, 5


def _sleep(_: int) -> None:
    time.sleep(2 * LONG)


def _work(_: int) -> None:
    until = time.monotonic() + 2 * LONG
    while time.monotonic() < until:
        pass


@pytest.mark.parametrize(("call", "slept"), [(_sleep, True), (_work, False)])
def test_only_a_call_counts_that_took_long_because_of_sleep(call: object, *, slept: bool) -> None:
    assert callable(call)
    # On a busy machine the work may be interrupted by sleep of another kind: a page that must be read, for example.
    assert slept in {slept_long(call, 0) for _ in range(5)}


def test_a_short_sleep_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.platforms.linux.deputy.monotonic", iter((1.0, 1.0 + 0.9 * LONG)).__next__)
    assert not slept_long(_sleep, 0)


class Scene:
    """A supervisor with one command, whose listener is the end of a pipe: it says nothing, and hangs up when told."""

    def __init__(self, ends: Ends) -> None:
        self.launcher, self.owner, self.supervisor = ends.launcher, ends.owner, ends.supervisor
        self.supervisor.listeners.clear()
        self.listener, caller = os.pipe()
        # Another process has the other end: a fork of this one would keep it open.
        self.caller = subprocess.Popen(["sleep", "60"], pass_fds=[caller])
        os.close(caller)
        self.supervisor.listeners[self.listener] = SERIAL
        self.supervisor.ears.register(self.listener, select.POLLIN)
        ends.say(message.assigned_packet(SERIAL, NUMBER))

    def depute(self) -> None:
        self.supervisor.depute(self.listener)
        heard = self.launcher.receive()
        assert heard is not None
        assert heard.kind == message.UNSAID

    def refuse(self, times: int) -> None:
        for _ in range(times):
            self.supervisor.report(self.listener, ASKED, KEY)

    def hear_others(self) -> bool:
        assert select.select([self.supervisor.poller], [], [], 20)[0]
        return self.supervisor.hear_others()

    def hang_up(self) -> None:
        self.caller.kill()

    def close(self) -> None:
        self.hang_up()
        self.caller.wait()
        for deputy in self.supervisor.deputies.values():
            deputy.channel.close()


@pytest.fixture
def scene(ends: Ends) -> Iterator[Scene]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as in the supervisor's own process
    scene = Scene(ends)
    yield scene
    scene.close()
    signal.signal(signal.SIGCHLD, before)


def test_the_supervisor_gives_the_command_up(scene: Scene) -> None:
    scene.depute()
    supervisor = scene.supervisor
    assert (supervisor.listeners, supervisor.commands, len(supervisor.deputies)) == ({}, {}, 1)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(scene.listener)


def test_a_deputy_says_the_last_numbers_when_it_is_asked(scene: Scene) -> None:
    scene.refuse(4)
    assert message.Refused.read(scene.owner.receive() or Packet(b"?", 0)).times == 1
    scene.depute()
    scene.launcher.send(message.empty(message.FLUSH, NUMBER))
    assert scene.hear_others()
    while scene.supervisor.deputies:
        assert scene.hear_others()
    said = [scene.launcher.receive(wait=False) for _ in range(4)]
    told = [packet for packet in said if packet is not None and packet.kind == message.REFUSED]
    assert [(packet.number, message.Refused.read(packet).times) for packet in told] == [(NUMBER, 3)]
    last = [packet for packet in said if packet is not None][-1]
    assert (last.kind, last.number, last.body) == (message.FLUSHED, NUMBER, b"")


def test_a_deputy_with_nobody_to_serve_ends_by_itself_and_the_launcher_hears_nothing(scene: Scene) -> None:
    scene.depute()
    scene.hang_up()
    while scene.supervisor.deputies:
        assert scene.hear_others()
    assert scene.launcher.receive(wait=False) is None


def test_as_long_as_there_is_a_deputy_the_launcher_is_to_ask_for_every_command(scene: Scene) -> None:
    scene.depute()
    scene.launcher.send(message.empty(message.FLUSH, NUMBER + 1))
    assert scene.hear_others()
    heard = scene.launcher.receive(wait=False)
    assert heard is not None
    assert (heard.kind, heard.number, heard.body) == (message.FLUSHED, NUMBER + 1, b"+")


def test_a_deputy_that_is_asked_after_its_last_word_is_heard_all_the_same(scene: Scene) -> None:
    before = _children()
    scene.depute()
    (child,) = set(_children()) - set(before)
    process = os.pidfd_open(child)
    os.kill(child, signal.SIGSTOP)
    scene.launcher.send(message.empty(message.FLUSH, NUMBER))
    assert scene.hear_others()
    scene.hang_up()
    os.kill(child, signal.SIGCONT)
    assert select.select([process], [], [], 20)[0]
    os.close(process)
    while scene.supervisor.deputies:
        assert scene.hear_others()
    said = scene.launcher.receive(wait=False)
    assert said is not None
    assert (said.kind, said.number) == (message.FLUSHED, NUMBER)


def test_a_deputy_that_is_killed_is_the_end(scene: Scene) -> None:
    before = _children()
    scene.depute()
    (child,) = set(_children()) - set(before)
    os.kill(child, signal.SIGKILL)
    assert not scene.hear_others()


def test_a_first_process_on_its_way_gets_none(scene: Scene) -> None:
    scene.supervisor.commands.clear()
    scene.supervisor.depute(scene.listener)
    assert scene.supervisor.deputies == {}
    os.close(scene.listener)


@pytest.mark.parametrize("refused", ["Channel.pair", "_poller_for", "os.fork"])
def test_where_there_can_be_none_the_supervisor_goes_on_serving(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(EMFILE, "")

    with monkeypatch.context() as patched:
        patched.setattr(f"stockade.platforms.linux.supervisor.{refused}", refuse)
        scene.depute()
    supervisor = scene.supervisor
    assert (supervisor.listeners, supervisor.deputies) == ({scene.listener: SERIAL}, {})
    assert supervisor.poller.poll(0) == []
    os.close(scene.listener)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]
