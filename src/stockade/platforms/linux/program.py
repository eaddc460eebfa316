"""The seccomp program of every command, made once per process."""

from __future__ import annotations

import os
from functools import cache

from stockade.platforms.linux.seccomp import Features, UnixSockets
from stockade.platforms.linux.seccomp import program as assemble
from stockade.platforms.linux.syscalls import arch_of


@cache
def program(unix_sockets: UnixSockets = "none", *, tracing: bool = True) -> bytes:
    """Return the program for this machine."""
    return assemble(arch_of(os.uname().machine), Features(unix_sockets=unix_sockets, tracing=tracing))
