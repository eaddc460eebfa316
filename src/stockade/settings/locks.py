"""Settings that an administrator or a fleet has fixed.

When the policy or the flag layer sets any of the locking keys, sandbox settings are locked: they
cannot be edited, and the command line may only tighten them. What loosens is what the catalogue
says, compared with the settings as they are without the command line. In every layer below the one
that locks, the ways out of the walls (``LEAVING``) do not count: under a lock of the policy not in the
flag layer either, since any user can set the variable that names its file. What opens a wall here or
there still merges, and the administrator's denies hold against it.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import LockedError
from stockade.escape import escape
from stockade.settings.catalog import CATALOG, LEAVING, LOCKING
from stockade.settings.layer import Layer, Origin
from stockade.settings.looseness import is_loose, loosens
from stockade.settings.merge import EMPTY
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.settings.document import Document
    from stockade.settings.merge import Settings


class Lock(Value):
    """Who locked the settings, and the names of the keys that did it."""

    origin: Origin
    keys: tuple[str, ...]


class Confined(Value):
    """What a lock leaves of a document, and the names of the keys that it takes away."""

    document: Document
    dropped: tuple[str, ...]


def find_lock(documents: Iterable[Document]) -> Lock | None:
    """Return the lock that these documents (highest first) put on the sandbox settings, if any."""
    setters = [
        (key.name, document.origin(key))
        for document in documents
        if document.layer in (Layer.POLICY, Layer.FLAG)
        for key in LOCKING
        if key.name in document.values
    ]
    return Lock(setters[0][1], tuple(dict.fromkeys(name for name, _ in setters))) if setters else None


def require_unlocked(lock: Lock | None) -> None:
    """Raise LockedError if the sandbox settings cannot be edited."""
    if lock is not None:
        message = f"sandbox settings are locked by {lock.origin}"
        raise LockedError(message, _hint(lock))


def admit_command_line(document: Document, lock: Lock | None, below: Settings) -> None:
    """Raise LockedError if a command-line document would loosen settings that are locked.

    ``below`` is what holds without the command line; to repeat it is no loosening.
    """
    if lock is None:
        return
    for name, value in document.values.items():
        if loosens(CATALOG[name], value, below, scope=document.scope):
            who = escape(document.file) or "the command line"
            message = f"{who} would loosen {name}, but sandbox settings are locked by {lock.origin}"
            raise LockedError(message, _hint(lock))


def confine(document: Document, lock: Lock | None) -> Confined:
    """Return a document without the ways out of the walls, unless its layer is the lock's or a higher one.

    So the command line is spared: what it may not say is refused aloud.
    """
    if lock is None or document.layer >= lock.origin.layer:
        return Confined(document, ())
    dropped = tuple(
        key.name
        for key in LEAVING
        if key.name in document.values and is_loose(CATALOG[key.name], document.values[key.name], EMPTY)
    )
    if not dropped:
        return Confined(document, ())
    kept = {name: value for name, value in document.values.items() if name not in dropped}
    return Confined(document.but(values=kept), dropped)


def _hint(lock: Lock) -> str:
    return f"Ask the administrator of this machine to change {escape(lock.origin.file)}."
