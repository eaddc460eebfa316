"""A DNS client for name servers of one's own choice, where the system's resolver is not meant.

For networks in which some names are known to one server alone, and for tests. It blocks, and runs in the resolver's
threads.

Rules: both families are asked for at once, each from a socket of its own with a port and an id that chance has chosen;
an answer counts if it comes from the server asked, with that id and that question; anything else is passed over, as
nobody's. An answer that was cut is asked for again over TCP. Aliases are followed within one answer, so many and no
more. Servers are asked in turn, each a few times. No search domains, no hosts file, nothing is kept; ``localhost`` is
never asked for.

Source of truth: RFC 1035, RFC 5452 (forged answers), RFC 7766 (TCP), RFC 6761 section 6.3 (localhost).
"""

from __future__ import annotations

import secrets
import select
import socket
import time
from ipaddress import IPv4Address, IPv6Address

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.dns import Code, RecordType, frame
from stockade.policy.host import Host, HostKind
from stockade.policy.port import Port, split_port
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD: Final = 12
_RECORD_FIELDS: Final = 10
_INTERNET: Final = 1
_ALIAS: Final = 5
_POINTER: Final = 0xC0
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 255
_MOST_RECORDS: Final = 256
_MOST_ALIASES: Final = 16
_IS_RESPONSE: Final = 0x8000
_OPCODE: Final = 0x7800
_TRUNCATED: Final = 0x0200
_RECURSION_DESIRED: Final = 0x0100
_LARGEST: Final = 65535
_PORT: Final = 53
_TYPES: Final = (RecordType.A, RecordType.AAAA)
_HINT: Final = "write an address and a port: 127.0.0.1:5353 or [::1]:5353"


class Question(Value):
    """One question, as it is sent. Build it with ``Question.about``."""

    id: int
    labels: tuple[bytes, ...]
    type: int

    @classmethod
    def about(cls, name: str, kind: int, number: int) -> Question:
        """Ask for the records of a canonical host name; raise ``ValueError`` if DNS has no such name."""
        labels = tuple(name.encode("ascii").lower().split(b"."))
        if not all(0 < len(label) <= _LONGEST_LABEL for label in labels) or len(name) + 2 > _LONGEST_NAME:
            raise ValueError(name)
        return cls(number, labels, kind)

    def render(self) -> bytes:
        """Return the message."""
        name = b"".join(bytes((len(label),)) + label for label in self.labels) + b"\0"
        head = b"".join(_bytes(number) for number in (self.id, _RECURSION_DESIRED, 1, 0, 0, 0))
        return head + name + _bytes(self.type) + _bytes(_INTERNET)


class Answered(Value):
    """What a server says. ``truncated``: there is more, over TCP."""

    code: int
    addresses: tuple[str, ...] = ()
    truncated: bool = False


class _MalformedError(Exception):
    """Something does not fit; stays inside this module."""


def read_answer(question: Question, message: bytes) -> Answered | None:
    """Read a message as the answer to a question; ``None`` if it is not that, or cannot be read."""
    try:
        return _read(question, message)
    except _MalformedError:
        return None


def parse_server(text: str) -> tuple[str, int]:
    """Read address and port of a name server, or raise ``InvalidTextError``."""
    try:
        host_text, port_text = split_port(text)
        host = Host.parse(host_text)
        port = Port(_PORT) if port_text is None else Port.parse(port_text)
    except InvalidTextError as error:
        message = f'"{escape(text)}" is not a name server: {error.message}'
        raise InvalidTextError(message, _HINT) from None
    if host.kind is HostKind.NAME:
        message = f'"{escape(text)}" is not a name server: it is a name itself'
        raise InvalidTextError(message, _HINT)
    return host.text, port.number


class DnsClient:
    """Looks names up; what the resolver calls."""

    def __init__(self, servers: Sequence[str], *, seconds: float = 2.0, rounds: int = 2) -> None:
        """Take the servers, how long one is waited for, and how often each is asked. Raises ``InvalidTextError``."""
        self._servers = tuple(map(parse_server, servers))
        self._seconds = seconds
        self._rounds = rounds

    def __call__(self, name: str) -> list[str]:
        """Return the addresses of a name, IPv4 first, or raise ``OSError``."""
        if name == "localhost" or name.endswith(".localhost"):
            return ["127.0.0.1", "::1"]
        failure: OSError = TimeoutError("no name server answers")
        for server in self._servers * self._rounds:
            try:
                return _looked_up(server, _questions(name), time.monotonic() + self._seconds)
            except socket.gaierror:
                raise
            except OSError as error:
                failure = error
        raise failure


def _questions(name: str) -> list[Question]:
    try:
        return [Question.about(name, kind, secrets.randbelow(1 << 16)) for kind in _TYPES]
    except ValueError:
        raise socket.gaierror(socket.EAI_NONAME, "no name that DNS could have") from None


