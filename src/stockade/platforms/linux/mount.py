"""What a jail looks like, as values: mounts in the order in which they are laid.

Everything of the host is there and read-only; each mount makes an exception for one place.
Rules: paths are absolute and resolved (the kernel refuses a link when the jail is built); a mount never
covers an earlier one, so what surrounds a place comes before it; ``/dev`` and ``/proc`` are the jail's own.
"""

from __future__ import annotations

import os

from stockade.annotation import Literal
from stockade.errors import InvalidTextError
from stockade.value import Value

Operation = Literal[
    "read-only", "writable", "hidden", "guarded", "temporary", "absent", "withheld", "link", "staged", "private"
]

_OPERATIONS = (
    *("read-only", "writable", "hidden", "guarded", "temporary"),
    *("absent", "withheld", "link", "staged", "private"),
)
_OWN = ("/dev", "/proc")


class Mount(Value):
    """One place and how it is shown.

    ``writable``: as the host has it. ``read-only``: seen, never changed. ``hidden``: every access is refused
    with "Permission denied", save what a later mount shows again inside it. ``guarded``: hidden, and where masks can
    be had (see ``warden``) the owner is told who wanted what. ``temporary``: empty, writable, gone with the
    session. ``absent``: on a placeholder, something empty that cannot be written. ``withheld``: the same, and it
    cannot be read either. ``link``: a link, kept as it is. ``staged``: the stage of a repository, on a placeholder.
    ``private``: the session's own version of a directory, whose layers lie in ``source``. In all others ``source``
    shows another place there instead.
    """

    operation: Operation
    target: str
    reason: str = ""
    source: str = ""

    def check(self) -> None:
        """Refuse what could not be meant."""
        if self.operation not in _OPERATIONS:
            message = f"no such mount operation: {self.operation!r}"
            raise InvalidTextError(message, f"use one of {', '.join(_OPERATIONS)}")
        for path in filter(None, (self.target, self.source)):
            if os.path.normpath(path) != path or path[:2] == "//" or path[:1] != "/" or "\0" in path:
                message = f"not an absolute, normal path: {path!r}"
                raise InvalidTextError(message, "resolve the path first")
        if self.target == "/" and self.operation != "writable":
            message = f"the whole tree cannot be {self.operation}"
            raise InvalidTextError(message, "name the directories")
        if any(self.target == own or self.target.startswith(own + "/") for own in _OWN):
            message = f"{self.target} belongs to the jail itself"
            raise InvalidTextError(message, "every command gets a /dev and a /proc of its own")

    def encoded(self) -> tuple[bytes, bytes, bytes]:
        """Return it as the launcher takes it."""
        return self.operation.encode(), os.fsencode(self.target), os.fsencode(self.source)


class JailSpec(Value):
    """All that must be known to build a jail.

    ``confinement`` is the name of the usual seccomp program (see ``program``), none if it is empty; ``filters`` are
    programs that are installed behind it, in order, in every command; ``sockets`` are patterns of the unix sockets
    that a supervisor lets be reached by path, ``denied_sockets`` of those that it never does. ``fresh_processes`` off
    leaves the surroundings' /proc, read-only, if the kernel allows no fresh one, as in many containers: weaker, for
    their processes are seen.
    What belongs to them stays closed, since they live in a user namespace above the commands' own (ptrace(2)).
    ``unlisted`` are directories, each with names that are there but are not listed (see ``listings``).
    ``spare`` off: no first process is kept ready for a next command, since none is expected. ``reuse`` off: each
    command gets a new copy of the mounts, since commands of another jail could hold descriptors of an old one.
    """

    mounts: tuple[Mount, ...]
    filters: tuple[bytes, ...] = ()
    fresh_processes: bool = True
    confinement: bytes = b""
    sockets: tuple[str, ...] = ()
    denied_sockets: tuple[str, ...] = ()
    unlisted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    spare: bool = True
    reuse: bool = True

    def check(self) -> None:
        """Refuse an order in which a later mount would undo an earlier one."""
        surrounding: set[str] = set()
        for mount in self.mounts:
            if mount.target in surrounding:
                message = f"the mount on {mount.target} would cover an earlier one below it"
                raise InvalidTextError(message, "put what surrounds a place before it")
            path = os.path.dirname(mount.target)
            while path not in surrounding:
                surrounding.add(path)
                path = os.path.dirname(path)
