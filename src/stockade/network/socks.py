"""The server's side of SOCKS 5, as a conversation without I/O.

Bytes go in by ``receive`` and come out as events; the caller's answers go in by ``send`` and come out as bytes. Once
``Connected`` is sent, the conversation is over, and what the client had sent beyond its request is in ``rest``.

Rules:

- user name and password are chosen where the client offers them: they tie the connection to a command. Without them a
  client is served only if ``must_authenticate`` is false;
- CONNECT alone. A name is handed on as the client spelt it, its non-ASCII bytes as lone surrogates, which no host may
  have: so every malformed name meets the same judge as all others, and is recorded by it;
- SOCKS 4 has neither names nor passwords: such a client is cut off without a word, as is whatever is not SOCKS;
- nothing is read ahead of an answer, and no more than ``LARGEST_REST`` bytes are kept. Time limits are the caller's.

Source of truth: RFC 1928, RFC 1929.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from stockade.annotation import Final, TypeAlias
from stockade.value import Value

LARGEST_REST: Final = 1 << 20
_ENOUGH_REST: Final = 1 << 16

_SOCKS_4: Final = 4
_SOCKS_5: Final = 5
_PASSWORD_VERSION: Final = 1
_NO_AUTHENTICATION: Final = 0
_PASSWORD: Final = 2
_NO_METHOD: Final = 0xFF
_CONNECT: Final = 1
_REQUEST_HEAD: Final = 4  # version, command, reserved, address type
_IPV4_SIZE: Final = 4
_IPV6_SIZE: Final = 16
_PORT_SIZE: Final = 2


class Reply(IntEnum):
    """The answer to a request, by its number in the protocol."""

    SUCCEEDED = 0
    FAILED = 1
    NOT_ALLOWED = 2
    NETWORK_UNREACHABLE = 3
    HOST_UNREACHABLE = 4
    CONNECTION_REFUSED = 5
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


class _AddressType(IntEnum):
    IPV4 = 1
    NAME = 3
    IPV6 = 4


# A name brings its own size, and one byte to say it.
_ADDRESS_SIZES: Final[dict[int, int]] = {
    _AddressType.IPV4: _IPV4_SIZE,
    _AddressType.NAME: 1,
    _AddressType.IPV6: _IPV6_SIZE,
}


class Output(Value):
    """Bytes that the protocol itself owes to the client: write them."""

    data: bytes


class Authenticate(Value):
    """The client says who it is; answer with ``Authenticated`` or ``NotAuthenticated``."""

    username: str
    password: str


class ConnectRequested(Value):
    """The client wants a connection; answer with ``Connected`` or ``Refuse``. Neither field is checked."""

    host_text: str
    port: int


class Broken(Value):
    """The client does not keep to the protocol, or wants what there is not: close, once all output is written."""

    why: str


class Authenticated(Value):
    """The client is who it says."""


class NotAuthenticated(Value):
    """The client is not who it says; close once this is written."""


class Connected(Value):
    """The connection stands; all that follows belongs to the tunnel."""


class Refuse(Value):
    """There will be no connection; close once this is written."""

    reply: Reply = Reply.NOT_ALLOWED


Event: TypeAlias = Output | Authenticate | ConnectRequested | Broken
Command: TypeAlias = Authenticated | NotAuthenticated | Connected | Refuse


class _State(Enum):
    GREETING = "waits for the greeting"
    LOGIN = "waits for user name and password"
    JUDGING_LOGIN = "waits for the caller's word on user name and password"
    REQUEST = "waits for the request"
    JUDGING_REQUEST = "waits for the caller's word on the request"
    TUNNEL = "is a tunnel"
    OVER = "is over"


_WAITING: Final = frozenset({_State.JUDGING_LOGIN, _State.JUDGING_REQUEST, _State.TUNNEL})


class SocksConversation:
    """One client connection."""

    def __init__(self, *, must_authenticate: bool = True) -> None:
        self._must_authenticate = must_authenticate
        self._state = _State.GREETING
        self._buffer = bytearray()

    @property
    def wants_bytes(self) -> bool:
        """Whether to go on reading from the client."""
        return self._state not in _WAITING or len(self._buffer) < _ENOUGH_REST

    @property
    def over(self) -> bool:
        """Whether the connection is to be closed."""
        return self._state is _State.OVER

    def receive(self, data: bytes) -> tuple[Event, ...]:
        """Take bytes of the client; ``b""`` only goes on with what is there, as is due after ``Authenticated``."""
        if self._state is _State.OVER:
            return ()
        self._buffer += data
        events: list[Event] = []
        while (step := self._step()) is not None:
            events += step
        if len(self._buffer) > LARGEST_REST:
            events += self._break("it sent too much before it was answered")
        return tuple(events)

    def send(self, command: Command) -> bytes:
        """Answer the event that waits for it; return the bytes to write."""
        expected = _State.JUDGING_REQUEST
        if isinstance(command, Authenticated | NotAuthenticated):
            expected = _State.JUDGING_LOGIN
        if self._state is not expected:
            message = f"{command!r} answers nothing: the conversation {self._state.value}"
            raise RuntimeError(message)
        match command:
            case Authenticated():
                self._state = _State.REQUEST
                return bytes((_PASSWORD_VERSION, 0))
            case NotAuthenticated():
                self._state = _State.OVER
                return bytes((_PASSWORD_VERSION, 1))
            case Connected():
                self._state = _State.TUNNEL
                return _reply(Reply.SUCCEEDED)
            case Refuse(reply=reply):
                self._state = _State.OVER
                return _reply(reply)

    def rest(self) -> bytes:
        """Return what the client has sent for the tunnel already, and forget it."""
        if self._state is not _State.TUNNEL:
            return b""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _step(self) -> list[Event] | None:
        """Read one message; ``None`` if there is none to be read now."""
        if not self._buffer:
            return None
        match self._state:
            case _State.GREETING:
                return self._greeting()
            case _State.LOGIN:
                return self._password()
            case _State.REQUEST:
                return self._request()
            case _:
                return None

    def _greeting(self) -> list[Event] | None:
        buffer = self._buffer
        if buffer[0] == _SOCKS_4:
            return self._break("it speaks SOCKS 4; use SOCKS 5 with names (socks5h://)")
        if buffer[0] != _SOCKS_5:
            return self._break("it does not speak SOCKS 5")
        if len(buffer) < 2 or len(buffer) < 2 + buffer[1]:  # noqa: PLR2004 (version and count)
            return None
        offered = self._take(2 + buffer[1])[2:]
        if _PASSWORD in offered:
            self._state = _State.LOGIN
            return [Output(bytes((_SOCKS_5, _PASSWORD)))]
        if _NO_AUTHENTICATION in offered and not self._must_authenticate:
            self._state = _State.REQUEST
            return [Output(bytes((_SOCKS_5, _NO_AUTHENTICATION)))]
        refusal = Output(bytes((_SOCKS_5, _NO_METHOD)))
        return [refusal, *self._break("it offers no user name and password")]

    def _password(self) -> list[Event] | None:
        buffer = self._buffer
        if buffer[0] != _PASSWORD_VERSION:
            return self._break("its user name and password are malformed")
        if len(buffer) < 2:  # noqa: PLR2004 (version and length)
            return None
        name_end = 2 + buffer[1]
        if len(buffer) <= name_end or len(buffer) < name_end + 1 + buffer[name_end]:
            return None
        message = self._take(name_end + 1 + buffer[name_end])
        self._state = _State.JUDGING_LOGIN
        return [Authenticate(message[2:name_end].decode("latin-1"), message[name_end + 1 :].decode("latin-1"))]

    def _request(self) -> list[Event] | None:
        buffer = self._buffer
        if buffer[0] != _SOCKS_5:
            return self._break("its request is of another version")
        if len(buffer) < _REQUEST_HEAD:
            return None
        _, command, reserved, kind = buffer[:_REQUEST_HEAD]
        if reserved != 0:
            return self._reject(Reply.FAILED, "its request is malformed")
        if command != _CONNECT:
            return self._reject(Reply.COMMAND_NOT_SUPPORTED, "it wants something other than CONNECT")
        if kind not in _ADDRESS_SIZES:
            return self._reject(Reply.ADDRESS_TYPE_NOT_SUPPORTED, "it names the host in an unknown way")
        return self._connect(kind)

    def _connect(self, kind: int) -> list[Event] | None:
        buffer = self._buffer
        start, size = _REQUEST_HEAD, _ADDRESS_SIZES[kind]
        if kind == _AddressType.NAME and len(buffer) > _REQUEST_HEAD:
            start, size = _REQUEST_HEAD + 1, buffer[_REQUEST_HEAD]
        end = start + size
        if len(buffer) < end + _PORT_SIZE:
            return None
        message = self._take(end + _PORT_SIZE)
        self._state = _State.JUDGING_REQUEST
        return [ConnectRequested(_host_text(kind, message[start:end]), int.from_bytes(message[end:], "big"))]

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _reject(self, reply: Reply, why: str) -> list[Event]:
        return [Output(_reply(reply)), *self._break(why)]

    def _break(self, why: str) -> list[Event]:
        self._state = _State.OVER
        self._buffer.clear()
        return [Broken(why)]


def _reply(reply: Reply) -> bytes:
    # The address that we dial from is nobody's business inside: all zeroes, as most servers say.
    return bytes((_SOCKS_5, reply, 0, _AddressType.IPV4)) + bytes(_IPV4_SIZE + _PORT_SIZE)


def _host_text(kind: int, address: bytes) -> str:
    if kind == _AddressType.NAME:
        return address.decode("ascii", "surrogateescape")
    if kind == _AddressType.IPV4:
        return ".".join(map(str, address))
    return ":".join(f"{address[at] << 8 | address[at + 1]:x}" for at in range(0, _IPV6_SIZE, 2))
