"""The launcher's end of the supervisor: listeners and numbers of commands go there, unsaid refusals come back.

Rules: what was refused to a command is said before its end. A command to which nothing was refused, or each thing
once, pays one look into an empty channel; else the rest is asked for. A supervisor that is gone is not waited for, and
one that waits itself, for a disk or because somebody has stopped it, not for long.
"""

from __future__ import annotations

import select

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet

_PATIENCE = 2000  # milliseconds


class Supervised:
    """The launcher's end of the supervisor."""

    def __init__(self, channel: Channel) -> None:
        """Own the channel."""
        self.channel = channel
        self.unsaid = False

    def fileno(self) -> int:
        """Return the descriptor, for waiting on it."""
        return self.channel.fileno()

    def close(self) -> None:
        """Let it end."""
        self.channel.close()

    def take(self, serial: int, packet: Packet) -> None:
        """Pass on the listener of a first process."""
        self.channel.send(Packet(message.LISTENING, serial, b"", packet.descriptors))
        packet.close()

    def assign(self, serial: int, number: int) -> None:
        """Say which command a first process is to run. Raises ``OSError`` if nobody hears it."""
        self.channel.send(message.assigned_packet(serial, number))

    def hear(self) -> bool:
        """Note that there are numbers to be asked for; ``False`` if nothing was said. Never waits."""
        packet = self.channel.receive(wait=False)
        self.unsaid = self.unsaid or packet is not None
        return packet is not None

    def flush(self, number: int) -> list[Packet]:
        """Return what must be said about a command before its end is."""
        while not self.unsaid and self.hear():
            pass
        said: list[Packet] = []
        if not self.unsaid:
            return said
        try:
            self.channel.send(message.empty(message.FLUSH, number))
        except OSError:
            return said  # it was killed, which is heard next
        poller = select.poll()
        poller.register(self.channel.fileno(), select.POLLIN)
        while poller.poll(_PATIENCE):
            packet = self.channel.receive(wait=False)
            if packet is None:
                break
            if packet.kind == message.REFUSED:
                said.append(packet)
            elif packet.kind == message.FLUSHED and packet.number == number:
                self.unsaid = bool(packet.body)
                break
        return said
