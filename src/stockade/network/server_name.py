"""The name that a TLS client says it wants to speak to, read from its first message without answering it.

Bytes go in by ``receive`` as they come, and a finding comes out; once it is anything but ``NeedMore``, it is final. The
caller keeps the bytes and passes them on unchanged: nothing is decrypted.

Rules: the first two bytes tell TLS from anything else. The message may come in any number of records and pieces.
Unknown extensions (among them those that clients make up on purpose, RFC 8701) are skipped. A name given twice, or
lengths that do not fit each other, are malformed: servers might read another name there than we do. A message larger
than ``LARGEST`` is not waited for. With encrypted client hello the name found is only the outer one; ``encrypted`` says
that there may be another inside (or that the client only pretends: nobody can tell). The name is handed on as it was
sent, non-ASCII bytes as lone surrogates, which no host may have.

Source of truth: RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3, RFC 9849 (encrypted client hello).
"""

from __future__ import annotations

from stockade.annotation import Final, TypeAlias
from stockade.value import Value

LARGEST: Final = 64 * 1024

_BEGINNING: Final = b"\x16\x03"  # a record of a handshake, in any version since SSL 3
_RECORD_HEAD: Final = 5
_LARGEST_RECORD: Final = 1 << 14
_CLIENT_HELLO: Final = 1
_MESSAGE_HEAD: Final = 4
_VERSION_AND_RANDOM: Final = 34
_LONGEST_SESSION: Final = 32
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0
_ENCRYPTED_HELLO: Final = 0xFE0D


class NeedMore(Value):
    """The message is not whole yet."""


class NotTls(Value):
    """It is another protocol."""


class NoName(Value):
    """It is TLS, and the client names no server."""

    encrypted: bool = False


class Name(Value):
    """It is TLS, and the client names this server."""

    host_text: str
    encrypted: bool = False


class Malformed(Value):
    """It begins like TLS, but cannot be read."""

    why: str


Finding: TypeAlias = NeedMore | NotTls | NoName | Name | Malformed


class _MalformedError(Exception):
    """A length does not fit; stays inside this module."""


class ServerNameReader:
    """Reads the beginning of one connection."""

    def __init__(self) -> None:
        self._records = bytearray()
        self._message = bytearray()
        self._finding: Finding = NeedMore()

    def receive(self, data: bytes) -> Finding:
        """Take bytes of the client; return what is known."""
        if isinstance(self._finding, NeedMore):
            self._records += data
            try:
                self._finding = self._look()
            except _MalformedError as error:
                self._finding = Malformed(str(error))
            if not isinstance(self._finding, NeedMore):
                self._records.clear()
                self._message.clear()
        return self._finding

    def _look(self) -> Finding:
        while self._records:
            begins_as_tls = _BEGINNING.startswith(self._records[: len(_BEGINNING)])
            if not begins_as_tls and not self._message:
                return NotTls()
            _demand(begins_as_tls, "something else stands between the records of its hello")
            if not self._take_record():
                break
            if len(self._message) >= _MESSAGE_HEAD:
                _demand(self._message[0] == _CLIENT_HELLO, "its first message is no client hello")
                size = int.from_bytes(self._message[1:_MESSAGE_HEAD], "big")
                _demand(_MESSAGE_HEAD + size <= LARGEST, "its hello is too large")
                if len(self._message) >= _MESSAGE_HEAD + size:
                    return _read_hello(bytes(self._message[_MESSAGE_HEAD : _MESSAGE_HEAD + size]))
        return NeedMore()

    def _take_record(self) -> bool:
        """Move a record's content to the message, if the record is whole."""
        if len(self._records) < _RECORD_HEAD:
            return False
        size = int.from_bytes(self._records[3:_RECORD_HEAD], "big")
        _demand(0 < size <= _LARGEST_RECORD, "a record of its hello is empty or too large")
        end = _RECORD_HEAD + size
        if len(self._records) < end:
            return False
        self._message += self._records[_RECORD_HEAD:end]
        del self._records[:end]
        return True


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
        _demand(len(taken) == size, "a length in its hello does not fit")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, length_size: int) -> bytes:
        return self.take(self.number(length_size))


def _demand(fits: object, otherwise: str) -> None:
    if not fits:
        raise _MalformedError(otherwise)


def _read_hello(hello: bytes) -> Finding:
    cursor = _Cursor(hello)
    cursor.take(_VERSION_AND_RANDOM)
    _demand(len(cursor.vector(1)) <= _LONGEST_SESSION, "its session is too long")
    suites = cursor.vector(2)
    _demand(suites and len(suites) % 2 == 0, "its cipher suites are malformed")
    _demand(cursor.vector(1), "it lists no compression method")
    if cursor.at_end:
        return NoName()
    extensions = _Cursor(cursor.vector(2))
    _demand(cursor.at_end, "something stands behind its extensions")
    name: str | None = None
    seen: set[int] = set()
    while not extensions.at_end:
        kind = extensions.number(2)
        content = extensions.vector(2)
        _demand(kind not in seen, "an extension of its hello is there twice")
        seen.add(kind)
        if kind == _SERVER_NAME:
            name = _read_name(content)
    encrypted = _ENCRYPTED_HELLO in seen
    return NoName(encrypted) if name is None else Name(name, encrypted)


def _read_name(extension: bytes) -> str:
    cursor = _Cursor(extension)
    names = _Cursor(cursor.vector(2))
    kind = names.number(1)
    name = names.vector(2)
    # Other kinds of names were never defined, and servers differ on which of several they take.
    fits = cursor.at_end and names.at_end and kind == _HOST_NAME and name
    _demand(fits, "its server name is malformed, or not the only one")
    return name.decode("ascii", "surrogateescape")
