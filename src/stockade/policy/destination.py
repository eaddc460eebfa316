"""Where a connection leads: a host and a port, read from what people write.

Rules: ``host:port``, ``[IPv6]:port``, or a URL, whose scheme gives the port if it does not name one. Nothing
is decoded and nothing is dropped but path, query and fragment of a URL. A user name or a backslash is
refused: programs differ on which side of it the host stands.

Source of truth: RFC 3986 section 3.2, the IANA registry of ports.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.host import Host
from stockade.policy.port import Port, split_port
from stockade.value import Value

_SCHEME_PORTS: Final = {
    "http": 80,
    "https": 443,
    "ws": 80,
    "wss": 443,
    "ftp": 21,
    "ftps": 990,
    "git": 9418,
    "git+ssh": 22,
    "sftp": 22,
    "ssh": 22,
}
_HINT: Final = "write host:port or a URL: example.com:443, https://example.com/"


class Destination(Value):
    """A canonical host and a port: what is checked and what is dialled."""

    host: Host
    port: Port

    def __str__(self) -> str:
        """Return ``host:port``, IPv6 in brackets; parsing it gives this destination again."""
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, *, default_port: Port | None = None) -> Destination:
        """Read ``host:port`` or a URL, or raise ``InvalidTextError``.

        ``default_port`` is taken where neither a port nor a scheme says which.
        """
        scheme, mark, rest = text.partition("://")
        if mark:
            default_port = _scheme_port(scheme)
            for end in "/?#":
                rest = rest.partition(end)[0]
        authority = rest if mark else text
        if "@" in authority:
            # The text is not shown: what stands before the @ may be a password.
            message = "the destination has an @ before its host"
            raise InvalidTextError(message, "leave the user name out")
        host_text, port_text = split_port(authority)
        host = Host.parse(host_text)
        if port_text is not None:
            return cls(host, Port.parse(port_text))
        if default_port is None:
            message = f'"{escape(text)}" has no port'
            raise InvalidTextError(message, _HINT)
        return cls(host, default_port)


def _scheme_port(scheme: str) -> Port:
    number = _SCHEME_PORTS.get(scheme.lower())
    if number is None:
        message = f'"{escape(scheme)}://" is not a scheme with a known port'
        raise InvalidTextError(message, _HINT)
    return Port(number)
