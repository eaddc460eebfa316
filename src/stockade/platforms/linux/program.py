"""The seccomp program of every command, made once per process.

It is sent by name and assembled by whoever builds the jail: the helpers wait for the plan anyway, and have the usual
one ready when it comes. A name is the mode of unix sockets and what else differs, as words: ``untraced``,
``supervised`` (somebody decides about ``connect``), ``observed`` (somebody is told of changes of files by name), and
``fully`` (of those by descriptor, too). The last is
``unlisted`` (somebody lists directories), where there is somebody who answers anyway: it only puts a few instructions
before the program without it, so that whoever has that ready has this one too.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from stockade.platforms.backend import Observe
    from stockade.platforms.linux.confinement import UnixSockets

UNTRACED = b"untraced"
SUPERVISED = b"supervised"
OBSERVED = b"observed"
FULLY = b"fully"
UNLISTED = b"unlisted"
_SPACE = b" "
_STREAM, _NONE = b"stream", b"none"
USUAL = b"stream supervised observed"
_made: dict[bytes, bytes] = {}


def name(
    unix_sockets: UnixSockets = "stream",
    *,
    tracing: bool = True,
    supervised: bool = True,
    observe: Observe = "auto",
    unlisted: bool = False,
) -> bytes:
    """Return the name of the program. Raises if there is none for this machine."""
    arch_of(os.uname().machine)
    decided = supervised and unix_sockets != "all"
    words = [
        (UNTRACED, not tracing),
        (SUPERVISED, decided),
        (OBSERVED, observe != "off"),
        (FULLY, observe == "on"),
        (UNLISTED, unlisted and (decided or observe != "off")),
    ]
    return _SPACE.join([unix_sockets.encode(), *(word for word, there in words if there)])


def notifies(named: bytes) -> bool:
    """Tell whether a program needs somebody who answers."""
    return not {SUPERVISED, OBSERVED}.isdisjoint(named.split())


def observes(named: bytes) -> bool:
    """Tell whether somebody is asked about every change of a file by name."""
    return OBSERVED in named.split()


def unsupervised(named: bytes) -> bytes:
    """Return the name of what takes its place where nobody can answer: sockets by path stay closed then."""
    mode, *words = named.split()
    mode = _NONE if mode == _STREAM and SUPERVISED in words else mode
    return _SPACE.join([mode, *(word for word in words if word not in {SUPERVISED, OBSERVED, FULLY, UNLISTED})])


def program(named: bytes = USUAL) -> bytes:
    """Return the program of that name for this machine."""
    if named not in _made:
        from stockade.platforms.linux import calls
        from stockade.platforms.linux.seccomp import Features, notified_first
        from stockade.platforms.linux.seccomp import program as assemble

        mode, *words = named.split()
        arch = arch_of(os.uname().machine)
        if UNLISTED in words:
            rest = program(_SPACE.join([mode, *(word for word in words if word != UNLISTED)]))
            _made[named] = notified_first(arch, calls.LISTS) + rest
            return _made[named]
        sockets: UnixSockets = mode.decode()  # type: ignore[assignment] # it is checked there
        notify = calls.DECIDED if SUPERVISED in words else frozenset()
        notify |= calls.NAMED if OBSERVED in words else frozenset()
        notify |= calls.OBSERVED if FULLY in words else frozenset()
        features = Features(
            unix_sockets=sockets, tracing=UNTRACED not in words, notify=notify, descriptors=FULLY in words
        )
        _made[named] = assemble(arch, features)
    return _made[named]
