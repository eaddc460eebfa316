"""What a TLS client sends in plain: its hello, and whatever else it may send until the server has answered.

Bytes go in by ``receive`` as they come, and those that may go on come out; nothing is decrypted or changed. A server
obeys a hello in plain as the first thing that it hears, and once more after it has asked for another one (a hello retry
request), and then takes the name from that (OpenSSL). Servers differ in what they forgive: an alert before the hello or
in its midst, a record of another version than 3 (Go up to 15, Java any), an empty record (OpenSSL, Node), one larger
than the standard has it (Java). So only what all of them read alike goes on.

Rules for what is no TLS (``begins_tls``): other protocols begin with such a byte too (MongoDB, Minecraft: it is part of
a length). What begins a record of version 3 is TLS. In another version it is TLS if it is a record of the handshake
that begins with a hello, of whatever size, or if it has a size that a server may skip and the next record stands behind
it. Measured before a hello, with OpenSSL 3.0, Node 20, Go 1.19 and Java 17: in other versions nothing is skipped but
alerts of two bytes (Go, Java) and empty records of the handshake (Java), and application data and heartbeats never.
Servers that were not tried may skip more: by its source s2n takes any version, and skips records of a kind that it does
not know, of any size.

Rules before the first hello is whole: nothing goes on; there are records of the handshake in version 3 alone, none is
empty, and they hold that one message and not a byte more. Rules after it: another hello is held back until it is whole
and judged, and there are two at most; an alert and the change of cipher that stands before a second hello go on, a few
of them; application data goes on only if a hello offers early data, and is not held. A hello that was begun is ended
before anything else comes.

Rules after the server's own hello (``answer``): OpenSSL before 1.1 still takes one more hello there, as the first
message that it hears (a restart once made for server-gated cryptography), and skips what is empty, alerts, heartbeats
and what it does not know (by its source; it was not tried). So the client is looked at as before until it goes on with
the handshake: by another message, a change of cipher or application data. Nothing encrypted can be mistaken for a
hello: a record of the handshake is encrypted only behind the change of cipher, and in TLS 1.3 such a record is
application data.

At most ``LARGEST`` bytes are held, and a little for the piece that goes beyond.

Source of truth: RFC 8446 sections 4.1.2, 4.2.10 and 5.1, appendix D.4; RFC 5246 section 6.2.1.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network.server_name import Malformed, read_hello
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.server_name import Hello

#: The kinds of records: a change of cipher, an alert, a part of the handshake, application data.
CHANGE, ALERT, HANDSHAKE, APPLICATION = KINDS = range(20, 24)
#: What the first byte of TLS may be. Heartbeats (RFC 6520) are hardly known any more, but who knows them may skip them.
BEGINNINGS: Final = range(20, 25)
VERSION: Final = 3
RECORD_HEAD: Final = 5
MESSAGE_HEAD: Final = 4
LARGEST: Final = 64 * 1024

_LARGEST_RECORD: Final = 1 << 14
_LARGEST_ENCRYPTED: Final = _LARGEST_RECORD + 256
_CLIENT_HELLO: Final = 1
#: No record is larger that a server skips in another version than 3: twice what was measured.
_LARGEST_SKIPPED: Final = 4
_MOST_HELLOS: Final = 2
#: Alerts and changes of cipher. Clients send one or two.
_MOST_STRAYS: Final = 8
_SIZES: Final = {CHANGE: 1, ALERT: 2}
_WORDS: Final = {CHANGE: "a change of cipher", ALERT: "an alert", APPLICATION: "application data", 24: "a heartbeat"}


class Refused(Value):
    """It must not go on."""

    why: str


def begins_tls(data: bytes) -> bool | None:
    """Say whether a server might take what begins so for TLS, or nothing while that takes a few more bytes to tell."""
    kind = data[0]
    if kind not in BEGINNINGS:
        return False
    if len(data) > 1 and data[1] == VERSION:
        return True
    if len(data) <= RECORD_HEAD:
        return None
    size = int.from_bytes(data[3:RECORD_HEAD], "big")
    if kind == HANDSHAKE and size and data[RECORD_HEAD] == _CLIENT_HELLO:
        return True
    if size > _LARGEST_SKIPPED:
        return False
    behind = data[RECORD_HEAD + size : RECORD_HEAD + size + 1]
    return behind[0] in BEGINNINGS if behind else None


class _UnreadableError(Exception):
    """Something is not as it should be; stays inside this module."""


class ClientFlight:
    """Reads one client. ``judge`` says of each hello why it must not go on, or nothing."""

    __slots__ = ("_answered", "_at", "_early", "_held", "_hellos", "_judge", "_message", "_passing", "_strays", "_why")

    def __init__(self, judge: Callable[[Hello], str]) -> None:
        """Wait for the first record."""
        self._judge = judge
        self._answered = False
        self._held = bytearray()
        self._at = 0  # where the next record begins in what is held: 0 unless there is a message
        self._message = bytearray()
        self._passing = 0  # of a record that goes on without being held
        self._hellos = 0
        self._strays = 0
        self._early = False
        self._why = ""

    @property
    def has_said_hello(self) -> bool:
        """Whether the first hello has gone on."""
        return self._hellos > 0

    @property
    def holds(self) -> bool:
        """Whether something is held back."""
        return bool(self._held)

    def receive(self, data: bytes) -> bytes | Refused:
        """Take bytes of the client; return those that may go on now. After a ``Refused`` it returns nothing else."""
        if not self._why:
            self._held += data
            try:
                passed = self._pass()
            except _UnreadableError as error:
                self._why = f"its TLS hello cannot be read: {error}"
            if not self._why:
                return passed
            self._held.clear()
            self._message.clear()
        return Refused(self._why)

    def answer(self) -> bool:
        """Take that the server has said hello; return whether it hears no other hello any more."""
        self._answered = True
        return self._is_over()

    def rest(self) -> bytes:
        """Return what is held back, and forget it."""
        rest = bytes(self._held)
        self._held.clear()
        return rest

    def _is_over(self) -> bool:
        """Say whether the server has answered and the client goes on with the handshake."""
        held = self._held
        if not self._answered or self._message or self._passing or len(held) < RECORD_HEAD:
            return False
        kind, is_empty = held[0], held[3:RECORD_HEAD] == bytes(2)
        if is_empty or held[1] != VERSION or kind not in (CHANGE, HANDSHAKE, APPLICATION):
            return False
        return kind != HANDSHAKE or (len(held) > RECORD_HEAD and held[RECORD_HEAD] != _CLIENT_HELLO)

    def _pass(self) -> bytes:
        passed = bytearray()
        while not self._why:
            if self._passing:
                size = min(self._passing, len(self._held))
                self._passing -= size
                passed += self._let_go(size)
            if self._is_over():
                return bytes(passed)
            if self._passing or not self._take_record():
                break
            if not self._message:
                passed += self._let_go(self._at)
        _demand(len(self._held) <= LARGEST, "its hello is too large")
        return bytes(passed)

    def _let_go(self, size: int) -> bytearray:
        gone = self._held[:size]
        del self._held[:size]
        self._at = 0
        return gone

    def _take_record(self) -> bool:
        """Look at the next record; return whether there was enough of it."""
        head = bytes(self._held[self._at : self._at + RECORD_HEAD])
        if not head or (self._answered and not self._message and len(head) < RECORD_HEAD):
            return False
        kind = head[0]
        self._check_kind(kind)
        _demand(len(head) == 1 or head[1] == VERSION, "a record before the server's answer has another version than 3")
        if len(head) < RECORD_HEAD:
            return False
        size = int.from_bytes(head[3:], "big")
        begin = self._at + RECORD_HEAD
        if kind == APPLICATION:
            _demand(0 < size <= _LARGEST_ENCRYPTED, "a record of its early data is empty or too large")
            self._at, self._passing = begin, size
            return True
        if kind == HANDSHAKE:
            _demand(0 < size <= _LARGEST_RECORD, "a record of its hello is empty or too large")
        else:
            _demand(size == _SIZES[kind], f"{_WORDS[kind]} has another size than any client sends")
        if len(self._held) < begin + size:
            return False
        self._at = begin + size
        if kind == HANDSHAKE:
            self._message += self._held[begin : self._at]
            self._read_message()
        else:
            self._strays += 1
            _demand(self._strays <= _MOST_STRAYS, "too many alerts and changes of cipher stand behind its hello")
        return True

    def _check_kind(self, kind: int) -> None:
        if kind == HANDSHAKE:
            return
        words = _WORDS.get(kind, "something that is no TLS")
        _demand(not self._message, f"{words} stands between the records of its hello")
        _demand(self._hellos, f"{words} stands before its hello")
        _demand(kind in KINDS, f"{words} stands behind its hello")
        if kind == APPLICATION:
            _demand(self._early, "application data comes before the server's answer, and was not offered")

    def _read_message(self) -> None:
        message = self._message
        _demand(message[0] == _CLIENT_HELLO, "a message before the server's answer is no client hello")
        if len(message) < MESSAGE_HEAD:
            return
        end = MESSAGE_HEAD + int.from_bytes(message[1:MESSAGE_HEAD], "big")
        _demand(end <= LARGEST, "its hello is too large")
        _demand(len(message) <= end, "something stands behind its hello in the same record")
        if len(message) < end:
            return
        hello = read_hello(bytes(message[MESSAGE_HEAD:]))
        if isinstance(hello, Malformed):
            raise _UnreadableError(hello.why)
        self._hellos += 1
        _demand(self._hellos <= _MOST_HELLOS, "there are more than two of them")
        self._why = self._judge(hello)
        self._early |= hello.early
        message.clear()


def _demand(fits: object, otherwise: str) -> None:
    if not fits:
        raise _UnreadableError(otherwise)
