"""Edits of a settings file, planned as text.

Pure. An edit replaces, inserts or cuts a span of the text and never writes the rest anew: order, indentation, line
ends, escapes and spellings of numbers stay as their author left them. Writing is the local file's business.
"""

from __future__ import annotations

import json

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.errors import InvalidTextError, SettingsError
from stockade.escape import escape
from stockade.settings.catalog import Kind
from stockade.settings.problem import Problem
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade.settings.catalog import Key

NEW: Final = b"{}\n"  # what a file that is not there counts as
_BLANK: Final = " \t\r\n"
_MARK: Final = "\ufeff"  # some editors begin a file with it


class Edit(Value):
    """One change to one setting: a ``SetValue``, an ``AddItems`` or a ``RemoveItems``."""

    key: Key[Any]


class SetValue(Edit):
    """Give a setting that holds one value another value."""

    value: bool | int | str | tuple[str, ...]

    def check(self) -> None:
        """Refuse a value of the wrong kind; its range is judged when the result is decoded."""
        kinds = {Kind.FLAG: bool, Kind.NUMBER: int, Kind.TEXT: str, Kind.ARGV: tuple}
        if type(self.value) is not kinds.get(self.key.kind):
            message = f"{self.key.name} cannot be set to {self.value!r}"
            raise InvalidTextError(message, f"It takes {self.key.expected}.")


class _Items(Edit):
    items: tuple[str, ...]

    def check(self) -> None:
        """Refuse a setting that is no list."""
        if self.key.kind is not Kind.TEXTS:
            message = f"{self.key.name} is not a list of texts"
            raise InvalidTextError(message, f"It takes {self.key.expected}.")
        for item in self.items:
            if any("\ud800" <= char <= "\udfff" for char in item):
                message = f'"{escape(item)}" cannot be kept in a settings file: it is not UTF-8'
                raise InvalidTextError(message, "Name a folder above it, or write * for the characters that are not.")


class AddItems(_Items):
    """Put items at the end of a list; those that it has already are left where they are."""


class RemoveItems(_Items):
    """Take items out of a list; those that it does not have are no matter."""


class _Span(Value):
    """A member of an object or an element of a list: where it begins, where its value does, where both end."""

    name: str
    start: int
    value: int
    end: int
    content: object


class _Layout(Value):
    """How the author of a text lays it out; ``space`` is what follows a colon, and a comma within a line."""

    newline: str
    unit: str
    space: str
    inline: bool

    def render(self, value: object, indent: str | None) -> str:
        """Return JSON for a value that stands at an indentation, or on one line if there is none."""
        comma, unit = (f",{self.space}", None) if indent is None else (",", self.unit)
        text = json.dumps(value, ensure_ascii=False, indent=unit, separators=(comma, f":{self.space}"))
        return text.replace("\n", f"{self.newline}{indent}")


def plan_edit(text: bytes | None, edits: Iterable[Edit], *, file: str = "the settings file") -> bytes:
    """Return the text with the edits made, all else byte for byte as it was; None is a file that is not there.

    Raises SettingsError, which names ``file``, if the text is no JSON object or holds something else where the
    edit needs an object or a list. Whether the settings in it are valid is not judged here.
    """
    try:
        whole = (NEW if text is None else text).decode("utf-8")
        draft = whole.removeprefix(_MARK)
        # A number is never looked at, and as a float no number of digits is too many.
        content = json.loads(draft, parse_int=float)
        if not isinstance(content, dict):
            raise _misfit(file, "$", "an object")
        for edit in edits:
            draft = _edited(draft, edit, file)
        return f"{_MARK if whole.startswith(_MARK) else ''}{draft}".encode()
    except (ValueError, RecursionError) as error:
        problem = Problem(file, "$", f"cannot be edited: {error}", "Mend the file by hand first.")
        raise SettingsError([problem]) from error


def _misfit(file: str, path: str, expected: str) -> SettingsError:
    return SettingsError([Problem(file, path, f"must be {expected} to be edited", "Mend the file by hand first.")])


