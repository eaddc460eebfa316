"""What is said to whom; the rest needs walls, see ``tests/enforcement``."""

from __future__ import annotations

import os
from errno import ENOENT, ENOSPC
from socket import AF_INET, socket
from typing import TYPE_CHECKING

from stockade.platforms.linux import kernel, message
from stockade.platforms.linux.channel import Packet
from stockade.platforms.linux.connection import Attempt
from stockade.platforms.linux.listings import Listings
from stockade.platforms.linux.supervisor import Supervisor, follow_no_links
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.platforms.linux.conftest import Ends

KEY = (b"write", b"/x")
ASKED = (1, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def _refused(packet: Packet | None) -> tuple[int, bytes, bytes, int]:
    assert packet is not None
    refused = message.Refused.read(packet)
    return packet.number, refused.operation, refused.place, refused.times


class Full:
    """A poller for which the user has no share left."""

    def register(self, *_: object) -> None:
        raise OSError(ENOSPC, "")

    def unregister(self, *_: object) -> None:
        raise OSError(ENOENT, "")


def test_a_connection_that_cannot_be_watched_is_looked_at_all_the_same(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = Attempt(99, 1, 77)
    attempt.sock, attempt.domain = socket(), AF_INET
    descriptor = attempt.sock.fileno()
    connections = ends.supervisor.connections
    connections.waiting[descriptor] = attempt
    monkeypatch.setattr(connections, "attempt", lambda *_: (attempt, None))
    with monkeypatch.context() as patched:
        patched.setattr(ends.supervisor, "poller", Full())
        ends.supervisor.decide(99, ASKED)
        assert connections.due(1.0) == [descriptor]
        ends.supervisor.look_again(descriptor)
    assert connections.waiting == {}


def test_where_links_are_followed_no_answer_is_quick(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    careful = Supervisor(ends.channels[1], ends.channels[3], ends.supervision, follows_links=True)
    answered: list[str] = []
    calls = [(1, os.getpid(), 0, number, 0, 0, *[0] * 6) for number in careful.changes]
    monkeypatch.setattr("stockade.platforms.linux.supervisor.receive", lambda _: calls.pop())
    monkeypatch.setattr(careful, "observe", lambda *_: answered.append("walk"))
    while calls:
        careful.hear(99)
    careful.own.close()
    assert answered == ["walk"] * len(ends.supervisor.quick)


def test_who_lists_is_asked_only_where_something_is_left_out(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = arch_of(os.uname().machine)
    asked = (1, os.getpid(), 0, arch.numbers()["getdents64"], 0, 0, *[0] * 6)
    monkeypatch.setattr("stockade.platforms.linux.supervisor.receive", lambda _: asked)
    answered: list[object] = []
    monkeypatch.setattr(ends.supervisor, "observe", lambda *_: answered.append("the kernel"))
    ends.supervisor.hear(99)
    ends.supervisor.listings = Listings([[b"/", b"x"]], arch)
    monkeypatch.setattr(ends.supervisor.listings, "answer", lambda *words: answered.append(words))
    ends.supervisor.hear(99)
    assert answered == ["the kernel", (99, asked)]


def test_in_its_own_mounts_it_follows_no_link(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
            found = follow_no_links(), os.access(folder + b"/file", os.R_OK), os.access(folder + b"/link", os.R_OK)
            os.write(writer, f"{found}; {os.readlink(folder + b'/link')!r}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        assert answer.read() == "(True, True, False); b'file'"


def test_whoever_was_due_and_not_looked_at_is_the_first_next_time(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, clock, looked = ends.supervisor, [1.0], []
    supervisor.connections.waiting.update({number: Attempt(99, 1, 77) for number in range(5)})

    def look(descriptor: int) -> None:
        clock[0] += 0.002 if descriptor == 1 else 0
        looked.append(descriptor)
        supervisor.connections.turn(descriptor)

    monkeypatch.setattr("stockade.platforms.linux.supervisor.monotonic", lambda: clock[0])
    monkeypatch.setattr(supervisor, "look_again", look)
    for _ in range(2):
        supervisor.look_at_due()
        clock[0] += 1
    assert looked == [0, 1, 2, 3, 4, 0, 1]


def test_the_owner_hears_what_is_new_and_the_launcher_the_rest_before_the_end(ends: Ends) -> None:
    assert ends.say(message.assigned_packet(5, 12))
    ends.refuse(3)
    assert _refused(ends.owner.receive(wait=False)) == (12, *KEY, 1)
    assert ends.owner.receive(wait=False) is None
    said = ends.launcher.receive(wait=False)
    assert said is not None
    assert said.kind == message.UNSAID
    assert ends.say(message.empty(message.FLUSH, 12))
    assert _refused(ends.launcher.receive(wait=False)) == (12, *KEY, 2)
    last = ends.launcher.receive(wait=False)
    assert last is not None
    assert (last.kind, last.number, last.body, ends.supervisor.dirty) == (message.FLUSHED, 12, b"", False)


def test_of_what_no_command_did_nobody_hears(ends: Ends) -> None:
    ends.refuse(2)
    assert (ends.owner.receive(wait=False), ends.launcher.receive(wait=False)) == (None, None)


def test_numbers_are_told_now_and_then(ends: Ends) -> None:
    ends.say(message.assigned_packet(5, 12))
    ends.refuse(4)
    ends.supervisor.tell_numbers()
    told = [_refused(ends.owner.receive(wait=False)) for _ in range(2)]
    assert told == [(12, *KEY, 1), (12, *KEY, 3)]
    assert ends.supervisor.patience() is None


def test_an_owner_that_does_not_listen_keeps_nobody_waiting(ends: Ends) -> None:
    ends.say(message.assigned_packet(5, 12))
    while True:
        try:
            ends.supervisor.owner.send(Packet(b"?", 0, bytes(20_000)), wait=False)
        except BlockingIOError:
            break
    ends.refuse(2)
    ends.supervisor.tell_numbers()
    assert ends.supervisor.refusals.end(12) == [(KEY, 2)]


def test_it_ends_with_the_launcher(ends: Ends) -> None:
    ends.launcher.close()
    assert not ends.supervisor.obey()
