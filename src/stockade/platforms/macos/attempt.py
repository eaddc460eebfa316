"""What somebody behind a Seatbelt profile may try, as a value."""

from __future__ import annotations

from stockade.platforms.macos.sexpr import bytes_of
from stockade.value import Value


class Attempt(Value):
    """An operation and what it is about; what does not apply stays empty.

    ``path`` is a place, or that of a unix socket; ``kind`` the type of the file there. ``name`` is that of a service, a
    sysctl or shared memory. ``local`` and ``remote`` are addresses with their ports, ``target`` a process in relation
    to the one that asks.
    """

    operation: str
    path: str = ""
    kind: str = "REGULAR-FILE"
    name: str = ""
    local: str = ""
    remote: str = ""
    domain: str = ""
    protocol: str = ""
    target: str = ""

    @property
    def raw_path(self) -> bytes:
        """The path as the kernel has it."""
        return bytes_of(self.path)
