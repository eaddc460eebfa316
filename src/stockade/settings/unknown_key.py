"""What the author of a key that is not in the catalogue may have meant.

A misspelt key would switch a rule off, so a good guess matters.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.settings.catalog import CATALOG

_SIMILAR: Final = 0.6  # worth proposing
_MISSPELT: Final = 0.85  # hardly anything else
_LONGEST: Final = 100  # of a name that is compared; ours have 30 at most


def advise(name: str, section: str) -> str:
    """Return what to do about an unknown key in a section (dotted, "" for the top level)."""
    siblings = _members(section)
    if sibling := _same(name, siblings):
        return f"Did you mean {sibling}?"
    full = f"{section}.{name}" if section else name
    if dotted := _same(full, _paths()) or ("." in name and _same(name, _paths())):
        return f"Write it as nested objects: {_as_nested(dotted)}."
    if elsewhere := _homonyms(name):
        return f"It belongs at {' or '.join('$.' + path for path in elsewhere)}."
    return _nearest(name, siblings)


def is_misspelling(name: str, section: str) -> bool:
    """Tell whether a key is hardly anything else than a member of its section, mistyped."""
    return bool(_closest(name, _members(section), _MISSPELT))


def is_misplaced(name: str) -> bool:
    """Tell whether a key is the name of a setting that belongs elsewhere."""
    return bool(_homonyms(name)) or bool("." in name and _same(name, _paths()))


def _nearest(name: str, siblings: list[str]) -> str:
    if near := _closest(name, siblings, _MISSPELT):
        return f"Did you mean {near}?"
    if far := _closest(name, [_leaf(path) for path in CATALOG], _MISSPELT):
        return f"Did you mean {' or '.join('$.' + path for path in _homonyms(far))}?"
    if near := _closest(name, siblings, _SIMILAR):
        return f"Did you mean {near}?"
    return f"Known here: {', '.join(siblings)}."


def _closest(name: str, candidates: list[str], cutoff: float) -> str:
    """Return the candidate most like a name, or "" if none is at least so similar."""
    short = name[:_LONGEST].lower()
    possible = [candidate for candidate in candidates if _bound(short, candidate.lower()) >= cutoff]
    if not possible:
        return ""
    from difflib import SequenceMatcher  # slow to import, and most names are nothing like ours

    rated = [(SequenceMatcher(None, candidate.lower(), short, False).ratio(), candidate) for candidate in possible]
    ratio, best = max(rated, key=lambda pair: pair[0])
    return best if ratio >= cutoff else ""


def _bound(one: str, other: str) -> float:
    """Return the most that the similarity of two texts can be, from the letters that they share."""
    shared = sum(min(one.count(letter), other.count(letter)) for letter in set(other))
    return 2 * shared / (len(one) + len(other))


def _paths() -> list[str]:
    """Every setting and every section, dotted."""
    return [*CATALOG, *{name.rpartition(".")[0]: None for name in CATALOG}]


def _members(section: str) -> list[str]:
    """Return the names that may stand in a section, in the order of the catalogue."""
    prefix = f"{section}." if section else ""
    return list({path.removeprefix(prefix).split(".")[0]: None for path in CATALOG if path.startswith(prefix)})


def _homonyms(name: str) -> list[str]:
    return [path for path in _paths() if _leaf(path).lower() == name.lower()]


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _same(name: str, candidates: list[str]) -> str:
    return next((candidate for candidate in candidates if candidate.lower() == name.lower()), "")


def _as_nested(path: str) -> str:
    text = "..."
    for part in reversed(path.split(".")):
        text = f'{{"{part}": {text}}}'
    return text
