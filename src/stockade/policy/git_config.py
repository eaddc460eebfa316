"""The syntax of git's config files, read as git itself reads it.

``read`` turns the bytes of a file into its settings, in order. It follows no include and judges no value. The rules are
those of ``config.c`` in git, odd ones included:

- Section and key are compared without case. A subsection in quotes keeps its case; in the old form
  ``[section.subsection]`` it is lower-cased.
- ``[section ""]`` is not ``[section]``: git compares the dotted names, and ``core..editor`` is not ``core.editor``.
- Settings before the first section have no section. A section header may have a setting behind it on its line.
- A comment starts with ``#`` or ``;`` outside quotes, and a backslash at its end continues nothing.
- A carriage return counts as white space only; before a line feed it is no character at all.
- A NUL ends the name or the value that it stands in, because git hands both on as C strings.
- White space inside a value stays as written. Git before 2.45 made spaces of it.

Git refuses a file as a whole for one bad line, and so does ``read``, by ``InvalidTextError``.
Source of truth: git-config(1), "Syntax"; ``git_parse_source`` in git's ``config.c``.
"""

from __future__ import annotations

import os

from stockade.annotation import Final, NoReturn
from stockade.errors import InvalidTextError
from stockade.value import Value

_BOM: Final = b"\xef\xbb\xbf"
_LETTERS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_KEY: Final = _LETTERS | frozenset(b"0123456789-")
# What git's own isspace() knows: neither vertical tab nor form feed.
_SPACE: Final = b" \t\r"
_BLANK: Final = _SPACE + b"\n"
_ESCAPES: Final = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"\\": b"\\", b'"': b'"'}


class GitSetting(Value):
    """One setting. ``value`` is ``None`` for a key without ``=``, which git takes for true.

    ``has_subsection`` tells ``[core ""]`` from ``[core]``; ``subsection`` is empty for both.
    """

    section: str
    subsection: str
    key: str
    value: str | None
    has_subsection: bool = False

    @property
    def name(self) -> str:
        """The dotted name by which git knows the setting, such as ``core.hookspath``."""
        within = f"{self.subsection}." if self.has_subsection else ""
        return f"{self.section}.{within}{self.key}" if self.section or self.has_subsection else self.key


def read(text: bytes) -> tuple[GitSetting, ...]:
    """Return the settings of a config file, or raise ``InvalidTextError`` for what git refuses."""
    return tuple(_Reader(text).settings())


class _Reader:
    """A position in a text. The end of the text reads as a line feed, for as long as anything is asked for."""

    def __init__(self, text: bytes) -> None:
        self._text = text.replace(b"\r\n", b"\n")
        self._at = 0

    def settings(self) -> list[GitSetting]:
        found: list[GitSetting] = []
        text, base = self._text, b""
        self._skip_mark()
        while self._at < len(text):
            first = text[self._at : self._at + 1]
            if first in b"#;":
                self._skip_line()
            elif first in _BLANK:
                self._at += 1
            elif first == b"[":
                self._at += 1
                base = self._section() + b"."
            elif text[self._at] in _LETTERS:
                name = base + self._word().lower()
                found.append(_setting(name, self._value()))
            else:
                self._at += 1
                self._refuse("a line starts with something else than a section, a key or a comment")
        return found

    def _skip_mark(self) -> None:
        """Skip a whole byte order mark; git refuses a part of one."""
        if self._text.startswith(_BOM):
            self._at = len(_BOM)
        elif self._text.startswith(_BOM[:1]):
            self._refuse("it starts with a part of a byte order mark")

    def _skip_line(self) -> None:
        end = self._text.find(b"\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    def _next(self) -> bytes:
        found = self._text[self._at : self._at + 1]
        self._at += 1
        return found or b"\n"

    def _word(self) -> bytes:
        text, start = self._text, self._at
        while self._at < len(text) and text[self._at] in _KEY:
            self._at += 1
        return text[start : self._at]

    def _section(self) -> bytes:
        """Return the name in a header, with its subsection; the opening bracket has been read."""
        name = b""
        while True:
            if self._at >= len(self._text):
                self._refuse("a section header does not end")
            found = self._next()
            if found == b"]":
                break
            if found in _BLANK:
                name = name.lower() + self._subsection(found)
                return name or self._refuse("a section header is empty")
            if found[0] not in _KEY and found != b".":
                self._refuse("the name of a section holds a character that no section has")
            name += found
        return name.lower() or self._refuse("a section header is empty")

    def _subsection(self, found: bytes) -> bytes:
        """Return the part in quotes behind a dot; ``found`` is the white space before it."""
        while found in _BLANK:
            if found == b"\n":
                self._refuse("a section header does not end on its line")
            found = self._next()
        if found != b'"':
            self._refuse("a subsection is not in quotes")
        name = b"."
        while (found := self._next()) != b'"':
            if found == b"\\":
                found = self._next()
            if found == b"\n":
                self._refuse("a section header does not end on its line")
            name += found
        if self._next() != b"]":
            self._refuse("a section header does not end behind its subsection")
        return name

    def _value(self) -> bytes | None:
        """Return what stands behind a key, ``None`` if that is nothing."""
        found = self._next()
        while found in b" \t":
            found = self._next()
        if found == b"\n":
            return None
        if found != b"=":
            self._refuse("a key is followed by something else than a value")
        end = self._text.find(b"\n", self._at)
        line = self._text[self._at : len(self._text) if end < 0 else end]
        if not any(special in line for special in (b'"', b"\\", b"#", b";")):
            self._skip_line()
            return line.strip(_SPACE)
        return self._special_value()

    def _special_value(self) -> bytes:
        """Read a value with quotes, escapes or a comment, character by character."""
        value, spaces, quoted = b"", b"", False
        while (found := self._next()) != b"\n" or quoted:
            if found == b"\n":
                self._refuse("a quote does not end on its line")
            if not quoted and found in _SPACE:
                spaces += found if value else b""
                continue
            if not quoted and found in b"#;":
                self._skip_line()
                break
            value, spaces = value + spaces, b""
            if found == b"\\":
                escaped = self._next()
                if escaped != b"\n":
                    value += _ESCAPES.get(escaped) or self._refuse("a backslash stands before an ordinary character")
            elif found == b'"':
                quoted = not quoted
            else:
                value += found
        return value

    def _refuse(self, why: str) -> NoReturn:
        line = self._text.count(b"\n", 0, max(self._at - 1, 0)) + 1
        message = f"line {line} of a git config cannot be read: {why}"
        raise InvalidTextError(message, 'Fix the file: "git config --list --file FILE" refuses it too.')


def _setting(name: bytes, value: bytes | None) -> GitSetting:
    section, dot, rest = _text(name).partition(".")
    if not dot:
        return GitSetting("", "", section, None if value is None else _text(value))
    subsection, has_subsection, key = rest.rpartition(".")
    return GitSetting(section, subsection, key, None if value is None else _text(value), bool(has_subsection))


def _text(written: bytes) -> str:
    return os.fsdecode(written.partition(b"\0")[0])
