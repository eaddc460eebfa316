"""What the author of a key that is not in the catalogue may have meant.

A misspelt key would switch a rule off, so a good guess matters. Imported only once there is one.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final

from stockade.settings.catalog import CATALOG
from stockade.value import Value

_SIMILAR: Final = 0.6  # worth proposing
_MISSPELT: Final = 0.85  # hardly anything else


class Advice(Value):
    """What to tell the author, and whether the key is surely one of ours gone wrong."""

    hint: str
    misspelt: bool


def advise(name: str, section: str) -> Advice:
    """Return advice on an unknown key in a section (dotted, "" for the top level)."""
    full = f"{section}.{name}" if section else name
    siblings = _members(section)
    if sibling := _same(name, siblings):
        return Advice(f"Did you mean {sibling}?", misspelt=True)
    if dotted := _same(full, _paths()) or ("." in name and _same(name, _paths())):
        return Advice(f"Write it as nested objects: {_as_nested(dotted)}.", misspelt=True)
    if elsewhere := [path for path in _paths() if _leaf(path).lower() == name.lower()]:
        return Advice(f"It belongs at {' or '.join('$.' + path for path in elsewhere)}.", misspelt=True)
    return _nearest(name, siblings)


def is_misspelling(name: str, candidates: list[str]) -> bool:
    """Tell whether a name is hardly anything else than one of these, mistyped."""
    return _closest(name, candidates)[1] >= _MISSPELT


def _nearest(name: str, siblings: list[str]) -> Advice:
    near, ratio = _closest(name, siblings)
    far, far_ratio = _closest(name, list({_leaf(path): None for path in CATALOG}))
    if far_ratio > ratio and far_ratio >= _MISSPELT:
        paths = " or ".join(f"$.{path}" for path in CATALOG if _leaf(path) == far)
        return Advice(f"Did you mean {paths}?", misspelt=True)
    if ratio >= _SIMILAR:
        return Advice(f"Did you mean {near}?", misspelt=ratio >= _MISSPELT)
    return Advice(f"Known here: {', '.join(siblings)}.", misspelt=False)


def _closest(name: str, candidates: list[str]) -> tuple[str, float]:
    matcher = SequenceMatcher(b=name[:100].lower(), autojunk=False)
    best, best_ratio = "", 0.0
    for candidate in candidates:
        matcher.set_seq1(candidate.lower())
        ratio = matcher.ratio()
        if ratio > best_ratio:
            best, best_ratio = candidate, ratio
    return best, best_ratio


def _paths() -> list[str]:
    """Every setting and every section, dotted."""
    names = list(CATALOG)
    sections = {name.rpartition(".")[0]: None for name in names}
    return [*names, *sections]


def _members(section: str) -> list[str]:
    """Return the names that may stand in a section, in the order of the catalogue."""
    prefix = f"{section}." if section else ""
    return list({path.removeprefix(prefix).split(".")[0]: None for path in CATALOG if path.startswith(prefix)})


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _same(name: str, candidates: list[str]) -> str:
    return next((candidate for candidate in candidates if candidate.lower() == name.lower()), "")


def _as_nested(path: str) -> str:
    text = "..."
    for part in reversed(path.split(".")):
        text = f'{{"{part}": {text}}}'
    return text
