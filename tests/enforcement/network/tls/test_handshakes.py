"""Handshakes of real clients with the name that is allowed go through, whatever they make use of, by every way out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.conftest import Net
    from tests.enforcement.network.tls.conftest import Server, Yard

    from stockade.sandbox.blocking import BlockingSandbox

MANY = 300
#: With s_client, what leads through the proxy; a session needs a moment to come, after the handshake.
CLIENT = r"""
import os, subprocess, sys, time
from urllib.parse import urlsplit
way, port, authority, *more = sys.argv[1:]
words = ["openssl", "s_client", "-connect", f"web.test:{port}", "-servername", "web.test", "-CAfile", authority]
if way == "connect":
    place = urlsplit(os.environ["HTTP_PROXY"])
    words += ["-proxy", f"{place.hostname}:{place.port}"]
    if place.username:
        words += ["-proxy_user", place.username, "-proxy_pass", "env:TOKEN"]
        os.environ["TOKEN"] = place.password
process = subprocess.Popen([*words, "-verify_return_error", *more], stdin=subprocess.PIPE)
time.sleep(0.3)
process.stdin.write(b"a word by the client\nQ\n")
process.stdin.close()
sys.exit(process.wait())
"""
SERIES = r"""
import base64, os, socket, ssl, sys
from urllib.parse import urlsplit
way, port, authority, ciphers, count = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
context.set_ciphers(ciphers)
place = urlsplit(os.environ["HTTP_PROXY"])
secret = base64.b64encode(f"{place.username}:{place.password}".encode()).decode()
ask = f"CONNECT web.test:{port} HTTP/1.1\r\nHost: web.test:{port}\r\nProxy-Authorization: Basic {secret}\r\n\r\n"
answered = 0
for _ in range(int(count)):
    if way == "connect":
        stream = socket.create_connection((place.hostname, place.port), 20)
        stream.sendall(ask.encode())
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            said += stream.recv(1)
    else:
        stream = socket.create_connection(("web.test", int(port)), 20)
    with context.wrap_socket(stream, server_hostname="web.test") as secure:
        secure.sendall(b"GET / HTTP/1.0\n")
        said = b""
        while piece := secure.recv(4096):
            said += piece
        answered += said.endswith(b"hello\n")
print(answered)
"""


class Hall:
    """A sandbox, and servers of OpenSSL's that are there for these tests alone."""

    def __init__(self, net: Net, yard: Yard, sandbox: BlockingSandbox, servers: dict[str, Server]) -> None:
        self.net = net
        self.yard = yard
        self.sandbox = sandbox
        self.servers = servers

    def connect(self, way: str, server: Server, *more: str) -> str:
        """Connect with OpenSSL's own client; return what it says."""
        words = (sys.executable, "-I", "-c", CLIENT, way, str(server.port), str(self.net.ca), *more)
        result = self.sandbox.run(words, timeout=60)
        said = (result.stdout + result.stderr).decode("utf-8", "replace")
        assert (result.exit_code, result.violations) == (0, ()), said
        return said


@pytest.fixture(scope="module")
def hall(net: Net, tls_yard: Yard) -> Iterator[Hall]:
    servers = {
        "early": tls_yard.openssl("-early_data"),
        # Clients guess another group, and are asked for a second hello.
        "retry": tls_yard.openssl("-early_data", "-groups", "P-384"),
    }
    ports = [server.port for server in (*tls_yard.servers.values(), *servers.values())]
    with net.sandbox(*net.allow("web.test", ports=ports)) as sandbox:
        yield Hall(net, tls_yard, sandbox, servers)


WAYS = pytest.mark.parametrize("way", ["connect", "itself"])


@WAYS
@pytest.mark.parametrize("version", ["tls1_2", "tls1_3"])
@pytest.mark.parametrize("kind", ["openssl", "go", "node"])
def test_each_version_with_each_server(hall: Hall, kind: str, version: str, way: str) -> None:
    said = hall.connect(way, hall.yard.servers[kind], f"-{version}")
    assert "Verify return code: 0 (ok)" in said


@WAYS
@pytest.mark.parametrize("kind", ["early", "retry"])
def test_a_session_is_taken_up_again_with_early_data(hall: Hall, kind: str, way: str) -> None:
    server, word = hall.servers[kind], hall.net.mark()
    session, early = (hall.net.project / f"{hall.net.mark()}{name}" for name in ("session", "early"))
    early.write_text(f"{word}\n")
    hall.connect(way, server, "-tls1_3", "-sess_out", str(session))
    said = hall.connect(way, server, "-tls1_3", "-sess_in", str(session), "-early_data", str(early))
    assert "Verify return code: 0 (ok)" in said
    # Who is asked for a second hello loses what it sent early (RFC 8446 section 4.2.10), and the handshake goes on.
    accepted = kind == "early"
    assert (f"Early data was {'accepted' if accepted else 'rejected'}" in said, word in server.log) == (True, accepted)


@WAYS
@pytest.mark.parametrize("ciphers", ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-CHACHA20-POLY1305"])
def test_many_handshakes_whose_last_message_may_look_like_anything(hall: Hall, ciphers: str, way: str) -> None:
    """In TLS 1.2 it is encrypted, in a record of the handshake: one in 256 begins like a hello."""
    port, authority = str(hall.yard.servers["go"].port), str(hall.net.ca)
    words = (sys.executable, "-I", "-c", SERIES, way, port, authority, ciphers, str(MANY))
    result = hall.sandbox.run(words, timeout=100)
    assert (result.exit_code, result.stdout.decode(), result.violations) == (0, f"{MANY}\n", ()), result.stderr
