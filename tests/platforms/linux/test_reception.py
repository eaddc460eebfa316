from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.door import Door
from stockade.platforms.linux.jail import Guests, Jail, Request
from stockade.platforms.linux.visitor import SOCKET, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


STRANGER = """
import _socket, sys
end = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
end.connect(sys.argv[1])
print(end.recv(1))
"""


class Desk:
    """A jail that receives, and one order."""

    def __init__(self, door: Door, jail: Jail, directory: Path) -> None:
        self.jail = jail
        self.door = door
        request = Request(("sh", "-c", "touch up; cat; exit 3"), {"PATH": "/usr/bin:/bin"}, str(directory))
        *_, self.directory, order = door.order(request, jail)
        self.order = int(order)
        door.lead_to(jail)

    def visitor(self) -> Channel:
        return Channel(connect(self.directory))


@pytest.fixture
def desk(jail: Jail, tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "door").mkdir()
    door = Door(f"{tmp_path}/door/stockade")
    yield Desk(door, jail, tmp_path)
    door.close()


def visit(channel: Channel, order: int, stdin: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    channel.send(Packet(message.VISIT, order, b"", (stdin, nothing, nothing)))
    os.close(nothing)


def test_the_owner_is_told_who_comes_and_goes(desk: Desk) -> None:
    visitor = desk.visitor()
    assert desk.jail.receive() == Guests(1, receiving=True)
    reader, writer = os.pipe()
    visit(visitor, desk.order, reader)
    desk.jail.receive_visitors(None)
    assert desk.jail.receive() == Guests(1, receiving=False)
    os.close(writer)
    os.close(reader)
    packet = visitor.receive()
    assert packet is not None
    assert os.waitstatus_to_exitcode(message.Ended.read(packet).status) == 3
    assert visitor.receive() is None
    assert desk.jail.receive() == Guests(0, receiving=False)
    visitor.close()


def test_a_visitor_that_leaves_without_a_word(desk: Desk) -> None:
    desk.visitor().close()
    assert [desk.jail.receive(), desk.jail.receive()] == [Guests(1, receiving=True), Guests(0, receiving=True)]


def test_a_visitor_that_leaves_ends_its_command(desk: Desk, tmp_path: Path) -> None:
    visitor = desk.visitor()
    reader, writer = os.pipe()
    visit(visitor, desk.order, reader)
    os.close(reader)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    visitor.close()
    assert [desk.jail.receive(), desk.jail.receive()] == [Guests(1, receiving=True), Guests(0, receiving=True)]
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"x")
    os.close(writer)


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(Packet(message.VISIT, 99, b"", (0, 0, 0)), id="an order that nobody gave"),
        pytest.param(Packet(message.VISIT, 1), id="no streams"),
        pytest.param(Packet(message.VISIT, 1, b"", (0, 0, 0, 0)), id="too many streams"),
    ],
)
def test_what_cannot_be_done_is_answered(desk: Desk, packet: Packet) -> None:
    visitor = desk.visitor()
    nothing = os.open(os.devnull, os.O_RDWR)
    visitor.send(Packet(packet.kind, packet.number, b"", (nothing,) * len(packet.descriptors)))
    os.close(nothing)
    answer = visitor.receive()
    assert answer is not None
    assert (answer.kind, message.Failed.read(answer).exit_status()) == (message.FAILED, 125)
    visitor.close()


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(Packet(message.RUN, 1, b"rubbish"), id="a command of its own"),
        pytest.param(Packet(message.BUILD, 0, b"rubbish"), id="a jail of its own"),
        pytest.param(Packet(message.END, 1), id="somebody else's end"),
        pytest.param(message.signal_packet(0, 15), id="a signal before its command"),
        pytest.param(message.signal_packet(0, 1 << 40), id="a signal that does not exist"),
        pytest.param(Packet(message.RECEIVE, 0), id="the closing of the door"),
    ],
)
def test_what_a_visitor_may_not_ask_changes_nothing(desk: Desk, packet: Packet) -> None:
    visitor = desk.visitor()
    visitor.send(packet)
    nothing = os.open(os.devnull, os.O_RDWR)
    visit(visitor, desk.order, nothing)
    os.close(nothing)
    answer = visitor.receive()
    assert answer is not None
    assert answer.kind == message.ENDED
    visitor.close()


def test_rubbish_ends_the_visit_and_nothing_else(desk: Desk) -> None:
    end = connect(desk.directory)
    end.send(b"rubbish")
    assert end.recv(1) == b""
    end.close()
    assert [desk.jail.receive(), desk.jail.receive()] == [Guests(1, receiving=True), Guests(0, receiving=True)]
    desk.visitor().close()


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/usr/bin/python3", os.X_OK), reason="only root can be somebody else"
)
def test_another_user_is_turned_away_even_where_the_directory_would_let_it_in(desk: Desk) -> None:
    """The kernel names the user of each connection, so that a mistake with modes lets nobody in."""
    os.chmod(f"{desk.directory}/{SOCKET}", 0o777)  # noqa: S103 - the mistake that this is about
    os.chmod(desk.directory, 0o755)  # noqa: S103 - likewise
    place = os.open(desk.directory, os.O_PATH)
    words = ["/usr/bin/python3", "-I", "-S", "-c", STRANGER, f"/proc/self/fd/{place}/{SOCKET}"]
    ran = subprocess.run(words, user=65534, pass_fds=(place,), capture_output=True, text=True, cwd="/", check=False)
    os.close(place)
    assert (ran.stdout, ran.stderr) == ("b''\n", "")
