"""The name that a TLS client says it wants to speak to, read from one of its hellos without answering it.

Rules: unknown extensions (among them those that clients make up on purpose, RFC 8701) are skipped. A name given twice,
or lengths that do not fit each other, are malformed: servers might read another name there than we do. With encrypted
client hello the name found is only the outer one; ``encrypted`` says that there may be another inside (or that the
client only pretends: nobody can tell). The name is handed on as it was sent, non-ASCII bytes as lone surrogates, which
no host may have.

Source of truth: RFC 8446 sections 4.1.2 and 4.2.10, RFC 6066 section 3, RFC 9849 (encrypted client hello).
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.value import Value

_VERSION_AND_RANDOM: Final = 34
_EXTENSION_HEAD: Final = 4
_DOES_NOT_FIT: Final = "a length in its hello does not fit"
_LONGEST_SESSION: Final = 32
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0
_EARLY_DATA: Final = 42
_ENCRYPTED_HELLO: Final = 0xFE0D


class Hello(Value):
    """What one hello says: the server that it names, if it does, and whether early data may follow it at once."""

    host_text: str | None
    encrypted: bool = False
    early: bool = False


class Malformed(Value):
    """It begins like TLS, but cannot be read."""

    why: str


class _MalformedError(Exception):
    """A length does not fit; stays inside this module."""


def read_hello(body: bytes) -> Hello | Malformed:
    """Read the message, without the four bytes of its head."""
    try:
        return _read(body)
    except _MalformedError as error:
        return Malformed(str(error))


class _Cursor:
    """Reads fields with a length before them; whatever does not fit is malformed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        _demand(len(taken) == size, _DOES_NOT_FIT)
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, length_size: int) -> bytes:
        return self.take(self.number(length_size))


def _demand(fits: object, otherwise: str) -> None:
    if not fits:
        raise _MalformedError(otherwise)


def _read(hello: bytes) -> Hello:
    cursor = _Cursor(hello)
    cursor.take(_VERSION_AND_RANDOM)
    _demand(len(cursor.vector(1)) <= _LONGEST_SESSION, "its session is too long")
    suites = cursor.vector(2)
    _demand(suites and len(suites) % 2 == 0, "its cipher suites are malformed")
    _demand(cursor.vector(1), "it lists no compression method")
    if cursor.at_end:
        return Hello(None)
    extensions = _split(cursor.vector(2))
    _demand(cursor.at_end, "something stands behind its extensions")
    given = extensions.get(_SERVER_NAME)
    name = None if given is None else _read_name(given)
    return Hello(name, encrypted=_ENCRYPTED_HELLO in extensions, early=_EARLY_DATA in extensions)


def _split(data: bytes) -> dict[int, bytes]:
    """Return the content of each extension. There are many in each hello: no call for each of them."""
    found: dict[int, bytes] = {}
    at, size = 0, len(data)
    while at < size:
        begin = at + _EXTENSION_HEAD
        end = begin + int.from_bytes(data[at + 2 : begin], "big")
        if begin > size or end > size:
            raise _MalformedError(_DOES_NOT_FIT)
        kind = int.from_bytes(data[at : at + 2], "big")
        _demand(kind not in found, "an extension of its hello is there twice")
        found[kind] = data[begin:end]
        at = end
    return found


def _read_name(extension: bytes) -> str:
    cursor = _Cursor(extension)
    names = _Cursor(cursor.vector(2))
    kind = names.number(1)
    name = names.vector(2)
    # Other kinds of names were never defined, and servers differ on which of several they take.
    fits = cursor.at_end and names.at_end and kind == _HOST_NAME and name
    _demand(fits, "its server name is malformed, or not the only one")
    return name.decode("ascii", "surrogateescape")
