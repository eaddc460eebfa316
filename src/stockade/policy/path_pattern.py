r"""Texts that name places: ``~/notes``, ``./out``, ``/srv/*.log``, ``**/.env``.

Rules of the language:

- ``~`` and ``~/x`` start at home, ``/x`` is absolute, ``//x`` too, anything else starts at the session's
  working directory. With a ``base`` (rules in the manner of Claude Code), ``/x`` starts at that base.
- ``*`` is any run of characters of one name, ``?`` one character, ``[a-z]`` and ``[!a]`` (or ``[^a]``) one of
  a set; ``**`` as a whole name is any number of names, none included. A leading dot is not special.
- A backslash makes the next character part of a name, so that every name can be written.
- A pattern covers what it matches and everything below. So ``dir/**``, ``dir/`` and ``dir`` are the same.
- ``.`` and empty names vanish; ``..`` takes away the name before it, as text, before links are looked at
  (a rule means the same place whatever links are there). ``..`` after a wildcard has no meaning and is refused.
- Names are compared by character and by case. Bytes that are not UTF-8 travel as Python's surrogate escapes.

Nothing here looks at a disk: links are the matter of ``stockade.policy.places``.
Matching costs at most length of pattern times length of path, whatever the pattern.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.name_glob import DEEP, Glob, elements_of, escaped, refusal
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The longest text that is taken as a pattern; the kernel's limit for a path.
LONGEST: Final = 4096


Part: TypeAlias = "str | Glob"


class PathPattern(Value):
    """A place, or a family of places.

    ``text`` is as somebody wrote it. ``path`` is absolute and normalised: for a literal pattern the place itself,
    for a glob the whole pattern with the names in it escaped. ``parts`` are its names and wildcards.
    """

    text: str
    path: str
    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str, *, cwd: str, home: str, base: str | None = None) -> PathPattern:
        """Read a pattern, or raise ``InvalidTextError`` that shows it."""
        written = spelled(text)
        if len(written) > LONGEST:
            raise refusal(written, f"is longer than {LONGEST} characters", "Name a directory above it.")
        start, rest = _start(written, cwd, home, base)
        parts: list[Part] = [*names_of(start)]
        for piece in rest.split("/"):
            _append(parts, piece, written)
        while parts and parts[-1] == DEEP:
            parts.pop()
        return cls._of(written, tuple(parts))

    @classmethod
    def literal(cls, path: str) -> PathPattern:
        """Return the pattern for one absolute path, all of whose characters are names."""
        names = _absolute(path, "the path")
        return cls._of(joined(escaped(name) for name in names), tuple(names))

    @classmethod
    def _of(cls, text: str, parts: tuple[Part, ...]) -> PathPattern:
        if any(isinstance(part, Glob) for part in parts):
            return cls(text, joined(part.text if isinstance(part, Glob) else escaped(part) for part in parts), parts)
        return cls(text, joined(str(part) for part in parts), parts)

    def __str__(self) -> str:
        """Return the text as it was written."""
        return self.text

    @property
    def is_glob(self) -> bool:
        """Whether it may match more than one place."""
        return len(self._static) < len(self.parts)

    @property
    def static_prefix(self) -> str:
        """The longest leading path without wildcards; of a literal pattern the place itself."""
        return joined(self._static)

    @property
    def glob_parts(self) -> tuple[Part, ...]:
        """What follows the static prefix."""
        return self.parts[len(self._static) :]

    @property
    def _static(self) -> tuple[str, ...]:
        names: list[str] = []
        for part in self.parts:
            if isinstance(part, Glob):
                break
            names.append(part)
        return tuple(names)

    def moved_to(self, prefix: str) -> PathPattern:
        """Return the same pattern with another (absolute, literal) static prefix."""
        return self._of(self.text, (*names_of(prefix), *self.glob_parts))

    def matches_exactly(self, path: str) -> bool:
        """Tell whether the pattern matches this very path (absolute, normalised), not one above it."""
        names = names_of(path)
        return self._deepest(names) == len(names)

    def depth_on(self, path: str) -> int | None:
        """Return how many names the deepest match among ``path`` and the directories above it has.

        ``None`` if the pattern does not cover the path. ``path`` is absolute and normalised.
        """
        if self.is_glob:
            return self._deepest(names_of(path))
        return len(self.parts) if is_at_or_below(path, self.path) else None

    def _deepest(self, names: list[str]) -> int | None:
        # All ways to match are followed at once: the set of parts that may come next, name by name.
        states = self._reach({0})
        deepest = 0 if len(self.parts) in states else None
        for depth, name in enumerate(names, start=1):
            states = self._reach({after for state in states for after in self._after(state, name)})
            if not states:
                break
            if len(self.parts) in states:
                deepest = depth
        return deepest

    def _after(self, state: int, name: str) -> tuple[int, ...]:
        if state == len(self.parts):
            return ()
        part = self.parts[state]
        if isinstance(part, str):
            return (state + 1,) if part == name else ()
        if part == DEEP:
            return (state,)
        return (state + 1,) if part.matches(name) else ()

    def _reach(self, states: set[int]) -> set[int]:
        # Two ** never follow each other, so that one step past each is enough.
        return states | {state + 1 for state in states if state < len(self.parts) and self.parts[state] == DEEP}


def spelled(text: str) -> str:
    """Return the text as the operating system would hand that name back, or raise ``InvalidTextError``.

    One name has one spelling: surrogate escapes that amount to valid UTF-8 become the characters they stand for.
    """
    if not text:
        raise refusal(text, "is empty", "Write . for the working directory.")
    if "\0" in text:
        raise refusal(text, "contains a NUL character", "No file name can: take it out.")
    try:
        return os.fsdecode(os.fsencode(text))
    except UnicodeError:
        raise refusal(text, "contains half a surrogate pair", "No file name can: take it out.") from None


def names_of(path: str) -> list[str]:
    """Return the names in an absolute, normalised path; none for ``/``."""
    return [name for name in path.split("/") if name]


def is_at_or_below(path: str, place: str) -> bool:
    """Tell whether ``path`` is ``place`` or lies below it (both absolute and normalised)."""
    return place in (path, "/") or path.startswith(f"{place}/")


def joined(names: Iterable[str]) -> str:
    """Return the absolute path made of these names."""
    return "/" + "/".join(names)


def _absolute(path: str, what: str) -> list[str]:
    """Return the names in an absolute path, ``.`` and ``..`` taken out as text."""
    if not path.startswith("/"):
        message = f'{what} "{escape(path)}" is not absolute'
        raise InvalidTextError(message, "Give a path that starts with a slash.")
    names: list[str] = []
    for name in spelled(path).split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names


def _start(text: str, cwd: str, home: str, base: str | None) -> tuple[str, str]:
    """Return the directory that the text starts from and the rest of it."""
    if text == "~" or text.startswith("~/"):
        return joined(_absolute(home, "the home directory")), text[1:]
    if text.startswith("~"):
        raise refusal(text, "names the home of another user", "Write that directory out, or ./~name for a file.")
    if base is not None and text.startswith("/") and not text.startswith("//"):
        return joined(_absolute(base, "the base directory")), text
    if text.startswith("/"):
        return "/", text
    return joined(_absolute(cwd, "the working directory")), text


def _append(parts: list[Part], piece: str, whole: str) -> None:
    if piece in ("", "."):
        return
    if piece == "..":
        if any(isinstance(part, Glob) for part in parts):
            raise refusal(whole, "has .. after a wildcard", "Write the directory that is meant.")
        del parts[-1:]
        return
    if piece == "**":
        if not parts or parts[-1] != DEEP:
            parts.append(DEEP)
        return
    tokens = elements_of(piece, whole)
    name = "".join(token for token in tokens if isinstance(token, str))
    if len(name) < len(tokens):
        parts.append(Glob(piece, tokens))
    elif name in (".", ".."):
        raise refusal(whole, "escapes the dots of . or ..", "Write them without backslashes.")
    else:
        parts.append(name)
