r"""S-expressions as Seatbelt profiles are written in: one printer, one reader.

A form is a word (``allow``, ``file-read*``, ``1``), a ``Quoted`` text, or a tuple of forms. Any text survives being
printed and read: quotes, backslashes, line ends, control characters, and bytes that are no UTF-8 (they travel as
Python's surrogate escapes and are printed as ``\xHH``).

Source of truth: profiles are read by a Scheme, in whose strings a backslash escapes quotes and itself, ``\n``, ``\r``
and ``\t`` are what they are in C, and ``\x`` takes two hexadecimal digits. ``#"..."`` is a text in which a backslash
stands for itself, unless a quote follows. ``;`` starts a comment.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_PIECE: Final = r"""\s+|;[^\n]*|[()]|#?"(?:[^"\\]|\\[\s\S])*"|(?!#")[^\s()";]+"""
_ESCAPE: Final = r"\\(?:x([0-9a-fA-F]{2})|([^x]))|\\x"
_FIRST_HIGH_BYTE: Final = 0x80
_SURROGATES: Final = 0xDC00
_WIDTH: Final = 100
#: What stands in quotes as an escape: control characters, bytes that are no UTF-8, and what the quotes are made of.
_ESCAPES: Final = (
    {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)}
    | {_SURROGATES + code: f"\\x{code:02x}" for code in range(_FIRST_HIGH_BYTE, 0x100)}
    | {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
)


class Quoted(Value):
    """A text in quotes."""

    text: str


Form: TypeAlias = "str | Quoted | tuple[Form, ...]"


def bytes_of(text: str) -> bytes:
    """Return a text as the kernel sees it."""
    return text.encode("utf-8", "surrogateescape")


def text_of(data: bytes) -> str:
    """Return what the kernel sees as a text."""
    return data.decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """Return a text in quotes, with everything escaped that needs it."""
    return f'"{text.translate(_ESCAPES)}"'


def show(form: Form) -> str:
    """Print a form: on one line if it is short, else with one element to a line."""
    return "\n".join(_lines(form))


def _lines(form: Form) -> list[str]:
    line = _line(form)
    if len(line) <= _WIDTH or not isinstance(form, tuple):
        return [line]
    # The words at the beginning (action, operations, name of a filter) stay together.
    words = next((at for at, each in enumerate(form) if not isinstance(each, str)), len(form))
    head, rest = "(" + " ".join(map(_line, form[:words])), form[words:]
    inner = [f"  {text}" for each in rest for text in _lines(each)]
    return [head, *inner[:-1], f"{inner[-1]})"] if inner else [f"{head})"]


def _line(form: Form) -> str:
    if isinstance(form, Quoted):
        return quoted(form.text)
    return form if isinstance(form, str) else f"({' '.join(map(_line, form))})"


def read(text: str) -> tuple[Form, ...]:
    """Read all forms of a text, or raise ``InvalidTextError`` that names the line."""
    stack: list[list[Form]] = [[]]
    opened: list[int] = []
    for at, piece in _tokens(text):
        if piece == "(":
            stack.append([])
            opened.append(at)
        elif piece == ")":
            if not opened:
                raise _problem(text, at, "closes a parenthesis that was never opened")
            opened.pop()
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(piece)
    if opened:
        raise _problem(text, opened[-1], "opens a parenthesis that is never closed")
    return tuple(stack[0])


def _tokens(text: str) -> Iterator[tuple[int, str | Quoted]]:
    import re

    at = 0
    for found in re.finditer(_PIECE, text):
        if found.start() != at:
            raise _problem(text, at, "opens a text that is never closed")
        at, piece = found.end(), found.group()
        if piece[0] == '"' or piece.startswith('#"'):
            yield found.start(), _text(text, found.start(), piece)
        elif piece[0] != ";" and not piece.isspace():
            yield found.start(), piece
    if at != len(text):
        raise _problem(text, at, "opens a text that is never closed")


def _text(whole: str, start: int, piece: str) -> Quoted:
    import re

    if piece[0] == "#":
        return Quoted(piece[2:-1].replace('\\"', '"'))
    if "\\" not in piece:
        return Quoted(piece[1:-1])

    def unescaped(found: re.Match[str]) -> str:
        digits, character = found.groups()
        if character is not None:
            return _UNESCAPES.get(character, character)
        if digits is None:
            raise _problem(whole, start, r"has \x without two hexadecimal digits")
        value = int(digits, 16)
        return chr(value) if value < _FIRST_HIGH_BYTE else chr(_SURROGATES + value)

    try:
        # Bytes given one by one may amount to characters.
        return Quoted(text_of(bytes_of(re.sub(_ESCAPE, unescaped, piece[1:-1]))))
    except UnicodeError:
        raise _problem(whole, start, "holds half a surrogate pair") from None


def _problem(text: str, at: int, what: str) -> InvalidTextError:
    line = text.count("\n", 0, at) + 1
    return InvalidTextError(f"line {line} of the profile {what}", "Print profiles with stockade, do not write them.")
