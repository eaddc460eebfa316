"""Attacks on the network's walls: each is made without walls as the control, then inside; the journal tells who heard.

A table maps the name of an attack to ``(script, end)``. A script is Python; it has a ``mark`` that it tries to bring to
any server of the world, and words for doing so: ``proxy`` (say bytes to the proxy, return the answer), ``connect``,
``ask`` (a DNS question), ``codes`` (the statuses in an answer). Its ``end`` is what it sets, or the name of an error
number. The control finds the same servers by a hosts file, and a proxy that judges nothing.

One process makes all attacks of a table, each in a child of its own.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import pytest

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.enforcement.network.conftest import Net

    from stockade.sandbox.blocking import BlockingSandbox

PATIENCE = 60.0

DRIVER = r"""
import base64, errno, json, os, re, signal, socket, ssl, struct, sys, time
from urllib.parse import urlsplit
task = json.load(sys.stdin)
facts = task["facts"]
place = urlsplit(os.environ["HTTP_PROXY"])
secret = f"{place.username}:{place.password}".encode()
auth = b"Proxy-Authorization: Basic " + base64.b64encode(secret) + b"\r\n" if place.username else b""

def hear(stream, seconds=None):
    stream.settimeout(seconds or facts["patience"])
    said = b""
    try:
        while piece := stream.recv(65536):
            said += piece
    except (TimeoutError, ConnectionResetError):
        pass
    return said

def to_proxy():
    return socket.create_connection((place.hostname, place.port), 10)

def proxy(*pieces):
    with to_proxy() as stream:
        for piece in pieces:
            stream.sendall(piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece)
        return hear(stream)

def head(stream):
    said = b""
    while b"\r\n\r\n" not in said and (piece := stream.recv(1)):
        said += piece
    return said

def request(target, *lines, method="GET", host=None):
    words = f"{method} {target} HTTP/1.1\r\nHost: {host or 'web.test'}\r\n".encode("utf-8", "surrogateescape")
    return words + auth + b"".join(line.encode() + b"\r\n" for line in lines) + b"\r\n"

def tunnel(target):
    stream = to_proxy()
    stream.settimeout(10)
    stream.sendall(request(target, method="CONNECT", host=target))
    return stream, head(stream)

def codes(said):
    return " ".join(re.findall(r"^HTTP/1\.1 (\d+)", said.decode("latin-1"), re.M)) or "closed"

def connect(host, port, seconds=10):
    return socket.create_connection((host, port), seconds)

def question(name, kind=1):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("latin-1").split(b"."))
    return os.urandom(2) + struct.pack("!HHHHH", 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)

def ask(name, kind=1, server=None, tcp=False):
    server = tuple(server or facts["dns"])
    with socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET, 1 if tcp else 2) as stream:
        stream.settimeout(5)
        stream.connect(server)
        words = question(name, kind)
        stream.sendall(len(words).to_bytes(2, "big") + words if tcp else words)
        reply = stream.recv(4096)[2 if tcp else 0:]
    return f"code {reply[3] & 15}, {reply[7]} answers"

def attempt(each):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            names = dict(globals(), **each, end="ok")
            exec(compile(each["script"], each["name"], "exec"), names)
            end = names["end"]
        except OSError as error:
            end = errno.errorcode.get(error.errno, f"{type(error).__name__}: {error}")
        except BaseException as error:
            end = f"{type(error).__name__}: {error}"
        os.write(writer, end.encode("utf-8", "backslashreplace"))
        os._exit(0)
    os.close(writer)
    end = b""
    while piece := os.read(reader, 65536):
        end += piece
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return end.decode() if status == 0 else f"status {status}"

