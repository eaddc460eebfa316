"""Settings that an administrator or a fleet has fixed.

When the policy or the flag layer sets any of the locking keys, sandbox settings are locked: they
cannot be edited, and the command line may only tighten them. What loosens is what the catalogue
says, compared with the settings as they are without the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.errors import LockedError
from stockade.settings.catalog import CATALOG, LOCKING
from stockade.settings.layer import Layer, Origin
from stockade.settings.looseness import loosens
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.settings.document import Document
    from stockade.settings.merge import Settings


class Lock(Value):
    """Who locked the settings, and the names of the keys that did it."""

    origin: Origin
    keys: tuple[str, ...]


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
        if loosens(CATALOG[name], value, below):
            message = f"{document.file} would loosen {name}, but sandbox settings are locked by {lock.origin}"
            raise LockedError(message, _hint(lock))


def _hint(lock: Lock) -> str:
    return f"Ask the administrator of this machine to change {lock.origin.file}."
