"""The words that both sides of the HTTP proxy speak: what one side hears is what the other is told.

A request or response here has one meaning only. Its framing is a value (``Body``), not headers; headers that concern
one connection alone are gone; the host is apart from them all. So whoever writes it out again writes something that
no reader can take for anything else.

Source of truth: RFC 9110, RFC 9112.
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import Final, TypeAlias
from stockade.value import Value

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class BodyKind(Enum):
    """How the end of a body is told."""

    NONE = "there is no body"
    LENGTH = "its length is given"
    CHUNKED = "it comes in chunks"
    UNTIL_CLOSE = "it ends with the connection"


class Body(Value):
    """The framing of a body."""

    kind: BodyKind
    length: int = 0


NO_BODY: Final = Body(BodyKind.NONE)
CHUNKED: Final = Body(BodyKind.CHUNKED)
UNTIL_CLOSE: Final = Body(BodyKind.UNTIL_CLOSE)


class Credentials(Value):
    """Who a client says it is. The password is not printed."""

    username: str
    password: str

    def __repr__(self) -> str:
        """Leave the password out: values end up in logs."""
        return f"Credentials({self.username!r}, ...)"


class TunnelRequested(Value):
    """CONNECT: the host and port as the client spelt them, neither checked."""

    host_text: str
    port_text: str
    credentials: Credentials | None = None


class Request(Value):
    """A request to be passed on: the host and port as the client spelt them, neither checked.

    ``target`` is in origin form, or ``*``; ``upgrade`` is set if the client offers to go on with another protocol.
    """

    method: bytes
    host_text: str
    port_text: str
    target: bytes
    headers: Headers
    body: Body
    credentials: Credentials | None = None
    upgrade: bytes = b""


class Interim(Value):
    """A response of 100 to 199, other than 101: the real one is still to come."""

    status: int
    reason: bytes
    headers: Headers


class Response(Value):
    """The head of a response. ``body`` is what it declares; ``empty`` says that none follows all the same."""

    status: int
    reason: bytes
    headers: Headers
    body: Body
    empty: bool = False


class Switched(Value):
    """The server goes on with the protocol that the client offered; what follows is not HTTP."""

    reason: bytes
    headers: Headers
    upgrade: bytes


class Data(Value):
    """A piece of a body."""

    data: bytes


class End(Value):
    """The end of a message, with the trailers that may be passed on."""

    trailers: Headers = ()
