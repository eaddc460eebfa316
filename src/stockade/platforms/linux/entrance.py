"""The sockets at which a session's network is served: made inside its namespace, used on the host.

The proxies accept on them directly, so that no bridge stands between and nothing has to come up before a command's
first connection: the kernel keeps it until somebody accepts.

Rules: each is made with a label that says what it is for, and travels with it; a family that the kernel lacks is left
out; where connections cannot be led here (see ``routing``) there is no name server either, for its answers would be
addresses that lead nowhere. A port of the host that a command of the session has taken is left to that command.
"""

from __future__ import annotations

import os
from _socket import (
    AF_INET,
    AF_INET6,
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SO_REUSEADDR,
    SOCK_CLOEXEC,
    SOCK_DGRAM,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)
from errno import EADDRINUSE

HTTP = b"http"
SOCKS = b"socks"
TRANSPARENT = b"transparent"
NAME_UDP = b"name-udp"
NAME_TCP = b"name-tcp"
HOST = b"host "
TAKEN = b"taken "
UNROUTED = b"unrouted "

HTTP_PORT = 3128
SOCKS_PORT = 1080
TRANSPARENT_PORT = 3129
NAME_PORT = 53
_IPV4 = b"127.0.0.1"
_IPV6 = b"::1"
_BACKLOG = 4096


class Entrances:
    """Sockets, each with a label, and what is to be told about those that there are not."""

    def __init__(self) -> None:
        """Begin with none."""
        self.sockets: list[int] = []
        self._names: list[bytes] = []
        self._told: list[bytes] = []

    @property
    def labels(self) -> list[bytes]:
        """The labels of the sockets, in order, and then those that have none."""
        return self._names + self._told

    def add(self, label: bytes, descriptor: int) -> None:
        """Take a socket."""
        self._names.append(label)
        self.sockets.append(descriptor)

    def tell(self, text: bytes) -> None:
        """Take a label that has no socket."""
        self._told.append(text)

    def open_all(self) -> None:
        """Open what every session has."""
        self.add(HTTP, _bound(SOCK_STREAM, _IPV4, HTTP_PORT))
        self.add(SOCKS, _bound(SOCK_STREAM, _IPV4, SOCKS_PORT))
        from stockade.platforms.linux import routing  # not for the owner, who needs the numbers of the ports

        try:
            routing.carry(TRANSPARENT_PORT, NAME_PORT)
        except OSError as error:
            step: bytes = os.fsencode(error.filename or b"routing")
            self.tell(UNROUTED + step + os.fsencode(f": {error.strerror}"))
            return
        for address in (_IPV4, _IPV6):
            try:
                self.add(TRANSPARENT, _bound(SOCK_STREAM, address, TRANSPARENT_PORT))
                self.add(NAME_UDP, _bound(SOCK_DGRAM, address, NAME_PORT))
                self.add(NAME_TCP, _bound(SOCK_STREAM, address, NAME_PORT))
            except OSError:
                if address == _IPV4:
                    raise

    def open_hosts(self, wanted: list[bytes]) -> None:
        """Open what leads to ports of the host, each given as address, a space, and port."""
        for text in wanted:
            address, _, port = text.rpartition(b" ")
            try:
                self.add(HOST + text, _bound(SOCK_STREAM, address, int(port)))
            except OSError as error:
                if error.errno != EADDRINUSE and address == _IPV4:
                    raise
                self.tell(TAKEN + text)

    def close(self) -> None:
        """Close them here; whoever was sent them has copies."""
        while self.sockets:
            os.close(self.sockets.pop())


def _bound(kind: int, address: bytes, port: int) -> int:
    family = AF_INET6 if b":" in address else AF_INET
    end = socket(family, kind | SOCK_CLOEXEC)
    try:
        if family == AF_INET6:
            end.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        if kind == SOCK_STREAM:
            end.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        end.bind((address.decode(), port))
        if kind == SOCK_STREAM:
            end.listen(_BACKLOG)
        return end.detach()
    except BaseException:
        end.close()
        raise
