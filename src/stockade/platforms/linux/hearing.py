"""What the warden tells of refusals, on its way through the launcher to the owner.

The warden knows the first process of the command that was refused something; the launcher knows that command's number.

Rules: what was refused to a command is said before its end. A command to which nothing was refused pays one look
into an empty channel; one that was refused something waits until the warden has told the rest. A warden that is gone
is not waited for. An owner that does not listen is told sums, later.
"""

from __future__ import annotations

import select

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.tally import Tally, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.launcher import Launcher
    from stockade.platforms.linux.tally import Refusal

#: So long is waited for a warden that was stopped from outside, in milliseconds.
_PATIENCE = 2000
#: An owner that has left so many packets unheard is told sums.
_MOST_UNHEARD = 100
_READ = b"read"


class Hearing:
    """The launcher's end of the channel to the warden, if there is one."""

    def __init__(self, warden: Channel | None, launcher: Launcher) -> None:
        """Begin with nothing heard."""
        self.warden = warden
        self.launcher = launcher
        self.heard_of: set[int] = set()
        self.tally = Tally()

    def fileno(self) -> int:
        """Return the descriptor to watch, -1 if there is none."""
        return -1 if self.warden is None else self.warden.fileno()

    def hear(self) -> None:
        """Pass on all that the warden has said."""
        while self.warden is not None and (packet := self.warden.receive(wait=False)) is not None:
            self.take(packet)

    def close(self) -> None:
        """Go on without the warden: masks refuse as before, but nobody tells of it."""
        if self.warden is not None:
            self.warden.close()
            self.warden = None

    def settle(self, first_process: int) -> None:
        """Pass on all that concerns a command, which has ended."""
        self.hear()
        if not self.heard_of or self.warden is None:
            return
        self.ask(self.warden, first_process)
        self.heard_of -= {first_process, 0}
        for number in self.tally.who():
            self.say(number, self.tally.take(number))

    def ask(self, warden: Channel, first_process: int) -> None:
        """Have the rest told that concerns a command, and wait for it."""
        try:
            warden.send(Packet(message.TELL, first_process), wait=False)
        except OSError:
            return
        poller = select.poll()
        poller.register(warden.fileno(), select.POLLIN)
        while poller.poll(_PATIENCE):
            packet = warden.receive(wait=False)
            if packet is None or (packet.kind == message.TOLD and packet.number == first_process):
                return
            self.take(packet)

    def take(self, packet: Packet) -> None:
        """Pass one packet on, or count what is in it for later."""
        if packet.kind != message.KNOCKED:
            return
        self.heard_of.add(packet.number)
        number = self.launcher.number_of(packet.number)
        refusals = unpacked(packet.fields())
        if len(self.launcher.unsaid) < _MOST_UNHEARD:
            self.say(number, refusals)
            return
        for refusal in refusals:
            self.tally.add(number, *refusal)

    def say(self, number: int, refusals: list[Refusal]) -> None:
        """Tell the owner what was refused to a command."""
        for path, times in refusals:
            self.launcher.say(message.Refused(_READ, path, times).packet(number))
