"""The seccomp program of every command, made once per process."""

from __future__ import annotations

import os

from stockade.platforms.linux.seccomp import Features, UnixSockets
from stockade.platforms.linux.seccomp import program as assemble
from stockade.platforms.linux.syscalls import arch_of

_MADE: dict[Features, bytes] = {}


def program(unix_sockets: UnixSockets = "none", *, tracing: bool = True) -> bytes:
    """Return the program for this machine."""
    features = Features(unix_sockets=unix_sockets, tracing=tracing)
    if features not in _MADE:
        _MADE[features] = assemble(arch_of(os.uname().machine), features)
    return _MADE[features]
