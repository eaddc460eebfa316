"""The seccomp program of every command, made once per process.

It is sent by name and assembled by whoever builds the jail: the helpers wait for the plan anyway, and have the usual
one ready when it comes.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from stockade.platforms.linux.confinement import UnixSockets

_UNTRACED = b" untraced"
_made: dict[bytes, bytes] = {}


def name(unix_sockets: UnixSockets = "none", *, tracing: bool = True) -> bytes:
    """Return the name of the program. Raises if there is none for this machine."""
    arch_of(os.uname().machine)
    return unix_sockets.encode() + (b"" if tracing else _UNTRACED)


def program(named: bytes = b"none") -> bytes:
    """Return the program of that name for this machine."""
    if named not in _made:
        from stockade.platforms.linux.seccomp import Features
        from stockade.platforms.linux.seccomp import program as assemble

        sockets: UnixSockets = named.removesuffix(_UNTRACED).decode()  # type: ignore[assignment] # it is checked there
        features = Features(unix_sockets=sockets, tracing=not named.endswith(_UNTRACED))
        _made[named] = assemble(arch_of(os.uname().machine), features)
    return _made[named]
