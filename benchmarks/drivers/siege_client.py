"""A program inside a sandbox that uses its network in every way at once, until somebody ends it.

Arguments: the port of a server on the host that sends back what it gets. The proxy is that of the environment; a name
that the sandbox carries without a proxy is ``echo.test``.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
from base64 import b64encode
from contextlib import suppress

PORT = int(sys.argv[1])
SECRET = os.environ["HTTP_PROXY"].removeprefix("http://").rpartition("@")[0]
LOGIN = b"Proxy-Authorization: Basic " + b64encode(SECRET.encode()) + b"\r\n"
THREADS = 6
PIECE = 16384
KEPT = 20
OFTEN, NOW_AND_THEN, SELDOM = 0.9, 0.5, 0.1
dice = random.Random()  # noqa: S311 - not a secret


def proxy() -> socket.socket:
    """Connect to the proxy."""
    return socket.create_connection(("127.0.0.1", 3128), 20)


def connected() -> socket.socket:
    """Open a tunnel by HTTP."""
    end = proxy()
    target = b"127.0.0.1:%d" % PORT
    end.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n" + LOGIN + b"\r\n")
    end.recv(PIECE)
    return end


def socksified() -> socket.socket:
    """Open a tunnel by SOCKS 5."""
    user, _, token = SECRET.partition(":")
    end = proxy()
    end.sendall(b"\5\1\2" + bytes((1, len(user))) + user.encode() + bytes((len(token),)) + token.encode())
    end.sendall(b"\5\1\0\1" + socket.inet_aton("127.0.0.1") + PORT.to_bytes(2, "big"))
    got = b""
    while len(got) < 2 + 2 + 10:
        got += end.recv(PIECE)
    return end


def carried() -> socket.socket:
    """Connect by name, as if there were no proxy."""
    return socket.create_connection(("echo.test", PORT), 20)


def refused() -> socket.socket:
    """Ask for what nobody may."""
    end = proxy()
    host = b"h%d.evil.test" % dice.randrange(50)
    end.sendall(b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host + b"\r\n" + LOGIN + b"\r\n")
    end.recv(PIECE)
    return end


def nonsense() -> socket.socket:
    """Say what nobody understands."""
    end = proxy()
    end.sendall(os.urandom(dice.randrange(1, 400)))
    return end


WAYS = (connected, connected, socksified, carried, refused, nonsense)


def use(end: socket.socket) -> None:
    """Send some and read some, or leave early, or leave it lying about."""
    with end:
        for _ in range(dice.choice((0, 1, 5, 40))):
            end.sendall(bytes(PIECE))
            if dice.random() < OFTEN:
                end.recv(PIECE)
        if dice.random() < NOW_AND_THEN:
            end.shutdown(socket.SHUT_WR)
            while end.recv(PIECE):
                pass


def work() -> None:
    """Go on for ever."""
    kept: list[socket.socket] = []
    while True:
        with suppress(OSError):
            end = dice.choice(WAYS)()
            if dice.random() < SELDOM:
                kept.append(end)  # idle, and closed by whoever is done with us
            else:
                use(end)
        if len(kept) > KEPT:
            kept.pop(0).close()


for _ in range(THREADS):
    threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
