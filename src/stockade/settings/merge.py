"""Layers of documents become one set of settings, each value with its origin.

A scalar: the highest layer that sets it. A list: concatenated, highest first, duplicates dropped,
order kept; what names places is a duplicate only where it means the same place. A table: per key.
Merging is associative, so that layers may be merged in any grouping.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeVar, cast
from stockade.settings.catalog import CATALOG, Kind
from stockade.settings.json_text import member
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stockade.settings.catalog import Key
    from stockade.settings.document import Document

T = TypeVar("T")
DEFAULT = Origin(Layer.DEFAULTS)


class Settings(Value):
    """Merged settings: for each key that somebody set, its entries, the winning one first.

    A scalar has one entry, a list one per item, a table one per (key, text) pair.
    """

    entries: Mapping[str, tuple[Sourced[object], ...]]

    def get(self, key: Key[T]) -> T:
        """Return the effective value of a scalar, its default if nobody set it."""
        return self.find(key).value

    def find(self, key: Key[T]) -> Sourced[T]:
        """Return the effective value of a scalar with its origin."""
        entries = cast("tuple[Sourced[T], ...]", self.entries.get(key.name, ()))
        return entries[0] if entries else Sourced(key.default, DEFAULT)

    def items(self, key: Key[tuple[str, ...]]) -> tuple[Sourced[str], ...]:
        """Return the items of a list, each with its origin."""
        return cast("tuple[Sourced[str], ...]", self.entries.get(key.name, ()))

    def pairs(self, key: Key[dict[str, tuple[str, ...]]]) -> tuple[Sourced[tuple[str, str]], ...]:
        """Return the (key, text) pairs of a table, each with its origin."""
        return cast("tuple[Sourced[tuple[str, str]], ...]", self.entries.get(key.name, ()))

    def __or__(self, lower: Settings) -> Settings:
        """Merge with settings of a lower layer."""
        names = [*self.entries, *(name for name in lower.entries if name not in self.entries)]
        return Settings({name: _join(CATALOG[name], self, lower) for name in names})


EMPTY = Settings({})


def settings_of(document: Document) -> Settings:
    """Return what one document says, as settings."""
    return Settings({name: tuple(_entries(document, CATALOG[name], value)) for name, value in document.values.items()})


def merge(documents: Iterable[Document]) -> Settings:
    """Merge documents, the highest first."""
    merged = EMPTY
    for document in documents:
        merged |= settings_of(document)
    return merged


def _entries(document: Document, key: Key[object], value: object) -> Iterable[Sourced[object]]:
    origin = document.origin(key)
    if key.kind is Kind.TEXTS:
        return _numbered(cast("tuple[str, ...]", value), origin)
    if key.kind is Kind.TABLE:
        table = cast("dict[str, tuple[str, ...]]", value)
        pairs = dict.fromkeys((name, text) for name, texts in table.items() for text in texts)
        return (Sourced(pair, origin.but(path=member(origin.path, pair[0]))) for pair in pairs)
    return (Sourced(value, origin),)


def _numbered(items: tuple[str, ...], origin: Origin) -> Iterable[Sourced[str]]:
    first = {item: number for number, item in reversed(tuple(enumerate(items)))}
    return (Sourced(item, origin.but(path=f"{origin.path}[{first[item]}]")) for item in dict.fromkeys(items))


def _join(key: Key[object], higher: Settings, lower: Settings) -> tuple[Sourced[object], ...]:
    mine, theirs = higher.entries.get(key.name, ()), lower.entries.get(key.name, ())
    if key.kind not in (Kind.TEXTS, Kind.TABLE):
        return mine or theirs

    def sense(entry: Sourced[object]) -> object:
        # What the policy denies is opened again by the policy alone; so its rules stay its own.
        return (entry.value, entry.origin.scope, entry.origin.is_policy) if key.placed else entry.value

    seen = {sense(entry) for entry in mine}
    return mine + tuple(entry for entry in theirs if sense(entry) not in seen)
