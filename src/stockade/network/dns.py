r"""DNS messages: questions of programs inside, and answers made from policy.

Nothing is ever asked of another server here: a question is read, and one of a few answers is made. What a program puts
into the name it asks for goes nowhere but to the judge.

Rules: a question has exactly one name, in labels of its own: compression has nothing to point at there, so a pointer is
malformed and no loop can be made. Other records are skipped without being understood, but for the one OPT of EDNS,
which is answered in kind. What is itself an answer gets no answer. A name is handed on as text, a dot inside a label as
``\.`` and non-ASCII bytes as lone surrogates, neither of which any host may have. Answers repeat the question byte for
byte, so that its mixed case (a defence of some resolvers) survives.

Source of truth: RFC 1035 section 4, RFC 6891 (EDNS), RFC 7766 (TCP), RFC 9619 (one question).
"""

from __future__ import annotations

from enum import IntEnum

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Address, IPv6Address

LARGEST_QUERY: Final = 4096
_HEAD: Final = 12
_RECORD_FIELDS: Final = 10  # type, class, time to live, length
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 255
_POINTER: Final = 0xC0
_MOST_ADDITIONAL: Final = 8
_OPT: Final = 41
_INTERNET: Final = b"\0\x01"
_SMALLEST_UDP: Final = 512
_OUR_UDP: Final = 1232
_LENGTH: Final = 2
_QUESTION_POINTER: Final = b"\xc0\x0c"  # the name at offset 12: that of the question

_IS_RESPONSE: Final = 0x8000
_OPCODE: Final = 0x7800
_TRUNCATED: Final = 0x0200
_RECURSION_DESIRED: Final = 0x0100
_RECURSION_AVAILABLE: Final = 0x0080
_CHECKING_DISABLED: Final = 0x0010
_DNSSEC_OK: Final = 0x8000


class Code(IntEnum):
    """The outcome of a query, by its number in the protocol."""

    NO_ERROR = 0
    MALFORMED = 1
    FAILED = 2
    NO_SUCH_NAME = 3
    NOT_IMPLEMENTED = 4
    REFUSED = 5
    BAD_VERSION = 16


class RecordType(IntEnum):
    """The types that are asked for by name here; all others are just numbers."""

    A = 1
    AAAA = 28


class Edns(Value):
    """What a query says of itself beyond the old protocol."""

    udp_size: int
    version: int
    dnssec: bool


class Query(Value):
    """One question. ``question`` is its bytes; ``flags`` are those that an answer repeats."""

    id: int
    flags: int
    name: str
    type: int
    question: bytes
    edns: Edns | None = None


class Rejected(Value):
    """A message that is no question we answer; ``answer`` says so, and is empty if it is best ignored."""

    why: str
    answer: bytes = b""


class _MalformedError(Exception):
    """Something does not fit; stays inside this module."""


def read_query(message: bytes) -> Query | Rejected:
    """Read one message of a program inside."""
    if len(message) < _HEAD:
        return Rejected("it is shorter than any message")
    flags = _number(message, 2, 2)
    if flags & _IS_RESPONSE:
        return Rejected("it is an answer itself")
    if flags & _OPCODE:
        return Rejected("it is no question", _bare(message, Code.NOT_IMPLEMENTED))
    try:
        query = _read(message)
    except _MalformedError as error:
        return Rejected(str(error), _bare(message, Code.MALFORMED))
    return _accepted(query)


def _accepted(query: Query) -> Query | Rejected:
    if query.question[-2:] != _INTERNET:
        return Rejected("it asks for another class than that of the internet", answer(query, Code.REFUSED))
    if query.edns is not None and query.edns.version:
        return Rejected("it speaks another version of EDNS", answer(query, Code.BAD_VERSION))
    return query


