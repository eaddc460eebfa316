"""How much of the proxy one program, or all of them together, may take.

Rules: beyond so many connections a new one is still heard, so that it can be told why it is not served, and beyond a
few more it is cut off. A connection counts until both of its ends are gone, and against its command from the moment
that it says whose it is. What is known to be nobody's in particular has a limit of its own. Of those that have not yet
said whose they are, the oldest is cut off when there are too many: who says so at once is served, however many others
keep silent. Neither can take what is left for the others, and all of them fit into the descriptors that there are.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

#: Connections that are only told that there are too many.
_HEARD: Final = 64
#: Descriptors for all else: listeners, pipes, name servers, further addresses that are tried.
_OWN_DESCRIPTORS: Final = 512
_FEWEST: Final = 64


class ProxyLimits(Value):
    """Connections in all, of one command, of nobody in particular, and of those that have not said yet whose they are.

    Then seconds for a first request, without a byte, and to read a last answer; ``next_seconds`` is how long a
    connection is kept for another request.
    """

    connections: int = 10_000
    per_command: int = 1_024
    of_nobody: int = 4_096
    unclaimed: int = 2_500
    handshake_seconds: float = 30.0
    next_seconds: float = 300.0
    idle_seconds: float = 3600.0
    linger_seconds: float = 5.0

    def within(self, descriptors: int) -> ProxyLimits:
        """Return limits that a process with so many descriptors can keep: two for a connection, and some for itself."""
        most = min(self.connections, max((descriptors - _OWN_DESCRIPTORS) // 2, _FEWEST))
        return self.but(
            connections=most,
            per_command=min(self.per_command, most // 4),
            of_nobody=min(self.of_nobody, most // 2),
            unclaimed=min(self.unclaimed, most // 4),
        )


class Ticket:
    """One connection's place. ``refused`` says why it is not to be served, and is empty if it is.

    ``cut_off`` ends the connection; whoever has it says how.
    """

    def __init__(self, admissions: Admissions, refused: str) -> None:
        """Belong to the admissions that made it."""
        self.refused = refused
        self.cut_off: Callable[[], None] = _nothing
        self._admissions = admissions
        self._command: str | None = None
        self._released = False

    def bind(self, command: str) -> str:
        """Count for a command from now on, or for nobody if it is empty; return why that cannot be, or nothing."""
        if self.refused or command == self._command or self._released:
            return self.refused
        why = self._admissions.count(command)
        if not why:
            self._discount()
            self._command = command
        return why

    def release(self) -> None:
        """Give the place up; once is enough."""
        if not self._released:
            self._released = True
            self._discount()
            self._admissions.left()

    def _discount(self) -> None:
        if self._command is None:
            self._admissions.claimed(self)
        else:
            self._admissions.discount(self._command)


class Admissions:
    """All places."""

    def __init__(self, limits: ProxyLimits) -> None:
        """Begin with all of them free."""
        self._limits = limits
        self._commands: dict[str, int] = {}
        self._unclaimed: dict[Ticket, None] = {}  # the oldest comes first
        self._in_all = 0

    def __len__(self) -> int:
        """Return how many places are taken."""
        return self._in_all

    def admit(self) -> Ticket | None:
        """Return a place, or ``None`` if a connection cannot even be heard."""
        most = self._limits.connections
        if self._in_all >= most + _HEARD:
            return None
        self._in_all += 1
        if len(self._unclaimed) >= self._limits.unclaimed:
            self._cut_off_oldest()
        ticket = Ticket(self, f"{most} connections are open already" if self._in_all > most else "")
        self._unclaimed[ticket] = None
        return ticket

    def left(self) -> None:
        """Take a place back."""
        self._in_all -= 1

    def count(self, command: str) -> str:
        """Count one more of a command, or of nobody; return why that cannot be, or nothing."""
        taken = self._commands.get(command, 0)
        if command and taken >= self._limits.per_command:
            return f"this command has {taken} connections open already"
        if not command and taken >= self._limits.of_nobody:
            return f"{taken} connections are open already of which nobody knows whose they are"
        self._commands[command] = taken + 1
        return ""

    def discount(self, command: str) -> None:
        """Count one less."""
        taken = self._commands.pop(command, 0)
        if taken > 1:
            self._commands[command] = taken - 1

    def claimed(self, ticket: Ticket) -> None:
        """Note that it is known whose connection it is, or that it is over."""
        self._unclaimed.pop(ticket, None)

    def _cut_off_oldest(self) -> None:
        oldest = next(iter(self._unclaimed), None)
        if oldest is not None:
            del self._unclaimed[oldest]
            oldest.cut_off()


def _nothing() -> None:
    return
