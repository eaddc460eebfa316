"""One settings file becomes a document, or every reason why it cannot.

Driven by the catalogue alone: names, kinds and ranges. What a rule or a pattern means is the
policy's concern. Nothing is coerced: ``"yes"`` is no boolean, ``1.0`` no whole number.
`examine` reads what can be read of a file that is partly wrong, so that its other mistakes, those of
meaning, can be found in the same run; only `decode`, which raises, is for use.
Files under ``.claude`` are *foreign*: they belong to Claude Code, and what is not ours in them is
left alone, with a warning where it might be taken for a wall.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeAlias
from stockade.errors import SettingsError
from stockade.escape import escape
from stockade.settings.catalog import CATALOG, Key, Kind
from stockade.settings.document import Document
from stockade.settings.flat import flat_path, is_flat, is_mixed, unflatten
from stockade.settings.foreign import Standing, standing
from stockade.settings.json_text import JsonObject, member, parse, shown
from stockade.settings.problem import Problem
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.settings.layer import Layer

    Tree: TypeAlias = Mapping[str, "Key[object] | Tree"]


class Decoded(Value):
    """What a file says, what in it has no effect, and what is wrong with it.

    With ``problems`` the document is what is left of the file: enough to look for more mistakes, never to act on.
    """

    document: Document
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def decode(text: bytes, layer: Layer, file: str, *, foreign: bool = False, flat: bool = False) -> Decoded:
    """Read the settings in a file's bytes. Raises SettingsError with all that is wrong.

    ``foreign``: a file of Claude Code. ``flat``: the shape of `srt` is accepted as well.
    """
    decoded = examine(text, layer, file, foreign=foreign, flat=flat)
    if decoded.problems:
        raise SettingsError(decoded.problems)
    return decoded


def examine(text: bytes, layer: Layer, file: str, *, foreign: bool = False, flat: bool = False) -> Decoded:
    """Read what can be read of a file, and all that is wrong with it. Raises nothing."""
    try:
        raw, flat = _shape(parse(text, file), file, flat=flat)
    except SettingsError as error:
        return Decoded(Document(layer, file, {}), problems=error.problems)
    reader = _Reader(file, foreign=foreign)
    reader.section(raw, _TREE, "")
    problems = tuple(_as_written(problem) if flat else problem for problem in reader.problems)
    return Decoded(Document(layer, file, reader.values, flat), tuple(reader.warnings), problems)


def _shape(raw: object, file: str, *, flat: bool) -> tuple[JsonObject, bool]:
    """Return the file as a nested object, and whether it was flat. Raises SettingsError if it is neither or both."""
    if not isinstance(raw, JsonObject):
        raise SettingsError([Problem(file, "$", f"must hold an object, not {shown(raw)}", "Put it all inside { }.")])
    names = [name for name, _ in raw]
    if not (flat and is_flat(names)):
        return raw, False
    if is_mixed(names):
        message = "mixes the flat shape (network, filesystem, ... at top level) with the nested one"
        raise SettingsError([Problem(file, "$", message, 'Move everything into "sandbox".')])
    return unflatten(raw), True


def _as_written(problem: Problem) -> Problem:
    """Return the problem with paths as they are in a flat file, which has no ``sandbox`` object."""
    return problem.but(path=flat_path(problem.path), hint=problem.hint.replace("$.sandbox.", "$."))


def _tree() -> Tree:
    """Return the catalogue as nested sections."""
    tree: dict[str, object] = {}
    for name, key in CATALOG.items():
        *sections, leaf = name.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})  # type: ignore[assignment]  # sections hold sections
        node[leaf] = key
    return tree  # type: ignore[return-value]  # built just above, of keys and sections only


_TREE = _tree()


class _Reader:
    """Walks one file and gathers values, problems and warnings."""

    def __init__(self, file: str, *, foreign: bool) -> None:
        self.file = file
        self.foreign = foreign
        self.values: dict[str, object] = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def section(self, raw: object, tree: Tree, section: str) -> None:
        path = f"$.{section}" if section else "$"
        for name, value in self._members(raw, path, "an object"):
            known = tree.get(name)
            dotted = f"{section}.{name}" if section else name
            if known is None:
                self._unknown(name, value, section)
            elif isinstance(known, Key):
                self._setting(known, value)
            else:
                self.section(value, known, dotted)

    def _members(self, raw: object, path: str, expected: str) -> Iterator[tuple[str, object]]:
        """Yield each member once; what is no object and what is there twice is a problem."""
        if not isinstance(raw, JsonObject):
            self._wrong(path, expected, raw)
            return
        seen: set[str] = set()
        for name, value in raw:
            if name not in seen:
                seen.add(name)
                yield name, value
            elif not (self.foreign and path == "$" and name not in _TREE):
                self._problem(member(path, name), "is there twice", "Keep one of them.")

    def _unknown(self, name: str, value: object, section: str) -> None:
        path = member(f"$.{section}" if section else "$", name)
        if not section and name == "$schema":
            if not isinstance(value, str) and not self.foreign:
                self._wrong(path, "a string", value)
            return
        if self.foreign and (where := standing(name, section)) is not Standing.OURS:
            if where is Standing.NOT_ENFORCED:
                self.warnings.append(f"{escape(self.file)}: {path} is not enforced by Stockade")
            return
        from stockade.settings.unknown_key import advise

        self._problem(path, "is not a setting", advise(name, section))

    def _setting(self, key: Key[object], raw: object) -> None:
        before = len(self.problems)
        value = self._value(key, raw)
        # Of a list or a table the rest may hold mistakes of meaning; an item that is wrong keeps its number.
        if len(self.problems) == before or isinstance(value, tuple | dict):
            self.values[key.name] = value

    def _value(self, key: Key[object], raw: object) -> object:
        """Return the checked value; meaningless if a problem was added."""
        match key.kind:
            case Kind.FLAG:
                return self._flag(key, raw)
            case Kind.NUMBER:
                return self._number(key, raw)
            case Kind.TEXT:
                return self._text(key.path, raw, key.expected)
            case Kind.TEXTS:
                return self._texts(key.path, raw, key.expected)
            case Kind.ARGV:
                return self._texts(key.path, raw, key.expected, empty=True)
            case Kind.TABLE:
                return self._table(key, raw)

    def _flag(self, key: Key[object], raw: object) -> object:
        if not isinstance(raw, bool):
            self._wrong(key.path, key.expected, raw)
        return raw

    def _number(self, key: Key[object], raw: object) -> object:
        if not isinstance(raw, int) or isinstance(raw, bool) or not key.low <= raw <= key.high:
            self._wrong(key.path, key.expected, raw)
        return raw

    def _text(self, path: str, raw: object, expected: str, *, empty: bool = False) -> str:
        if not isinstance(raw, str) or not (empty or raw.strip()):
            self._wrong(path, expected, raw)
            return ""
        self._printable(path, raw)
        return raw

    def _texts(self, path: str, raw: object, expected: str, *, empty: bool = False) -> tuple[str, ...]:
        if not isinstance(raw, list) or isinstance(raw, JsonObject):
            self._wrong(path, expected, raw, f"Write [{shown(raw)}]." if isinstance(raw, str) else "")
            return ()
        item = "a string" if empty else "a non-empty string"
        return tuple(self._text(f"{path}[{index}]", text, item, empty=empty) for index, text in enumerate(raw))

    def _table(self, key: Key[object], raw: object) -> dict[str, tuple[str, ...]]:
        table = {}
        for name, texts in self._members(raw, key.path, key.expected):
            path = member(key.path, name)
            if not name.strip():
                self._problem(path, "has an empty name", "Name a command pattern, or * for all.")
            self._printable(path, name)
            table[name] = self._texts(path, texts, Kind.TEXTS.value)
        return table

    def _printable(self, path: str, text: str) -> None:
        # Claude Code saves allowed commands as they were run, line ends included; what a rule means is judged later.
        blank = "\n\r\t" if path.startswith("$.permissions.") else ""
        for char in text:
            if char in blank:
                continue
            if char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff":
                self._problem(path, f"contains the control character {ascii(char)[1:-1]}", "Remove it.")
                return

    def _wrong(self, path: str, expected: str, raw: object, hint: str = "") -> None:
        if raw is None:
            hint = "Leave the key out instead."
        elif raw in ("true", "false"):
            hint = f"Write {raw} without quotes."
        self._problem(path, f"must be {expected}, not {shown(raw)}", hint or "Mend the value or remove the key.")

    def _problem(self, path: str, message: str, hint: str) -> None:
        self.problems.append(Problem(self.file, path, message, hint))
