"""What may count of a document that nobody has trusted: only what tightens.

Compared with the settings as they would be without it, from all other layers: a project's local
file stands above the user's own, so looking upwards alone would let it undo what the user set.
A value in the loose direction never counts, even where it repeats what holds anyway: otherwise two
untrusted files could vouch for each other.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.settings.catalog import AUTO_ALLOW, CATALOG, ENABLED
from stockade.settings.looseness import is_loose, loosens
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.settings.document import Document
    from stockade.settings.merge import Settings


class Tightened(Value):
    """What is left of a document, and the names of the keys whose loss makes a difference."""

    document: Document
    dropped: tuple[str, ...]


def tighten(document: Document, without: Settings) -> Tightened:
    """Return what an untrusted document may say, given the settings without it."""
    said = document.values.items()
    kept = {name: value for name, value in said if not is_loose(CATALOG[name], value, without)}
    if _would_end_prompts(kept.get(ENABLED.name), without):
        kept[AUTO_ALLOW.name] = False
    dropped = tuple(name for name, value in said if loosens(CATALOG[name], value, without, scope=document.scope))
    return Tightened(document.but(values=kept), dropped)


def _would_end_prompts(enabled: object, without: Settings) -> bool:
    """Tell whether to enable the sandbox would also let commands run unasked, which nobody trusted wants."""
    return enabled is True and not without.get(ENABLED) and AUTO_ALLOW.name not in without.entries