def _edited(text: str, edit: Edit, file: str) -> str:
    parent, missing, found = _locate(text, edit.key, file)
    if isinstance(edit, SetValue):
        if found is None:
            return _append(text, parent, [edit.value], missing)
        return text[: found.value] + _layout(text).render(edit.value, None) + text[found.end :]
    if not isinstance(edit, _Items) or not edit.items:
        return text
    if found is None:
        items = list(dict.fromkeys(edit.items))
        return _append(text, parent, [items], missing) if isinstance(edit, AddItems) else text
    if not isinstance(found.content, list):
        raise _misfit(file, edit.key.path, "a list")
    if isinstance(edit, RemoveItems):
        return _cut(text, found.value, edit.items)
    fresh = [item for item in dict.fromkeys(edit.items) if item not in found.content]
    return _append(text, found.value, fresh) if fresh else text


def _locate(text: str, key: Key[Any], file: str) -> tuple[int, list[str], _Span | None]:
    """Return the innermost object on the way to a setting, the names that it lacks, and the setting if it is there."""
    names = key.name.split(".")
    parent, path = text.index("{"), "$"
    while True:
        # Of two members with one name the last counts, as it does for every reader of JSON.
        found = {span.name: span for span in _spans(text, parent)[0]}.get(names[0])
        if found is None or len(names) == 1:
            return parent, names, found
        path = f"{path}.{names.pop(0)}"
        if not isinstance(found.content, dict):
            raise _misfit(file, path, "an object")
        parent = found.value


def _spans(text: str, opening: int) -> tuple[list[_Span], int]:
    """Return what is inside the bracket at ``opening``, and where it closes; the text is known to be JSON."""
    read = json.JSONDecoder(parse_int=float).raw_decode
    spans: list[_Span] = []
    at = _skip(text, opening + 1)
    while text[at] not in "]}":
        start, name = at, ""
        if text[opening] == "{":
            name, at = read(text, at)
            at = _skip(text, _skip(text, at) + 1)
        content, end = read(text, at)
        spans.append(_Span(name, start, at, end, content))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans, at


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _blank_before(text: str, at: int) -> str:
    return text[len(text[:at].rstrip(_BLANK)) : at]


def _layout(text: str) -> _Layout:
    """Read the layout off the first member of the whole."""
    newline = "\r\n" if "\r\n" in text else "\n"
    spans, _ = _spans(text, text.index("{"))
    if not spans:
        return _Layout(newline, "  ", " ", inline=False)
    blank = _blank_before(text, spans[0].start)
    space = " " if _blank_before(text, spans[0].value) else ""
    return _Layout(newline, blank.rpartition("\n")[2] or "  ", space, inline="\n" not in blank)


def _append(text: str, opening: int, values: Sequence[object], missing: Sequence[str] = ()) -> str:
    """Put values at the end of a list, or one value, under the names that are missing, at the end of an object."""
    layout = _layout(text)
    spans, closing = _spans(text, opening)
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    base = line[: len(line) - len(line.lstrip(" \t"))]
    # New items stand as the last one does, the first of all as the whole text does.
    blank = _blank_before(text, spans[-1].start) if spans else "" if layout.inline else f"\n{base}{layout.unit}"
    indent = blank.rpartition("\n")[2] if "\n" in blank else None
    between = blank if len(spans) > 1 else layout.space
    lead = between if indent is None else layout.newline + indent
    entries = f",{lead}".join(_entry(layout, missing, value, indent) for value in values)
    if spans:
        return f"{text[: spans[-1].end]},{lead}{entries}{text[spans[-1].end :]}"
    inside = entries if indent is None else f"{lead}{entries}{layout.newline}{base}"
    return text[: opening + 1] + inside + text[closing:]


def _entry(layout: _Layout, missing: Sequence[str], value: object, indent: str | None) -> str:
    for name in reversed(missing[1:]):
        value = {name: value}
    rendered = layout.render(value, indent)
    return f"{layout.render(missing[0], None)}:{layout.space}{rendered}" if missing else rendered


def _cut(text: str, opening: int, items: Sequence[str]) -> str:
    spans, closing = _spans(text, opening)
    kept = [index for index, span in enumerate(spans) if span.content not in items]
    if not kept:
        return text[: opening + 1] + text[closing:] if spans else text
    for index in reversed(range(len(spans))):
        if index in kept:
            continue
        # The comma goes with the item: the one before it, or after it where nothing that stays is before.
        before = index > kept[0]
        start = spans[index - 1].end if before else spans[index].start
        end = spans[index].end if before else spans[index + 1].start
        text = text[:start] + text[end:]
    return text
