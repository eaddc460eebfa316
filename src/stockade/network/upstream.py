"""A proxy between us and the world, taken from the host's environment or from settings.

Rules:

- ``http://``, ``https://`` (TLS to the proxy itself), ``socks5://`` and ``socks5h://`` (``socks://`` is the same);
  no scheme means ``http``. Anything else is an error: to go around a proxy that somebody asked for would be a
  surprise;
- which: for plain HTTP ``http_proxy``, for everything else ``https_proxy``, and ``all_proxy`` where that one is not
  set; small letters before capitals. An empty one counts as not set. ``HTTP_PROXY`` in capitals is not read in a CGI
  program, where a client could set it (CVE-2016-5385). ``no_proxy`` lists what is reached without;
- this host is always reached without: the proxy's loopback is another one;
- passwords are in no ``repr`` and in no error.

What the guard can do changes. A proxy is given the *name*, because in networks that need one, names often cannot
be resolved without it and the proxy's own rules are about names. So the address is chosen by the proxy, and only
literal addresses and a few well-known names are judged by us. ``socks5://`` (without ``h``) means that we resolve;
there every address is judged as usual.

Source of truth: curl's manual (proxy environment variables), RFC 3986, RFC 7617.
"""

from __future__ import annotations

from base64 import b64encode
from enum import Enum
from urllib.parse import unquote_to_bytes

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.no_proxy import NoProxy
from stockade.policy.host import Host, HostKind
from stockade.policy.port import Port, split_port
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.policy.destination import Destination

_HINT: Final = "write http://host:port, https://host:port or socks5h://host:port, with user:password@ if needed"
_LONGEST_SOCKS_FIELD: Final = 255
_LONGEST_ADDRESS: Final = 4096
_LOOPBACK_NAMES: Final = frozenset({"localhost", "::1"})


class UpstreamKind(Enum):
    """How the proxy is spoken to; the value is the scheme."""

    HTTP = "http"
    HTTPS = "https"
    SOCKS5 = "socks5"
    SOCKS5H = "socks5h"

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS."""
        return self in (UpstreamKind.SOCKS5, UpstreamKind.SOCKS5H)

    @property
    def resolves(self) -> bool:
        """Whether the proxy is given names, and not addresses."""
        return self is not UpstreamKind.SOCKS5


_DEFAULT_PORTS: Final = {
    UpstreamKind.HTTP: 80,
    UpstreamKind.HTTPS: 443,
    UpstreamKind.SOCKS5: 1080,
    UpstreamKind.SOCKS5H: 1080,
}


class Secret(Value):
    """User and password, as the bytes that the proxy gets. Not shown."""

    user: bytes
    password: bytes

    def __repr__(self) -> str:
        """Show that there is one, and no more."""
        return "Secret(...)"


class Upstream(Value):
    """One upstream proxy. Build it with ``Upstream.parse``."""

    kind: UpstreamKind
    host: Host
    port: Port
    secret: Secret | None = None

    def __str__(self) -> str:
        """Return its address without user and password."""
        hidden = "...@" if self.secret is not None else ""
        return f"{self.kind.value}://{hidden}{self.host}:{self.port}"

    @property
    def authorization(self) -> bytes | None:
        """The value of ``Proxy-Authorization``, if there is one to be sent."""
        if self.secret is None or self.kind.is_socks:
            return None
        return b"Basic " + b64encode(self.secret.user + b":" + self.secret.password)

    @classmethod
    def parse(cls, text: str) -> Upstream:
        """Read a proxy's address, or raise ``InvalidTextError``, which does not quote it."""
        if not text or len(text) > _LONGEST_ADDRESS:
            message = "the address of the upstream proxy is empty or too long"
            raise InvalidTextError(message, _HINT)
        scheme, mark, rest = text.partition("://")
        kind = _kind(scheme) if mark else UpstreamKind.HTTP
        authority = (rest if mark else text).partition("/")[0]
        secret_text, at, place = authority.rpartition("@")
        try:
            host_text, port_text = split_port(place)
            host = Host.parse(host_text)
            port = Port(_DEFAULT_PORTS[kind]) if port_text is None else Port.parse(port_text)
        except InvalidTextError:
            # Not quoted, nor what was wrong with it: a misplaced @ makes the password look like a host.
            message = "the address of the upstream proxy has no valid host and port"
            raise InvalidTextError(message, _HINT) from None
        return cls(kind, host, port, _secret(secret_text, kind) if at else None)


class Upstreams(Value):
    """Which proxy is used for what. ``plain`` is for plain HTTP requests, ``other`` for every other connection."""

    plain: Upstream | None = None
    other: Upstream | None = None
    no_proxy: NoProxy = NoProxy()

    def choose(self, destination: Destination, *, plain: bool = False) -> Upstream | None:
        """Return the proxy for a destination, or ``None`` where it is reached directly."""
        upstream = self.plain if plain else self.other
        if upstream is None or _is_this_host(destination.host) or self.no_proxy.covers(destination):
            return None
        return upstream

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Upstreams:
        """Read the variables, or raise ``InvalidTextError``, which names the variable."""
        everything = ("all_proxy", "ALL_PROXY")
        in_cgi = "REQUEST_METHOD" in environment
        return cls(
            _first(environment, ("http_proxy", *(() if in_cgi else ("HTTP_PROXY",)), *everything)),
            _first(environment, ("https_proxy", "HTTPS_PROXY", *everything)),
            NoProxy.parse(environment.get("no_proxy") or environment.get("NO_PROXY") or ""),
        )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> Upstream | None:
    name = next((name for name in names if environment.get(name)), None)
    if name is None:
        return None
    try:
        return Upstream.parse(environment[name])
    except InvalidTextError as error:
        message = f"{name} in the environment: {error.message}"
        raise InvalidTextError(message, error.hint) from None


def _kind(scheme: str) -> UpstreamKind:
    known = {kind.value: kind for kind in UpstreamKind} | {"socks": UpstreamKind.SOCKS5H}
    kind = known.get(scheme.lower())
    if kind is None:
        # A long "scheme" is no scheme but the beginning of something else, which may be a secret.
        shown = (
            f'"{escape(scheme)}"' if scheme.isascii() and scheme.isalnum() and len(scheme) <= len("socks4a") else "this"
        )
        message = f"an upstream proxy cannot be spoken to by {shown}"
        raise InvalidTextError(message, _HINT)
    return kind


def _secret(text: str, kind: UpstreamKind) -> Secret:
    user_text, _, password_text = text.partition(":")
    try:
        user, password = unquote_to_bytes(user_text), unquote_to_bytes(password_text)
    except UnicodeEncodeError:
        message = "user or password of the upstream proxy is not valid text"
        raise InvalidTextError(message, _HINT) from None
    if kind.is_socks and (not user or max(len(user), len(password)) > _LONGEST_SOCKS_FIELD):
        message = f"user and password of a SOCKS proxy have 1 to {_LONGEST_SOCKS_FIELD} bytes"
        raise InvalidTextError(message, _HINT)
    if b":" in user or any(byte < ord(" ") for byte in user + password):
        message = "user or password of the upstream proxy has a character that cannot be sent"
        raise InvalidTextError(message, _HINT)
    return Secret(user, password)


def _is_this_host(host: Host) -> bool:
    loopback = host.kind is HostKind.IPV4 and host.text.startswith("127.")
    return loopback or host.text in _LOOPBACK_NAMES or host.text.endswith(".localhost")
