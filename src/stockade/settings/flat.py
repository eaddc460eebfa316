"""The flat shape: the settings file of the `srt` tool, taken by ``--settings``.

Such a file has the members of our ``sandbox`` object at its top level. Names with the same meaning
are the same here and there (srt 0.0.83); what Stockade does not have is an unknown key like any
other. A file is flat or nested, never both.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.settings.json_text import JsonObject

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Top-level members that make a file flat: those that both tools know.
FLAT: Final = frozenset(
    {
        "enableWeakerNestedSandbox",
        "filesystem",
        "ignoreViolations",
        "mandatoryDenySearchDepth",
        "network",
        "ripgrep",
    }
)
_NESTED: Final = frozenset({"permissions", "sandbox"})


def is_flat(names: Iterable[str]) -> bool:
    """Tell whether a file with these top-level names has the flat shape, at least in part."""
    return not FLAT.isdisjoint(names)


def is_mixed(names: Iterable[str]) -> bool:
    """Tell whether these top-level names belong to both shapes."""
    given = set(names)
    return is_flat(given) and not _NESTED.isdisjoint(given)


def unflatten(raw: JsonObject) -> JsonObject:
    """Return the nested shape of a flat file."""
    top = JsonObject(member for member in raw if member[0] == "$schema")
    inner = JsonObject(member for member in raw if member[0] != "$schema")
    return JsonObject([*top, ("sandbox", inner)])


def flat_path(path: str) -> str:
    """Return the JSON path that a setting has in a flat file, which has no ``sandbox`` object."""
    return "$" + path.removeprefix("$").removeprefix(".sandbox")
