"""Ports cross the wall one by one, each because somebody said so."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.blocking import BlockingSandbox

SERVE = """
import socket
service = socket.create_server(("127.0.0.1", 0))
print(service.getsockname()[1], flush=True)
while True:
    client = service.accept()[0]
    client.sendall(b"hello from inside")
    client.close()
"""
ASK = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10).recv(99).decode())"


@contextmanager
def _serving(sandbox: BlockingSandbox) -> Iterator[int]:
    with sandbox.spawn((sys.executable, "-I", "-S", "-c", SERVE)) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _heard(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        return client.recv(99)


def test_a_server_is_reached_by_the_next_command_and_not_by_the_host(net: Net, opened: Open) -> None:
    sandbox = opened(*net.allow("web.test"))
    with _serving(sandbox) as port:
        assert sandbox.run((sys.executable, "-c", ASK, str(port))).output == "hello from inside\n"
        with pytest.raises(ConnectionRefusedError):
            _heard(port)


@pytest.mark.parametrize("names", [pytest.param((), id="no network"), pytest.param(("web.test",), id="some network")])
def test_a_published_port_is_reached_by_the_host(net: Net, names: tuple[str, ...]) -> None:
    allowed = net.allow(*names) if names else ()
    with net.sandbox(*allowed, network__allowLocalBinding=True) as sandbox, _serving(sandbox) as inside:
        outside = _free_port()
        sandbox.publish(outside, inside)
        heard: list[bytes] = []
        asking = threading.Thread(target=lambda: heard.append(_heard(outside)))
        asking.start()
        sandbox.run("sleep 0.3")
        asking.join(20)
        assert heard == [b"hello from inside"]
        with pytest.raises(ConnectionRefusedError):
            _heard(inside)
    with pytest.raises(ConnectionRefusedError):
        _heard(outside)


ECHO = """
import socket, sys
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
stream.sendall(sys.argv[2].encode())
print(stream.recv(99).decode())
"""


def test_a_port_of_the_host_that_is_allowed_is_reached_and_its_neighbour_is_not(net: Net, opened: Open) -> None:
    sandbox = opened(f"127.0.0.1:{net.echo.port}")
    good, bad = net.mark(), net.mark()
    assert sandbox.run((sys.executable, "-c", ECHO, str(net.echo.port), good)).output == f"{good}\n"
    refused = sandbox.run((sys.executable, "-c", ECHO, str(net.hidden.port), bad))
    assert (refused.exit_code, b"ConnectionRefusedError" in refused.stderr) == (1, True)
    assert (len(net.journal.entries(good)), net.journal.entries(bad)) == (1, [])


def test_an_allowed_name_opens_no_port_of_the_host(net: Net, opened: Open) -> None:
    sandbox = opened("web.test")
    mark = net.mark()
    refused = sandbox.run((sys.executable, "-c", ECHO, str(net.echo.port), mark))
    assert (refused.exit_code, net.journal.entries(mark)) == (1, [])
