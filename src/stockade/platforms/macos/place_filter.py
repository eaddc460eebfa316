"""Filters that mean places, in every spelling that macOS may have for them.

- ``/tmp``, ``/var`` and ``/etc`` are links into ``/private``. The kernel sees what they lead to; both are written, so
  that a profile is right wherever it was made.
- A name with accents may be stored composed or decomposed; both are written.
- A name that does not exist may be made in capitals, which is the same name on most disks of macOS: where something
  must not be made, the last name is compared without case.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.path_regex import END, body_of, escaped, folded, regex_of, whole
from stockade.platforms.macos.sexpr import Quoted
from stockade.policy.path_pattern import is_at_or_below, names_of

if TYPE_CHECKING:
    from stockade.platforms.macos.sexpr import Form
    from stockade.policy.path_pattern import PathPattern

#: By this way the data volume shows every file under a second path.
SECOND_PATH: Final = "/System/Volumes/Data"
_PRIVATE: Final = "/private"
_ALIASES: Final = ("/tmp", "/var", "/etc")  # noqa: S108 - names, nothing is put there


def spellings(path: str) -> tuple[str, ...]:
    """Return a path in every spelling, the given one first."""
    return tuple(dict.fromkeys(form for each in _normal_forms(path) for form in _aliases(each)))


def at(path: str) -> tuple[Form, ...]:
    """Return filters for one place and nothing below it."""
    return tuple(("literal", Quoted(each)) for each in spellings(path))


def at_or_below(path: str) -> tuple[Form, ...]:
    """Return filters for a place and all below it."""
    return tuple(("subpath", Quoted(each)) for each in spellings(path))


def covered(pattern: PathPattern) -> tuple[Form, ...]:
    """Return filters for what a pattern covers."""
    if not pattern.is_glob:
        return at_or_below(pattern.path)
    prefixes = spellings(pattern.static_prefix)
    return tuple(regex(regex_of(pattern.moved_to(each))) for each in prefixes)


def made(path: str) -> tuple[Form, ...]:
    """Return filters for what must not be made, in whatever case, and all below it."""
    found: list[Form] = list(at_or_below(path))
    for each in spellings(path):
        *above, name = names_of(each) or ("",)
        if name.isascii() and name.upper() != name.lower():
            found.append(regex(f"^{body_of(above)}/{folded(name)}{END}"))
    return tuple(found)


def within(path: str) -> str:
    """Return the beginning of a regular expression for what is below a place."""
    return "^" if path == "/" else f"^{escaped(path)}"


def regex(text: str) -> Form:
    """Return the filter of a regular expression."""
    return ("regex", Quoted(whole(text)))


def any_of(filters: tuple[Form, ...]) -> Form:
    """Return one filter that is any of these."""
    return filters[0] if len(filters) == 1 else ("require-any", *filters)


def _aliases(path: str) -> tuple[str, ...]:
    for alias in _ALIASES:
        if is_at_or_below(path, alias):
            return (path, f"{_PRIVATE}{path}")
        if is_at_or_below(path, f"{_PRIVATE}{alias}"):
            return (path, path.removeprefix(_PRIVATE))
    return (path,)


def _normal_forms(path: str) -> tuple[str, ...]:
    if path.isascii():
        return (path,)
    import unicodedata

    return (path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path))