def answer(
    query: Query,
    code: Code = Code.NO_ERROR,
    addresses: Sequence[IPv4Address | IPv6Address] = (),
    *,
    time_to_live: int = 0,
    over_udp: bool = True,
) -> bytes:
    """Return the answer to a query; with no addresses and ``NO_ERROR`` it says that there is no such record.

    Addresses of another family than was asked for are left out. What does not fit into a datagram that the program can
    take is cut off, and said to be.
    """
    packed = [address.packed for address in addresses if _type_of(address.packed) == query.type]
    records = [
        _QUESTION_POINTER
        + _bytes(query.type, 2)
        + _INTERNET
        + _bytes(time_to_live, 4)
        + _bytes(len(address), 2)
        + address
        for address in packed
    ]
    extra = b"" if query.edns is None else _opt(query.edns, code)
    flags = _IS_RESPONSE | _RECURSION_AVAILABLE | query.flags | (code & 0xF)
    if over_udp:
        room = _room(query.edns) - _HEAD - len(query.question) - len(extra)
        fitting = max(0, room // len(records[0])) if records else 0
        if fitting < len(records):
            records, flags = records[:fitting], flags | _TRUNCATED
    counts = _bytes(1, 2) + _bytes(len(records), 2) + _bytes(0, 2) + _bytes(1 if extra else 0, 2)
    return b"".join((_bytes(query.id, 2), _bytes(flags, 2), counts, query.question, *records, extra))


def frame(message: bytes) -> bytes:
    """Return a message as it travels over TCP."""
    return _bytes(len(message), _LENGTH) + message


class Frames:
    """Cuts what comes over TCP into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.broken = False

    def receive(self, data: bytes) -> tuple[bytes, ...]:
        """Take bytes; return the messages that are whole now. ``broken`` says that the connection is to be closed."""
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH and not self.broken:
            size = int.from_bytes(self._buffer[:_LENGTH], "big")
            self.broken = size > LARGEST_QUERY
            end = _LENGTH + size
            if len(self._buffer) < end:
                break
            messages.append(bytes(self._buffer[_LENGTH:end]))
            del self._buffer[:end]
        if self.broken:
            self._buffer.clear()
        return tuple(messages)


def _read(message: bytes) -> Query:
    questions, answers, authorities, additional = (_number(message, at, 2) for at in (4, 6, 8, 10))
    if (questions, answers, authorities) != (1, 0, 0) or additional > _MOST_ADDITIONAL:
        message_ = "it has not exactly one question, or other records that no question has"
        raise _MalformedError(message_)
    name, at = _read_name(message, _HEAD)
    kind, question_end = _number(message, at, 2), at + 4
    edns, at = None, question_end
    for _ in range(additional):
        found, at = _read_additional(message, at)
        if found is not None and edns is not None:
            message_ = "it speaks EDNS twice"
            raise _MalformedError(message_)
        edns = edns or found
    if at != len(message):
        message_ = "something stands behind its end"
        raise _MalformedError(message_)
    flags = _number(message, 2, 2) & (_RECURSION_DESIRED | _CHECKING_DISABLED)
    return Query(_number(message, 0, 2), flags, name, kind, message[_HEAD:question_end], edns)


def _read_name(message: bytes, at: int) -> tuple[str, int]:
    """Return a name without its last dot, and where it ends; the root is the empty name."""
    labels: list[str] = []
    start = at
    while size := _number(message, at, 1):
        if size > _LONGEST_LABEL:
            message_ = "a label of its name is too long, or points elsewhere"
            raise _MalformedError(message_)
        label = message[at + 1 : at + 1 + size]
        if len(label) < size or at + 1 + size - start >= _LONGEST_NAME:
            message_ = "its name is cut short or too long"
            raise _MalformedError(message_)
        labels.append(label.decode("ascii", "surrogateescape").replace("\\", "\\\\").replace(".", "\\."))
        at += 1 + size
    return ".".join(labels), at + 1


def _read_additional(message: bytes, at: int) -> tuple[Edns | None, int]:
    """Return what a record says of EDNS, if it does, and where it ends."""
    root = _number(message, at, 1) == 0
    at = _skip_name(message, at)
    kind, udp_size, time_to_live = _number(message, at, 2), _number(message, at + 2, 2), _number(message, at + 4, 4)
    end = at + _RECORD_FIELDS + _number(message, at + 8, 2)
    if end > len(message) or (kind == _OPT and not root):
        message_ = "a record behind its question is malformed"
        raise _MalformedError(message_)
    if kind != _OPT:
        return None, end
    return Edns(udp_size, time_to_live >> 16 & 0xFF, bool(time_to_live & _DNSSEC_OK)), end


def _skip_name(message: bytes, at: int) -> int:
    while size := _number(message, at, 1):
        if size >= _POINTER:
            return at + 2
        if size > _LONGEST_LABEL:
            message_ = "a label of a record is too long"
            raise _MalformedError(message_)
        at += 1 + size
    return at + 1


def _bare(message: bytes, code: Code) -> bytes:
    """Return an answer without the question, for one that could not be read."""
    flags = _IS_RESPONSE | _number(message, 2, 2) & (_OPCODE | _RECURSION_DESIRED) | code
    return message[:2] + _bytes(flags, 2) + bytes(_HEAD - 4)


def _opt(edns: Edns, code: Code) -> bytes:
    time_to_live = code >> 4 << 24 | (_DNSSEC_OK if edns.dnssec else 0)
    return b"\0" + _bytes(_OPT, 2) + _bytes(_OUR_UDP, 2) + _bytes(time_to_live, 4) + _bytes(0, 2)


def _room(edns: Edns | None) -> int:
    return _SMALLEST_UDP if edns is None else min(max(edns.udp_size, _SMALLEST_UDP), _OUR_UDP)


def _type_of(packed: bytes) -> RecordType:
    return RecordType.A if len(packed) == 4 else RecordType.AAAA  # noqa: PLR2004 (the bytes of an IPv4 address)


def _number(message: bytes, at: int, size: int) -> int:
    if at + size > len(message):
        message_ = "it is cut short"
        raise _MalformedError(message_)
    return int.from_bytes(message[at : at + size], "big")


def _bytes(number: int, size: int) -> bytes:
    return number.to_bytes(size, "big")
