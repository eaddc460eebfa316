"""Settings that an administrator or a fleet has fixed.

When the policy or the flag layer sets any of the locking keys, sandbox settings are locked: they
cannot be edited, and the command line may only tighten them. What loosens is what the catalogue
says, compared with the settings as they are without the command line. In every layer below the one
that locks, the ways out of the walls (``LEAVING``) do not count: under a lock of the policy not in the
flag layer either, since any user can set the variable that names its file. What opens a wall here or
there still merges, and the administrator's denies hold against it. Who locks so that each command is asked
for (``autoAllowBashIfSandboxed``: false) means it: below, a rule that allows every command does not count.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import LockedError
from stockade.escape import escape
from stockade.settings.catalog import ALLOW, AUTO_ALLOW, CATALOG, LEAVING, LOCKING
from stockade.settings.layer import Layer, Origin
from stockade.settings.looseness import is_loose, loosens
from stockade.settings.merge import EMPTY
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.settings.document import Document
    from stockade.settings.merge import Settings


class Lock(Value):
    """Who locked the settings, and the names of the keys that did it. ``asking``: who wants each command asked for."""

    origin: Origin
    keys: tuple[str, ...]
    asking: Origin | None = None


class Confined(Value):
    """What a lock leaves of a document, and the names of the keys that it takes away."""

    document: Document
    dropped: tuple[str, ...]


def find_lock(documents: Iterable[Document]) -> Lock | None:
    """Return the lock that these documents (highest first) put on the sandbox settings, if any."""
    locking = [document for document in documents if document.layer in (Layer.POLICY, Layer.FLAG)]
    setters = [
        (key.name, document.origin(key)) for document in locking for key in LOCKING if key.name in document.values
    ]
    if not setters:
        return None
    speaks = next((document for document in locking if document.get(AUTO_ALLOW) is not None), None)
    asking = speaks.origin(AUTO_ALLOW) if speaks is not None and not speaks.get(AUTO_ALLOW) else None
    return Lock(setters[0][1], tuple(dict.fromkeys(name for name, _ in setters)), asking)


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
    if lock is None:
        return Confined(document, ())
    inside = _without_ways_out(document, lock)
    asked = _without_free_hand(inside.document, lock)
    return Confined(asked.document, inside.dropped + asked.dropped)


def _without_ways_out(document: Document, lock: Lock) -> Confined:
    if document.layer >= lock.origin.layer:
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


def _without_free_hand(document: Document, lock: Lock) -> Confined:
    """Take away the rules that allow every command, where a higher layer wants each asked for."""
    rules = document.get(ALLOW) or ()
    free = tuple(rule for rule in rules if _allows_every_command(rule))
    if lock.asking is None or document.layer >= lock.asking.layer or not free:
        return Confined(document, ())
    kept = tuple(rule for rule in rules if rule not in free)
    names = tuple(f'{ALLOW.name} "{escape(rule)}"' for rule in dict.fromkeys(free))
    return Confined(document.but(values={**document.values, ALLOW.name: kept}), names)


def _allows_every_command(rule: str) -> bool:
    """Tell whether a rule is ``Bash``, or ``Bash(*)`` in any spelling: the words of its pattern are all stars."""
    if not rule.startswith("Bash"):
        return False
    rest = rule.removeprefix("Bash")
    content = rest[1:-1] if rest[:1] == "(" else rest[1:] if rest[:1] == ":" else rest
    words = "".join(content.removesuffix(":*").split())
    return not rest or (rest[0] in "(:" and bool(words) and not words.strip("*"))


def _hint(lock: Lock) -> str:
    return f"Ask the administrator of this machine to change {escape(lock.origin.file)}."