def _looked_up(server: tuple[str, int], questions: Sequence[Question], deadline: float) -> list[str]:
    """Ask one server; what one family lacks or is not told in time, the other may have."""
    answers = _over_udp(server, questions, deadline)
    found = [address for answer in answers for address in answer.addresses]
    if not found and any(answer.code == Code.NO_SUCH_NAME for answer in answers):
        raise socket.gaierror(socket.EAI_NONAME, "there is no such name")
    if not found and any(answer.code != Code.NO_ERROR for answer in answers):
        message = "the name server failed, or did not answer in time"
        raise OSError(message)
    return found


def _over_udp(server: tuple[str, int], questions: Sequence[Question], deadline: float) -> list[Answered]:
    family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
    sockets: list[socket.socket] = []
    try:
        for question in questions:
            sockets.append(socket.socket(family, socket.SOCK_DGRAM))
            sockets[-1].setblocking(False)
            sockets[-1].connect(server)  # so that the kernel drops what others send
            sockets[-1].send(question.render())
        return [_heard(server, question, asking, deadline) for question, asking in zip(questions, sockets, strict=True)]
    finally:
        for asking in sockets:
            asking.close()


def _heard(server: tuple[str, int], question: Question, asking: socket.socket, deadline: float) -> Answered:
    try:
        while True:
            answer = read_answer(question, _datagram(asking, deadline))
            if answer is not None:
                return _over_tcp(server, question, deadline) if answer.truncated else answer
    except OSError:
        return Answered(Code.FAILED)


def _datagram(asking: socket.socket, deadline: float) -> bytes:
    poller = select.poll()  # select(2) knows no descriptor above 1023
    poller.register(asking, select.POLLIN)
    while True:
        poller.poll(_left(deadline) * 1000)
        try:
            return asking.recv(_LARGEST)
        except BlockingIOError:
            continue


def _over_tcp(server: tuple[str, int], question: Question, deadline: float) -> Answered:
    with socket.create_connection(server, timeout=_left(deadline)) as connection:
        connection.sendall(frame(question.render()))
        size = int.from_bytes(_exactly(connection, 2, deadline), "big")
        answer = read_answer(question, _exactly(connection, size, deadline))
    if answer is None:
        message = "the name server's answer cannot be read"
        raise OSError(message)
    return answer


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        connection.settimeout(_left(deadline))
        more = connection.recv(size - len(data))
        if not more:
            message = "the name server closed the connection"
            raise ConnectionResetError(message)
        data += more
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        message = "the name server does not answer"
        raise TimeoutError(message)
    return left


def _read(question: Question, message: bytes) -> Answered | None:
    number, flags, questions, answers = (_number(message, at) for at in (0, 2, 4, 6))
    if number != question.id or not flags & _IS_RESPONSE or flags & _OPCODE or questions != 1:
        return None
    labels, at = _name(message, _HEAD)
    if (labels, _number(message, at), _number(message, at + 2)) != (question.labels, question.type, _INTERNET):
        return None
    code = flags & 0xF
    if flags & _TRUNCATED:
        return Answered(code, truncated=True)
    if code != Code.NO_ERROR:
        return Answered(code)
    return Answered(code, _addresses(question, message, at + 4, answers))


def _addresses(question: Question, message: bytes, at: int, count: int) -> tuple[str, ...]:
    """Return the addresses of the name that was asked for, or that it is another name of."""
    aliases: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
    found: dict[tuple[bytes, ...], list[str]] = {}
    for _ in range(min(count, _MOST_RECORDS)):
        labels, at = _name(message, at)
        kind, internet, size = _number(message, at), _number(message, at + 2) == _INTERNET, _number(message, at + 8)
        data, at = at + _RECORD_FIELDS, at + _RECORD_FIELDS + size
        if at > len(message):
            raise _MalformedError
        if internet and kind == _ALIAS:
            aliases.setdefault(labels, _name(message, data)[0])
        elif internet and kind == question.type:
            found.setdefault(labels, []).append(_address(kind, message[data:at]))
    name = question.labels
    for _ in range(_MOST_ALIASES):
        if name in found or name not in aliases:
            break
        name = aliases[name]
    return tuple(found.get(name, ()))


def _address(kind: int, packed: bytes) -> str:
    try:
        return str(IPv4Address(packed) if kind == RecordType.A else IPv6Address(packed))
    except ValueError:
        raise _MalformedError from None


def _name(message: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    """Return a name in small letters and where it ends; a pointer leads backwards, and so to an end."""
    labels: list[bytes] = []
    end, size, lowest = 0, 0, at
    for _ in range(_LONGEST_NAME):
        length = _number(message, at, 1)
        if length >= _POINTER:
            end = end or at + 2
            at = _number(message, at) & 0x3FFF
            if at >= lowest:
                raise _MalformedError
            lowest = at
            continue
        if length == 0:
            return tuple(labels), end or at + 1
        size += length + 1
        label = message[at + 1 : at + 1 + length]
        if length > _LONGEST_LABEL or len(label) < length or size >= _LONGEST_NAME:
            raise _MalformedError
        labels.append(label.lower())
        at += length + 1
    raise _MalformedError


def _number(message: bytes, at: int, size: int = 2) -> int:
    if at + size > len(message):
        raise _MalformedError
    return int.from_bytes(message[at : at + size], "big")


def _bytes(number: int) -> bytes:
    return number.to_bytes(2, "big")
