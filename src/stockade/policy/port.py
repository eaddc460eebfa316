"""A TCP port, and where it is cut from the host beside it.

Rules: 1 to 65535, ASCII digits alone. No sign, space, underscore or leading zero: ``080`` is 64 to one
reader and 80 to another, so it is refused rather than guessed. Port 0 cannot be connected to.

Source of truth: RFC 9293 (ports), RFC 3986 section 3.2 (host and port; IPv6 in brackets).
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.value import Value

_HIGHEST: Final = 65535
_MOST_DIGITS: Final = 5
_LARGEST_SHOWN: Final = 10**18
_HINT: Final = f"write a whole number from 1 to {_HIGHEST}, in plain digits"


class Port(Value):
    """A port that can be connected to. Build it with ``Port.parse``."""

    number: int

    def check(self) -> None:
        """Refuse numbers that are no port."""
        if type(self.number) is not int or not 1 <= self.number <= _HIGHEST:
            # In hexadecimal, because Python refuses to write very large numbers in decimal.
            raise _not_a_port(str(self.number) if abs(self.number) <= _LARGEST_SHOWN else hex(self.number))

    def __str__(self) -> str:
        """Return the digits."""
        return str(self.number)

    @classmethod
    def parse(cls, text: str | int) -> Port:
        """Read a port, or raise ``InvalidTextError``."""
        if isinstance(text, int):
            return cls(text)
        plain = text.isascii() and text.isdigit() and not text.startswith("0") and len(text) <= _MOST_DIGITS
        if not plain:
            raise _not_a_port(text)
        return cls(int(text))


def split_port(text: str) -> tuple[str, str | None]:
    """Cut ``host:port`` in two; the port is ``None`` where there is no colon, and neither is checked.

    An IPv6 address must stand in brackets, which are kept: without them nobody can tell whether
    ``::1:8080`` ends in a port.
    """
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket:
            message = f'"{escape(text)}" opens a bracket that it does not close'
            raise InvalidTextError(message, "write an IPv6 address as [::1], with a port as [::1]:8080")
        if rest and not rest.startswith(":"):
            message = f'"{escape(text)}" has something other than a port after the bracket'
            raise InvalidTextError(message, "write an IPv6 address as [::1], with a port as [::1]:8080")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = text.partition(":")
    if ":" in port:
        message = f'"{escape(text)}" has several colons'
        raise InvalidTextError(message, "put an IPv6 address in brackets: [::1], with a port [::1]:8080")
    return host, port if colon else None


def _not_a_port(text: str) -> InvalidTextError:
    return InvalidTextError(f'"{escape(text)}" is not a port', _HINT)
