"""What is said to an upstream proxy before a connection through it carries data. Bytes in, bytes out; no I/O.

Use: send ``opening()``; give each piece that comes to ``receive`` and send what it returns; once ``done``, the
bytes in ``trailing`` are the first of the connection itself. A proxy that says no, or nothing that makes sense,
raises ``ConnectError``. What it says in words is told on, escaped: it may be the only explanation there is.

Source of truth: RFC 9110 section 9.3.6 and RFC 9112 (CONNECT), RFC 1928 (SOCKS5), RFC 1929 (user and password).
"""

from __future__ import annotations

from ipaddress import ip_address

from stockade.annotation import TYPE_CHECKING, Final, Protocol
from stockade.escape import escape
from stockade.network.failure import ConnectError, Failure
from stockade.policy.host import HostKind

if TYPE_CHECKING:
    from stockade.network.upstream import Secret, Upstream
    from stockade.policy.destination import Destination

_LONGEST_HEAD: Final = 16 * 1024
_HEAD_ENDS: Final = (b"\n\r\n", b"\n\n")
_SUCCESS: Final = 2
_STATUS_DIGITS: Final = 3
_CREDENTIALS_WANTED: Final = 407
_STATUS_FAILURES: Final = {
    401: Failure.UPSTREAM_CREDENTIALS,
    _CREDENTIALS_WANTED: Failure.UPSTREAM_CREDENTIALS,
    502: Failure.UNREACHABLE,
    503: Failure.UNREACHABLE,
    504: Failure.TIMED_OUT,
}

_SOCKS_VERSION: Final = 5
_AUTH_VERSION: Final = 1
_NO_AUTH: Final = 0
_PASSWORD_AUTH: Final = 2
_CONNECT: Final = 1
_TYPE_V4: Final = 1
_TYPE_NAME: Final = 3
_TYPE_V6: Final = 4
_ADDRESS_LENGTHS: Final = {_TYPE_V4: 4, _TYPE_V6: 16}
_SOCKS_FAILURES: Final = {
    3: Failure.UNREACHABLE,
    4: Failure.UNREACHABLE,
    5: Failure.REFUSED,
    6: Failure.TIMED_OUT,
}


class Handshake(Protocol):
    """The client's side of one handshake."""

    @property
    def done(self) -> bool:
        """Whether the connection now carries data."""
        ...

    @property
    def trailing(self) -> bytes:
        """What came after the handshake, once it is done."""
        ...

    def opening(self) -> bytes:
        """Return what is sent first."""
        ...

    def receive(self, data: bytes) -> bytes:
        """Take what came, return what to send; raise ``ConnectError`` if it leads nowhere."""
        ...


def handshake(upstream: Upstream, destination: Destination) -> Handshake:
    """Return the handshake that leads through this proxy to this destination."""
    if upstream.kind.is_socks:
        return SocksHandshake(destination, upstream.secret)
    return ConnectHandshake(destination, upstream.authorization)


