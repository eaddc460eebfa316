"""Which headers a proxy passes on.

Rules: what concerns one connection stays on it: ``Connection`` and all that it lists, ``Keep-Alive``, ``TE`` (but for
``trailers``), ``Trailer``, ``Transfer-Encoding``, ``Upgrade`` and ``HTTP2-Settings``, and every ``Proxy-`` header.
``Content-Length`` and ``Host`` go too: whoever writes the message writes them anew, from what was read and from what
was judged. Of upgrades only WebSocket is offered: HTTP/2 would carry requests that nobody judges.

Source of truth: RFC 9110 sections 6.5.1 and 7.6, RFC 6455 section 4.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from stockade.annotation import Final
from stockade.network.http_message import Credentials, Headers

_OF_ONE_CONNECTION: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# Only Stockade says why Stockade refused.
_OURS: Final = frozenset({b"x-proxy-error"})
# A trailer may not change how the message is framed, routed or understood.
_NEVER_TRAILERS: Final = frozenset(
    {
        b"authorization",
        b"cache-control",
        b"content-encoding",
        b"content-range",
        b"content-type",
        b"cookie",
        b"expect",
        b"max-forwards",
        b"range",
        b"set-cookie",
    }
)
_PROXY: Final = b"proxy-"
_BASIC: Final = b"basic "
WEBSOCKET: Final = b"websocket"


def words(headers: Headers, name: bytes) -> frozenset[bytes]:
    """Return the words of a comma-separated header, over all its lines, in lower case."""
    lists = (value.lower().split(b",") for found, value in headers if found == name)
    return frozenset(word.strip(b" \t") for parts in lists for word in parts) - {b""}


def passed_on(headers: Headers) -> Headers:
    """Return the headers that go on to the other side, in their order."""
    dropped = _OF_ONE_CONNECTION | _OURS | words(headers, b"connection")
    kept = tuple((name, value) for name, value in headers if name not in dropped and not name.startswith(_PROXY))
    return (*kept, (b"te", b"trailers")) if b"trailers" in words(headers, b"te") else kept


def trailers_passed_on(trailers: Headers) -> Headers:
    """Return the trailers that go on to the other side."""
    return tuple((name, value) for name, value in passed_on(trailers) if name not in _NEVER_TRAILERS | {b"te"})


def offered_upgrade(headers: Headers) -> bytes:
    """Return the protocol that a message goes on with if the other side wants to: WebSocket, or nothing."""
    offered = b"upgrade" in words(headers, b"connection") and words(headers, b"upgrade") == {WEBSOCKET}
    return WEBSOCKET if offered else b""


def takes_any_answer(headers: Headers) -> bool:
    """Tell whether the client is one that ends well whatever status it is answered with: curl."""
    return any(name == b"user-agent" and value.startswith(b"curl/") for name, value in headers)


def proxy_credentials(headers: Headers) -> Credentials | None:
    """Return the user name and password for the proxy, ``None`` if there are none, or none that can be read."""
    given = [value for name, value in headers if name == b"proxy-authorization"]
    if len(given) != 1 or given[0][: len(_BASIC)].lower() != _BASIC:
        return None
    try:
        text = b64decode(given[0][len(_BASIC) :].strip(b" "), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    username, colon, password = text.partition(":")
    return Credentials(username, password) if colon else None
