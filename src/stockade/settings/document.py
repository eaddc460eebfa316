"""What one file says: typed values, in which absent stays absent."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeVar, cast
from stockade.settings.flat import flat_path
from stockade.settings.layer import Origin, scope_of
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.settings.catalog import Key
    from stockade.settings.layer import Layer

T = TypeVar("T")


class Document(Value):
    """The settings of one source. ``values`` maps the name of a key to its checked value; ``flat`` is its shape."""

    layer: Layer
    file: str
    values: Mapping[str, object]
    flat: bool = False

    @property
    def scope(self) -> str:
        """As of its origins."""
        return scope_of(self.layer, self.file)

    def get(self, key: Key[T]) -> T | None:
        """Return what this source says about a key, or None if it says nothing."""
        return cast("T | None", self.values.get(key.name))

    def origin(self, key: Key[T]) -> Origin:
        """Return the place where this source sets a key."""
        return Origin(self.layer, self.file, flat_path(key.path) if self.flat else key.path)
