"""The JSON Schema of a settings file, for editors that complete and check while one types.

Derived from the catalogue, so that it cannot drift from what is decoded. It is never stricter than
the reader: an editor must not underline what Stockade accepts. It may be looser, for rules and patterns
have a grammar of their own. Source of truth: JSON Schema, draft 2020-12.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any
from stockade.settings.catalog import ALLOWED_DOMAINS, CATALOG, DENIED_DOMAINS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.settings.catalog import Key

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# What people most often write in the wrong place, and no reading of the setting accepts: a URL for a host.
_PATTERNS: Mapping[str, str] = {key.name: r"^[^\s/]+$" for key in (ALLOWED_DOMAINS, DENIED_DOMAINS)}


def schema() -> dict[str, Any]:
    """Return the schema as a new tree of plain dicts and lists."""
    root = _object() | {"$schema": DIALECT, "title": "Stockade settings"}
    root["properties"]["$schema"] = {
        "type": "string",
        "description": "The schema that editors check this file with.",
    }
    for key in CATALOG.values():
        _place(root, key.name.split("."), _setting(key))
    return root


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _place(root: dict[str, Any], path: list[str], node: dict[str, Any]) -> None:
    for name in path[:-1]:
        root = root["properties"].setdefault(name, _object())
    root["properties"][path[-1]] = node


def _setting(key: Key[object]) -> dict[str, Any]:
    node = _shape(key) | {"description": key.meaning}
    if key.default is not None:
        node["default"] = _json(key.default)
    return node


def _json(default: object) -> object:
    # Copied, so that whoever changes the tree does not change the catalogue.
    if isinstance(default, tuple):
        return list(default)
    return dict(default) if isinstance(default, dict) else default


def _shape(key: Key[object]) -> dict[str, Any]:
    match key.kind:
        case Kind.FLAG:
            return {"type": "boolean"}
        case Kind.NUMBER:
            bounds = {"minimum": key.low, "maximum": key.high} if key.high else {}
            return {"type": "integer"} | bounds
        case Kind.TEXT:
            return {"type": "string", "minLength": 1}
        case Kind.TEXTS:
            pattern = {"pattern": _PATTERNS[key.name]} if key.name in _PATTERNS else {}
            return _texts(pattern)
        case Kind.ARGV:
            return {"type": "array", "items": {"type": "string"}}
        case Kind.TABLE:
            return {"type": "object", "propertyNames": {"minLength": 1}, "additionalProperties": _texts({})}


def _texts(pattern: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "minLength": 1} | dict(pattern)}
