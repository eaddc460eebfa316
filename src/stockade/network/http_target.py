"""What a request to the proxy is about: the target of its first line.

Rules: CONNECT names ``host:port``. Every other method names a whole ``http://`` URL; ``https://`` is refused, because
it would have the client speak in the clear, and so is a path alone, because it names no host. The host is cut out and
handed on as it stands: whether it is one is for the judge. A user name before the host is refused here, lest a password
be shown; so is a fragment. Path and query go on byte for byte.

A connection that was carried here without the client's knowledge is the other way round: a path alone is right.

Source of truth: RFC 9112 section 3.2, RFC 3986 section 3.
"""

from __future__ import annotations

import re

from stockade.annotation import Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.network.http_head import FlawError
from stockade.network.refusal import Cause
from stockade.policy.port import split_port
from stockade.value import Value

_HTTP_PORT: Final = "80"
_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)(.*)")
_HINT: Final = "Ask the proxy with a whole URL (GET http://example.com/ HTTP/1.1), or with CONNECT example.com:443."


class Target(Value):
    """Host and port, as they were written, and what is left for the server behind them."""

    host_text: str
    port_text: str
    path: bytes


def read_connect(target: bytes) -> Target:
    """Read the target of CONNECT, or raise ``FlawError``."""
    text = target.decode("ascii")
    _refuse_user_name(text)
    return Target(*_split(text, ""), b"")


def read_absolute(method: bytes, target: bytes) -> Target:
    """Read the target of every other method, or raise ``FlawError``."""
    text = target.decode("ascii")
    found = _ABSOLUTE.fullmatch(text)
    if found is None:
        message = "it asks the proxy itself, and names no host"
        raise FlawError(message, _HINT)
    scheme, authority, path = found.groups()
    if scheme.lower() == "https":
        message = "a whole https:// URL would send its content in the clear"
        raise FlawError(message, f"Use CONNECT {escape(authority.rpartition('@')[2])} and speak TLS inside.")
    if scheme.lower() != "http":
        message = f"the proxy does not fetch {escape(scheme, 20)}:// URLs"
        raise FlawError(message, _HINT, status=501, cause=Cause.UNSUPPORTED, phrase="Not Implemented")
    _refuse_user_name(authority)
    if "#" in text:
        message = "its URL has a fragment"
        raise FlawError(message, "Leave out the # and what follows.")
    if not path and method == b"OPTIONS":
        path = "*"
    elif not path.startswith("/"):
        path = f"/{path}"
    return Target(*_split(authority, _HTTP_PORT), path.encode("ascii"))


def read_path(target: bytes) -> bytes:
    """Read the target of a request to a server, or raise ``FlawError``."""
    if not target.startswith(b"/") and target != b"*":
        message = "it speaks to a server as if that were a proxy"
        raise FlawError(message, "Begin the target with a slash.")
    if b"#" in target:
        message = "its target has a fragment"
        raise FlawError(message, "Leave out the # and what follows.")
    return target


def _refuse_user_name(authority: str) -> None:
    if "@" in authority:
        # The text is not shown: what stands before the @ may be a password.
        message = "it has an @ before its host"
        raise FlawError(message, "Leave the user name out, or send it in an Authorization header.")


def _split(authority: str, default_port: str) -> tuple[str, str]:
    try:
        host, port = split_port(authority)
    except InvalidTextError:
        # Whole, and without a port: whatever the judge makes of the host, it allows nothing without a port.
        return authority, ""
    return host, default_port if port is None else port
