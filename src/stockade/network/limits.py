"""How much of the proxy one program, or all of them together, may take.

Rules: beyond so many connections a new one is still heard, so that it can be told why it is not served, and beyond a
few more it is cut off. A connection counts until both of its ends are gone, and against its command from the moment
that it says whose it is. What nobody has claimed counts only in all.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.value import Value

#: Connections that are only told that there are too many.
_HEARD: Final = 64


class ProxyLimits(Value):
    """Connections in all and of one command; seconds for a first request, without a byte, and to read a last answer.

    ``next_seconds`` is how long a connection is kept for another request.
    """

    connections: int = 10_000
    per_command: int = 1_024
    handshake_seconds: float = 30.0
    next_seconds: float = 300.0
    idle_seconds: float = 3600.0
    linger_seconds: float = 5.0


class Ticket:
    """One connection's place. ``refused`` says why it is not to be served, and is empty if it is."""

    def __init__(self, admissions: Admissions, refused: str) -> None:
        """Belong to the admissions that made it."""
        self.refused = refused
        self._admissions = admissions
        self._command = ""
        self._released = False

    def bind(self, command: str) -> str:
        """Count for a command from now on; return why that cannot be, or nothing."""
        if self.refused or command == self._command or self._released:
            return self.refused
        why = self._admissions.count(command)
        if not why:
            self._admissions.discount(self._command)
            self._command = command
        return why

    def release(self) -> None:
        """Give the place up; once is enough."""
        if not self._released:
            self._released = True
            self._admissions.discount(self._command)
            self._admissions.left()


class Admissions:
    """All places."""

    def __init__(self, limits: ProxyLimits) -> None:
        """Begin with all of them free."""
        self._limits = limits
        self._commands: dict[str, int] = {}
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
        return Ticket(self, f"{most} connections are open already" if self._in_all > most else "")

    def left(self) -> None:
        """Take a place back."""
        self._in_all -= 1

    def count(self, command: str) -> str:
        """Count one more of a command; return why that cannot be, or nothing."""
        taken = self._commands.get(command, 0)
        if not command:
            return ""
        if taken >= self._limits.per_command:
            return f"this command has {taken} connections open already"
        self._commands[command] = taken + 1
        return ""

    def discount(self, command: str) -> None:
        """Count one less."""
        taken = self._commands.pop(command, 0)
        if taken > 1:
            self._commands[command] = taken - 1