class ConnectHandshake:
    """A CONNECT request and its answer."""

    def __init__(self, destination: Destination, authorization: bytes | None = None) -> None:
        """Take where to, and the value of ``Proxy-Authorization``."""
        self._destination = destination
        self._authorization = authorization
        self._buffer = b""
        self.done = False

    @property
    def trailing(self) -> bytes:
        """What came after the answer."""
        return self._buffer if self.done else b""

    def opening(self) -> bytes:
        """Return the request."""
        target = str(self._destination).encode("ascii")
        lines = [b"CONNECT " + target + b" HTTP/1.1", b"Host: " + target]
        if self._authorization is not None:
            lines.append(b"Proxy-Authorization: " + self._authorization)
        return b"\r\n".join((*lines, b"", b""))

    def receive(self, data: bytes) -> bytes:
        """Read the answer; nothing more is ever sent."""
        self._buffer += data
        while not self.done:
            end = _head_end(self._buffer)
            if end is None:
                if len(self._buffer) > _LONGEST_HEAD:
                    raise self._error(Failure.UPSTREAM_BROKEN, "its answer does not end")
                self._check_beginning()
                break
            head, self._buffer = self._buffer[:end], self._buffer[end:]
            self.done = self._read(head)
        return b""

    def _check_beginning(self) -> None:
        """Notice at once what is no HTTP: a proxy of another kind would else be waited for until the time limit."""
        if not b"HTTP/1.".startswith(self._buffer[:7]):
            raise self._error(Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1")

    def _read(self, head: bytes) -> bool:
        """Read one head; an interim one is passed over."""
        line = head.partition(b"\n")[0].rstrip(b"\r")
        version, _, rest = line.partition(b" ")
        code, _, phrase = rest.partition(b" ")
        if version not in (b"HTTP/1.0", b"HTTP/1.1") or len(code) != _STATUS_DIGITS or not code.isdigit():
            raise self._error(Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1")
        status = int(code)
        kind = status // 100
        if kind == 1:
            return False
        if kind == _SUCCESS:
            return True
        words = escape(f"{status} {phrase.decode('latin-1')}".strip())
        raise self._error(_STATUS_FAILURES.get(status, Failure.UPSTREAM_REFUSED), f"it answered {words}")

    def _error(self, failure: Failure, detail: str) -> ConnectError:
        return ConnectError(failure, str(self._destination), detail)


def _head_end(buffer: bytes) -> int | None:
    """Return where a head ends: after the first empty line, whichever line ends the proxy uses."""
    ends = [place + len(end) for end in _HEAD_ENDS if (place := buffer.find(end)) != -1]
    return min(ends, default=None)


class SocksHandshake:
    """SOCKS5: methods, user and password if the proxy wants them, then the request."""

    def __init__(self, destination: Destination, secret: Secret | None = None) -> None:
        """Take where to, and who we are."""
        self._destination = destination
        self._secret = secret
        self._buffer = b""
        self._step = self._method
        self.done = False

    @property
    def trailing(self) -> bytes:
        """What came after the reply."""
        return self._buffer if self.done else b""

    def opening(self) -> bytes:
        """Return the methods that we offer."""
        methods = bytes((_NO_AUTH,)) if self._secret is None else bytes((_NO_AUTH, _PASSWORD_AUTH))
        return bytes((_SOCKS_VERSION, len(methods))) + methods

    def receive(self, data: bytes) -> bytes:
        """Read as many whole messages as there are."""
        self._buffer += data
        answer = b""
        while not self.done:
            more = self._step()
            if more is None:
                break
            answer += more
        return answer

    def _method(self) -> bytes | None:
        message = self._take(2)
        if message is None:
            return None
        version, method = message
        if version != _SOCKS_VERSION:
            raise self._error(Failure.UPSTREAM_BROKEN, "it does not speak SOCKS5")
        if method == _NO_AUTH:
            self._step = self._reply
            return self._request()
        if method == _PASSWORD_AUTH and self._secret is not None:
            self._step = self._authenticated
            user, password = self._secret.user, self._secret.password
            return bytes((_AUTH_VERSION, len(user))) + user + bytes((len(password),)) + password
        raise self._error(Failure.UPSTREAM_CREDENTIALS, "it wants another way of authentication")

    def _authenticated(self) -> bytes | None:
        message = self._take(2)
        if message is None:
            return None
        if message[1] != 0:
            raise self._error(Failure.UPSTREAM_CREDENTIALS, "")
        self._step = self._reply
        return self._request()

    def _request(self) -> bytes:
        host = self._destination.host
        if host.kind is HostKind.NAME:
            name = host.text.encode("ascii")
            address = bytes((_TYPE_NAME, len(name))) + name
        else:
            packed = ip_address(host.text).packed
            address = bytes((_TYPE_V4 if host.kind is HostKind.IPV4 else _TYPE_V6,)) + packed
        port = self._destination.port.number.to_bytes(2, "big")
        return bytes((_SOCKS_VERSION, _CONNECT, 0)) + address + port

    def _reply(self) -> bytes | None:
        """Read the reply. One that says no is believed before its address has come: some proxies send none."""
        if len(self._buffer) < 2:  # noqa: PLR2004 (version and code)
            return None
        version, code = self._buffer[:2]
        if version != _SOCKS_VERSION:
            raise self._error(Failure.UPSTREAM_BROKEN, "it does not speak SOCKS5")
        if code != 0:
            raise self._error(_SOCKS_FAILURES.get(code, Failure.UPSTREAM_REFUSED), f"it answered with code {code}")
        length = self._reply_length()
        if length is None or self._take(length) is None:
            return None
        self.done = True
        return b""

    def _reply_length(self) -> int | None:
        if len(self._buffer) < 5:  # noqa: PLR2004 (up to the first byte of the address)
            return None
        kind = self._buffer[3]
        length = 1 + self._buffer[4] if kind == _TYPE_NAME else _ADDRESS_LENGTHS.get(kind)
        if length is None:
            raise self._error(Failure.UPSTREAM_BROKEN, "its reply has an address of no known kind")
        return 4 + length + 2

    def _take(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        taken, self._buffer = self._buffer[:length], self._buffer[length:]
        return taken

    def _error(self, failure: Failure, detail: str) -> ConnectError:
        return ConnectError(failure, str(self._destination), detail)
