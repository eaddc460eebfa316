from __future__ import annotations

import socket
import sys
from typing import cast

import pytest

from stockade.network.original_destination import original_destination

# A real redirection needs a network namespace: tests/platforms/linux/test_routing.py has it.

IPV4 = (2).to_bytes(2, sys.byteorder) + (443).to_bytes(2, "big") + bytes((198, 18, 5, 5)) + bytes(8)
IPV6 = (
    (10).to_bytes(2, sys.byteorder) + (80).to_bytes(2, "big") + bytes(4) + socket.inet_pton(socket.AF_INET6, "fd73::5")
)


class Redirected:
    """A connection as the kernel describes it."""

    def __init__(self, family: int, known: dict[tuple[int, int, int], bytes], name: tuple[object, ...]) -> None:
        self.family = family
        self.known = known
        self.name = name

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return self.known[level, option, size]

    def getsockname(self) -> tuple[object, ...]:
        return self.name


FIRST = {(0, 80, 16): IPV4}
SECOND = {(41, 80, 28): IPV6 + bytes(4)}


def ask(connection: Redirected) -> tuple[str, int]:
    return original_destination(cast("socket.socket", connection))


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param(Redirected(socket.AF_INET, FIRST, ("127.0.0.1", 3129)), ("198.18.5.5", 443), id="ipv4"),
        pytest.param(Redirected(socket.AF_INET, FIRST, ("198.18.5.5", 3129)), ("198.18.5.5", 443), id="other-port"),
        pytest.param(Redirected(socket.AF_INET, FIRST, ("127.0.0.1", 443)), ("198.18.5.5", 443), id="other-address"),
        pytest.param(Redirected(socket.AF_INET6, SECOND, ("::1", 3129, 0, 0)), ("fd73::5", 80), id="ipv6"),
    ],
)
def test_a_redirected_connection_was_meant_for_somebody_else(connection: Redirected, expected: object) -> None:
    assert ask(connection) == expected


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param(Redirected(socket.AF_INET, FIRST, ("198.18.5.5", 443)), id="ipv4"),
        pytest.param(Redirected(socket.AF_INET6, SECOND, ("fd73::5", 80, 0, 0)), id="ipv6"),
    ],
)
def test_a_connection_to_the_listener_itself_has_no_other_destination(connection: Redirected) -> None:
    with pytest.raises(OSError, match="the listener itself"):
        ask(connection)


def test_a_connection_that_nobody_redirected_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection, pytest.raises(OSError, match=r".") as caught:
            original_destination(connection)
        assert caught.value.errno
