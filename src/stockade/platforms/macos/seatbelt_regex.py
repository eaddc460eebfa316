r"""Regular expressions as Seatbelt has them, matched here.

Only what ``stockade.platforms.macos.path_regex`` names is taken; anything else is an error, so that a profile cannot
mean one thing here and another there. Matching is by bytes, anywhere in the text unless ``^`` or ``$`` say where.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.platforms.macos.sexpr import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPECIAL: Final = frozenset(b'\\^$.|?*+()[]{}/-"')
_PLAIN_OPERATORS: Final = frozenset(b".|*+?()")


@lru_cache(maxsize=1024)
def compile_regex(text: str) -> re.Pattern[bytes]:
    """Return the same for Python, or raise ``InvalidTextError``."""
    try:
        return re.compile(b"".join(_pieces(bytes_of(text), text)), re.DOTALL)
    except (re.error, OverflowError, UnicodeError):
        raise _problem(text, "cannot be read") from None


def _pieces(data: bytes, text: str) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        byte = data[at]
        at += 1
        if byte == ord("\\"):
            if at == len(data) or data[at] not in _SPECIAL:
                raise _problem(text, "has a backslash before something that is not special")
            yield re.escape(data[at : at + 1])
            at += 1
        elif byte == ord("["):
            end = data.find(b"]", at)
            yield _set(data[at:end] if end > at else b"", text)
            at = end + 1
        elif byte in b"{}]" or data[at - 1 : at + 1] == b"(?":
            raise _problem(text, f"has {chr(byte)}, which Seatbelt may not have")
        elif byte in b"^$":
            yield rb"\A" if byte == ord("^") else rb"\Z"
        else:
            yield bytes([byte]) if byte in _PLAIN_OPERATORS else re.escape(bytes([byte]))


def _set(inside: bytes, text: str) -> bytes:
    negated = inside.startswith(b"^")
    members = inside[negated:]
    if not members or set(members) & set(b"\\[^"):
        raise _problem(text, "has brackets with nothing or something special in them")
    found, at = [b"^" if negated else b""], 0
    while at < len(members):
        high = members[at + 2 : at + 3] if members[at + 1 : at + 2] == b"-" else b""
        low = members[at : at + 1]
        if (high and high < low) or low == b"-":
            raise _problem(text, "has brackets with a range that is none")
        found.append(re.escape(low) + (b"-" + re.escape(high) if high else b""))
        at += 3 if high else 1
    return b"[" + b"".join(found) + b"]"


def _problem(text: str, what: str) -> InvalidTextError:
    return InvalidTextError(f'the regular expression "{escape(text)}" {what}', "Write it as path_regex does.")
