"""Which values make settings looser: the one question behind trust and locks.

The catalogue says in which direction each key loosens. `is_loose` looks at that direction alone;
`loosens` compares with what holds already, so that to repeat it loosens nothing.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, cast
from stockade.settings.catalog import Kind, Loosens

if TYPE_CHECKING:
    from stockade.settings.catalog import Key
    from stockade.settings.merge import Settings


def is_loose(key: Key[object], value: object, than: Settings) -> bool:
    """Tell whether a value lies in the loose direction. Only a number depends on the other settings."""
    match key.loosens:
        case Loosens.NEVER:
            return False
        case Loosens.WHEN_TRUE:
            return value is True
        case Loosens.WHEN_FALSE:
            return value is False
        case Loosens.WHEN_LESS:
            return cast("int", value) < cast("int", than.get(key))
        case Loosens.ALWAYS:
            return key.kind not in (Kind.TEXTS, Kind.TABLE) or bool(_items(key.kind, value))


def loosens(key: Key[object], value: object, than: Settings, *, scope: str = "") -> bool:
    """Tell whether setting a key to this value, on top of these settings, would loosen them.

    ``scope`` is where it is set: the same path, written in two projects, names two places.
    """
    if not is_loose(key, value, than):
        return False
    if key.kind not in (Kind.TEXTS, Kind.TABLE):
        return value != than.get(key)
    entries = than.entries.get(key.name, ())
    there = {entry.value for entry in entries if not key.placed or entry.origin.scope == scope}
    return not there.issuperset(_items(key.kind, value))


def _items(kind: Kind, value: object) -> set[object]:
    if kind is Kind.TEXTS:
        return set(cast("tuple[str, ...]", value))
    table = cast("dict[str, tuple[str, ...]]", value)
    return {(name, text) for name, texts in table.items() for text in texts}