print(json.dumps({each["name"]: attempt(each) for each in task["attempts"]}))
"""


class Ending(Value):
    """How an attack ended, and what any server heard of it."""

    end: str
    heard: tuple[str, ...]


class Trial(Value):
    """All attacks of a table: without walls, and inside."""

    control: Mapping[str, Ending]
    inside: Mapping[str, Ending]

    def judge(self, name: str, end: str) -> None:
        """Demand of an attack that somebody hears of it without walls, nobody inside, and that it ends just so."""
        assert self.control[name].heard, f"it proves nothing: {self.control[name]}"
        assert self.inside[name] == Ending(end, ())


class MakeTrial(Protocol):
    """Makes all attacks of a table, without walls and in a sandbox, or there alone."""

    def __call__(
        self,
        attacks: Mapping[str, tuple[str, ...]],
        sandbox: BlockingSandbox,
        *,
        inside_only: bool = False,
        **facts: object,
    ) -> Trial: ...


class Careless:
    """A proxy that judges nothing: it connects to whichever port of the world a request names. SOCKS too."""

    def __init__(self, ports: frozenset[int]) -> None:
        self._ports = ports
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError, StopIteration):
            client.settimeout(PATIENCE)
            said = client.recv(65536)
            if said[:1] in (b"\4", b"\5"):
                said = self._shake_hands(client, said)
                port = int.from_bytes(said[2:4] if said[0] == 4 else said[-2:], "big")
                said = b""
            else:
                port = next(port for port in map(int, re.findall(rb"\d+", said)) if port in self._ports)
            with socket.create_connection(("127.0.0.1", port)) as server:
                if said.startswith(b"CONNECT"):
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    server.sendall(said)
                other = threading.Thread(target=_pour, args=(server, client), daemon=True)
                other.start()
                _pour(client, server)
                other.join()

    @staticmethod
    def _shake_hands(client: socket.socket, said: bytes) -> bytes:
        if said[0] == 4:
            client.sendall(b"\0\x5a" + bytes(6))
            return said
        client.sendall(b"\5\0")
        asked = client.recv(65536)
        client.sendall(b"\5\0\0\1" + bytes(6))
        return asked


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture(scope="session")
def careless(net: Net) -> Iterator[Careless]:
    """The proxy of the controls."""
    proxy = Careless(frozenset((*net.ports, net.hidden.port)))
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture(scope="session")
def make_trial(net: Net, careless: Careless) -> MakeTrial:
    """Make all attacks of a table in two places. Of a fact that is a pair, the control gets the first."""

    def make(
        attacks: Mapping[str, tuple[str, ...]],
        sandbox: BlockingSandbox,
        *,
        inside_only: bool = False,
        **facts: object,
    ) -> Trial:
        known: dict[str, object] = {
            "http": net.http.port,
            "https": net.https.port,
            "echo": net.echo.port,
            "hidden": net.hidden.port,
            "patience": (0.3, 10),
            "udp": net.hidden_udp_port,
            "dns": (("127.0.0.1", net.names.port), ("127.0.0.1", 53)),
            **facts,
        }
        words = (sys.executable, "-I", "-S", "-c", DRIVER)

        def run(place: int) -> dict[str, Ending]:
            here = {name: fact[place] if isinstance(fact, tuple) else fact for name, fact in known.items()}
            marks = {name: net.mark() for name in attacks}
            attempts = [{"name": name, "script": attacks[name][0], "mark": mark} for name, mark in marks.items()]
            task = json.dumps({"facts": here, "attempts": attempts}).encode()
            if place == 0:
                done = net.bare(words, stdin=task, env={"HTTP_PROXY": f"http://127.0.0.1:{careless.port}"})
                assert (done.returncode, done.stderr) == (0, b"")
                said = done.stdout
            else:
                result = sandbox.run(words, stdin=task, timeout=PATIENCE)
                assert (result.exit_code, result.stderr) == (0, b"")
                said = result.stdout
            ends: dict[str, str] = json.loads(said)
            return {name: Ending(end, tuple(net.journal.entries(marks[name]))) for name, end in ends.items()}

        return Trial({} if inside_only else run(0), run(1))

    return make
