"""The bytes of a settings file become JSON values, stricter than the standard reader.

Only RFC 8259 JSON in UTF-8 (a byte order mark is dropped): no NaN, no Infinity, no nesting without
end. Objects keep every member as written, so that a key given twice can be pointed at.
"""

from __future__ import annotations

from stockade.escape import escape
from stockade.settings.problem import whole_file

_LONGEST_WHOLE = 18  # digits; anything longer is far beyond every range, and slow to convert
_LONGEST_SHOWN = 60
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = " \t\n\r"


class JsonObject(list[tuple[str, object]]):
    """The members of an object in the order of the file, repeated names included."""


class HugeNumber:
    """A whole number with too many digits to be any setting."""


def parse(text: bytes, file: str) -> object:
    """Return the JSON value of a file, its objects as JsonObject. Raises SettingsError."""
    try:
        decoded = text.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise whole_file(file, f"is not UTF-8 (byte {error.start + 1})", "Save the file as UTF-8.") from None
    if not decoded.strip():
        raise whole_file(file, "is empty", "Write {} to set nothing, or remove the file.")
    return _parse_text(decoded, file)


def shown(value: object) -> str:
    """Return a JSON value in a few words that are safe to print anywhere."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, JsonObject):
        return "an object"
    return "a list" if isinstance(value, list) else "a huge number"


def quoted(text: str) -> str:
    """Return a text in quotes, shortened and safe to print."""
    return f'"{escape(text, _LONGEST_SHOWN)}"'


def member(path: str, name: str) -> str:
    """Return the JSON path of a member; odd names are shown in quotes, escaped."""
    plain = name.isascii() and name.removeprefix("$").isidentifier()
    return f"{path}.{name}" if plain else f"{path}[{quoted(name)}]"


def _parse_text(text: str, file: str) -> object:
    try:
        return _read(text, file)
    except RecursionError:
        raise whole_file(file, "is nested too deeply", "Settings need four levels at most.") from None
    except _ConstantError as error:
        raise whole_file(file, f"is not JSON: {error} is not a JSON number", "Write a whole number.") from None


def _read(text: str, file: str) -> object:
    try:
        return _scan(text.strip(_BLANK))
    except (ImportError, StopIteration, ValueError, SystemError):
        # The last one: as long as nobody has imported json, the part in C finds no exception to raise.
        return _read_slowly(text, file)


def _scan(text: str) -> object:
    """Read a text by the part of ``json`` that is in C: the rest takes 5 ms to import, and tells mistakes better."""
    from _json import make_scanner

    value, end = make_scanner(_Reading)(text, 0)  # type: ignore[arg-type] # takes anything with these attributes
    if end != len(text):
        raise ValueError(end)
    found: object = value
    return found


def _read_slowly(text: str, file: str) -> object:
    import json

    try:
        return json.loads(text, object_pairs_hook=JsonObject, parse_int=_whole, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        hint = "JSON has no comments, no single quotes and no comma after the last item."
        raise whole_file(file, f"is not JSON: {error.msg} at {where}", hint) from None


def _whole(digits: str) -> int | HugeNumber:
    return int(digits) if len(digits) <= _LONGEST_WHOLE else HugeNumber()


class _ConstantError(Exception):
    """NaN or Infinity, which the standard reader would take."""


def _refuse_constant(name: str) -> float:
    raise _ConstantError(name)


class _Reading:
    """How a text is read, in the words of ``json.JSONDecoder``."""

    strict = True
    object_hook = None
    object_pairs_hook = JsonObject
    parse_float = float
    parse_int = staticmethod(_whole)
    parse_constant = staticmethod(_refuse_constant)
