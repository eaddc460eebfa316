"""Where a launcher takes commands from visitors: programs outside that run what a session has wrapped.

The owner deposits orders, each a command with its environment, and hands over a listening socket. A visitor connects,
names an order and brings three streams; it may send signals; it is told how the command ended. When the visitor is
gone, its command ends; when the launcher is gone, the visitor reads the end of its connection.

Rules: the owner takes no part, so a busy owner keeps nobody waiting; a visitor is served only if it is of the user
who owns the session; it can run what was ordered and nothing else; the launcher never waits for a visitor.
Source of truth: unix(7), SO_PEERCRED.
"""

from __future__ import annotations

from _socket import AF_UNIX, SO_PEERCRED, SOCK_SEQPACKET, SOL_SOCKET, socket
from errno import ENOENT
from os import geteuid
from select import POLLIN

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.launcher import Launcher

#: Commands of visitors have numbers from here on; those of the owner are below.
FIRST_NUMBER = 1 << 62
_CREDENTIALS = 12  # struct ucred: process, user and group, four bytes each
_USER = slice(4, 8)
_ENVIRONMENT = 3
_SIGNALS = range(1, 65)


class Reception:
    """The visitors of one launcher."""

    def __init__(self, launcher: Launcher) -> None:
        """Begin closed; see ``open``."""
        self.launcher = launcher
        self.door: socket | None = None
        self.orders: dict[int, list[bytes]] = {}
        self.environments: dict[bytes, bytes] = {}
        self.numbers: dict[int, int] = {}
        self.channels: dict[int, Channel] = {}
        self.inside: set[int] = set()
        self.last = FIRST_NUMBER

    def obey(self, packet: Packet) -> bool:
        """Do what the owner asks, if it is about visitors."""
        if packet.kind == message.ORDER:
            self.note(packet)
        elif packet.kind == message.RECEIVE and packet.descriptors:
            self.open(packet.descriptors[0])
            packet.descriptors = packet.descriptors[1:]
        elif packet.kind == message.RECEIVE:
            self.close()
        else:
            return False
        return True

    def note(self, packet: Packet) -> None:
        """Keep an order; environments, which are large and mostly the same, are kept once."""
        fields = packet.fields()
        fields[_ENVIRONMENT] = self.environments.setdefault(fields[_ENVIRONMENT], fields[_ENVIRONMENT])
        self.orders[packet.number] = fields

    def open(self, descriptor: int) -> None:
        """Receive visitors at this listening socket."""
        self.door = socket(AF_UNIX, SOCK_SEQPACKET, 0, descriptor)
        self.door.setblocking(False)
        self.launcher.poller.register(descriptor, POLLIN)

    def close(self) -> None:
        """Receive no more visitors; those that are here stay."""
        if self.door is not None:
            self.launcher.poller.unregister(self.door.fileno())
            self.door.close()
            self.door = None
        self.tell()

    def tell(self) -> None:
        """Tell the owner how many visitors there are, and whether more can come."""
        self.launcher.say(message.guests_packet(len(self.inside), receiving=self.door is not None))

    def serve(self, descriptor: int) -> bool:
        """Attend to a descriptor, if it is one of the reception's."""
        if self.door is not None and descriptor == self.door.fileno():
            self.admit(self.door)
        elif descriptor in self.channels:
            self.hear(descriptor)
        else:
            return False
        return True

    def admit(self, door: socket) -> None:
        """Let a visitor in."""
        try:
            descriptor, _ = door._accept()  # type: ignore[attr-defined] # noqa: SLF001 - what socket.accept calls
        except OSError:
            return  # it has left already, or another launcher of the session has let it in
        end = socket(AF_UNIX, SOCK_SEQPACKET, 0, descriptor)
        user = int.from_bytes(end.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS)[_USER], "little")
        if user != geteuid():
            end.close()
            return
        self.last += 1
        self.channels[descriptor] = Channel(end)
        self.numbers[descriptor] = self.last
        self.inside.add(self.last)
        self.launcher.poller.register(descriptor, POLLIN)
        self.tell()

    def hear(self, descriptor: int) -> None:
        """Do what a visitor asks."""
        number = self.numbers[descriptor]
        try:
            packet = self.channels[descriptor].receive(wait=False)
        except (OSError, ValueError):
            packet = None
        if packet is None:
            self.dismiss(descriptor)
            self.end(number)
            return
        if packet.kind == message.VISIT and number not in self.launcher.numbers:
            self.run(number, packet)
        elif packet.kind == message.SIGNAL and message.read_signal(packet) in _SIGNALS:
            self.disturb(number, Packet(message.SIGNAL, number, packet.body))
        packet.close()

    def run(self, number: int, packet: Packet) -> None:
        """Run what was ordered, on the visitor's streams."""
        order = self.orders.get(packet.number)
        if order is None:
            self.answer(message.Failed(ENOENT, b"order").packet(number))
            return
        # The owner, who makes a new plan before each of its own commands, takes no part here.
        self.launcher.look_at_covers()
        self.launcher.run(Packet(message.RUN, number, pack(order), packet.descriptors))

    def disturb(self, number: int, packet: Packet) -> None:
        """Pass something on to a visitor's command, if it runs."""
        job = self.launcher.numbers.get(number)
        if job is not None:
            self.launcher.disturb(job, packet)

    def end(self, number: int) -> None:
        """End the command of a visitor that has left; if there is none, that was all."""
        if number in self.launcher.numbers:
            self.disturb(number, Packet(message.END, number))
        elif number in self.inside:
            self.inside.discard(number)
            self.tell()

    def answer(self, packet: Packet) -> None:
        """Tell a visitor how its command ended, if it is still there, and see it out."""
        descriptor = next((key for key, number in self.numbers.items() if number == packet.number), None)
        if descriptor is not None:
            self.reply(descriptor, packet)
        self.inside.discard(packet.number)
        self.tell()

    def reply(self, descriptor: int, packet: Packet) -> None:
        """Say the last word to a visitor."""
        try:
            self.channels[descriptor].send(packet, wait=False)
        except OSError:
            return  # it left without waiting for the answer
        finally:
            self.dismiss(descriptor)

    def dismiss(self, descriptor: int) -> None:
        """Close a visitor's connection."""
        self.launcher.poller.unregister(descriptor)
        del self.numbers[descriptor]
        self.channels.pop(descriptor).close()
