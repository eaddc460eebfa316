"""What the walls are to do about files, as a value: mounts in order, each with its reason.

Everything starts read-only. A mount changes that for its place and all below, up to the next mount; what surrounds a
place comes before it. A plan is made by ``stockade.filesystem.planning``, printed by ``stockade explain --plan``,
compared to see whether anything changed, and carried out by a platform.

A plan with ``refusals`` must not be carried out: something that the rules ask for could not be enforced.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.enumeration import Enum
from stockade.escape import escape
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.placeholder import Shape


class Operation(Enum):
    """What a mount does to its place.

    ``PIN`` binds a place onto itself in the mode that it has, so that it can be neither renamed nor removed; ``LINK``
    does the same to a symbolic link, which still leads where it led. ``PRIVATE`` shows the session's own version of a
    directory: what the host has there, and over it what commands write. ``ABSENT`` keeps a name missing there,
    and ``WITHHELD`` one that must not be read either.
    """

    READ_ONLY = "read-only"
    WRITABLE = "writable"
    HIDDEN = "hidden"
    PIN = "pin"
    LINK = "link"
    PRIVATE = "private"
    ABSENT = "absent"
    WITHHELD = "withheld"


class Mount(Value):
    """One place and what is done to it. ``reason`` is one line of words."""

    operation: Operation
    path: str
    reason: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f'{self.operation.value:<9} "{escape(self.path)}": {self.reason}'


class Placeholder(Value):
    """Something that must not come into being: ``path`` is missing, its parent is a writable directory.

    ``root`` is the mount that makes the parent writable. ``content`` is what a program that looks must find there; if
    it is empty nothing is ever read. ``shape`` is what keeps the name best (``stockade.placeholder``).
    ``hidden``: a rule denies that it is read, too. ``staged``: commands may make the repository that would be there,
    and the host gets it when they have ended.
    """

    path: str
    reason: str
    root: str
    content: str = ""
    shape: Shape = "node"
    hidden: bool = False
    staged: bool = False

    def __str__(self) -> str:
        """Return it as one line."""
        return f'{"staged" if self.staged else "absent":<9} "{escape(self.path)}": {self.reason}'


class Plan(Value):
    """All of it. ``mounts`` and ``placeholders`` are sorted by path, what surrounds a place before it.

    ``made`` are directories that are missing, and must be there for the placeholders in them.
    """

    mounts: tuple[Mount, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    notes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the plan as people read it."""
        yield f'{Operation.READ_ONLY.value:<9} "/": everything, but for what follows'
        yield from map(str, self.mounts)
        yield from (f'made      "{escape(path)}": a setting lifts something in it' for path in self.made)
        yield from map(str, self.placeholders)
        yield from (f"note      {note}" for note in self.notes)
        yield from (f"refused   {refusal}" for refusal in self.refusals)

    def __str__(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines())
