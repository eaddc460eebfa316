"""Ports of the host by which it reaches servers inside a session, such as a dev server in a browser.

Only this machine can connect to one: it listens on loopback.
"""

from __future__ import annotations

from _socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from stockade.annotation import Final
from stockade.errors import InvalidTextError, StockadeError
from stockade.value import Value

_HIGHEST: Final = 65535
_BACKLOG: Final = 512


class Published(Value):
    """``host`` is a port of this machine, 0 for one that is free; ``inside`` is one of the session's localhost."""

    host: int
    inside: int

    def check(self) -> None:
        """Refuse what is no port."""
        if not 0 <= self.host <= _HIGHEST or not 0 < self.inside <= _HIGHEST:
            message = f"no such ports: {self.host}:{self.inside}"
            raise InvalidTextError(message, "give HOST:SANDBOX with ports from 1 to 65535, such as 8080:3000")

    @classmethod
    def parse(cls, text: str) -> Published:
        """Read ``HOST:SANDBOX``, or one number for both."""
        host, separator, inside = text.partition(":")
        numbers = (host, inside if separator else host)
        if not all(number.isascii() and number.isdecimal() and len(number) <= len(str(_HIGHEST)) for number in numbers):
            message = f"not a pair of ports: {text!a}"
            raise InvalidTextError(message, "give HOST:SANDBOX, such as 8080:3000")
        return cls(int(numbers[0]), int(numbers[1]))


def listen(published: Published) -> tuple[int, int]:
    """Return a listening socket on the host and its port."""
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setblocking(False)
    try:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", published.host))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        message = f"port {published.host} of this host cannot be used: {error.strerror}"
        raise StockadeError(message, "choose another one, or 0 for any that is free") from error
    port: int = listener.getsockname()[1]
    return listener.detach(), port
