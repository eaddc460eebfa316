"""Real servers of TLS that write down each name that they are asked for, and a client that says whatever it is given.

The servers are OpenSSL's own program, one in Go and one in Node: they differ in what they forgive a client. Each
answers any name. The client makes no TLS of its own: it plays a list of steps, and reports the kinds of records that it
heard. A hello needs no secret to be answered, so the bytes of all hellos are made here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

    from tests.enforcement.network.conftest import Net

    from stockade.sandbox.blocking import BlockingSandbox

PATIENCE = 60.0
KINDS = ("openssl", "go", "node")

NODE = r"""
const tls = require("tls"), fs = require("fs");
const own = { cert: fs.readFileSync(process.argv[1]), key: fs.readFileSync(process.argv[2]) };
const context = tls.createSecureContext(own);
const server = tls.createServer({ ...own, SNICallback: (name, done) => {
  fs.writeSync(1, `name "${name}"\n`);
  done(null, context);
} }, stream => {
  stream.on("error", () => {});
  stream.once("data", () => stream.end("HTTP/1.0 200 OK\r\n\r\nhello\n"));
});
server.on("tlsClientError", () => {});
server.listen(0, "127.0.0.1", () => fs.writeSync(1, `ACCEPT 127.0.0.1:${server.address().port}\n`));
"""

PLAYER = r"""
import base64, errno, json, os, socket, sys, time
from urllib.parse import urlsplit
task = json.load(sys.stdin)

def exactly(stream, size):
    heard = b""
    while len(heard) < size:
        piece = stream.recv(size - len(heard))
        if not piece:
            raise EOFError
        heard += piece
    return heard

def by_connect(host, port):
    place = urlsplit(os.environ["HTTP_PROXY"])
    stream = socket.create_connection((place.hostname, place.port), 10)
    secret = base64.b64encode(f"{place.username}:{place.password}".encode()).decode()
    auth = f"Proxy-Authorization: Basic {secret}\r\n" if place.username else ""
    stream.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{auth}\r\n".encode())
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        said += exactly(stream, 1)
    return stream

def by_socks(host, port):
    place = urlsplit(os.environ["HTTP_PROXY"])
    stream = socket.create_connection((place.hostname, place.port), 10)
    method = 2 if place.username else 0
    stream.sendall(bytes([5, 1, method]))
    exactly(stream, 2)
    if method:
        user, token = place.username.encode(), place.password.encode()
        stream.sendall(b"\1" + bytes([len(user)]) + user + bytes([len(token)]) + token)
        exactly(stream, 2)
    stream.sendall(b"\5\1\0\3" + bytes([len(host)]) + host.encode() + port.to_bytes(2, "big"))
    exactly(stream, 10)
    return stream

def by_itself(host, port):
    return socket.create_connection((host, port), 10)

def play(stream, heard):
    for step, *given in task["steps"]:
        if step == "send":
            data, size = bytes.fromhex(given[0]), given[1]
            for at in range(0, len(data), size):
                stream.sendall(data[at:at + size])
                if size < len(data):
                    time.sleep(0.001)
        elif step == "hear":
            while True:
                head = exactly(stream, 5)
                heard.append((head[0], exactly(stream, int.from_bytes(head[3:], "big"))))
                if head[0] == 22:
                    break
        elif step == "end":
            stream.shutdown(socket.SHUT_WR)
    stream.settimeout(task["patience"])
    while True:
        head = exactly(stream, 5)
        heard.append((head[0], exactly(stream, int.from_bytes(head[3:], "big"))))

def attempt(way):
    heard = []
    try:
        stream = {"connect": by_connect, "socks": by_socks, "itself": by_itself}[way](task["host"], task["port"])
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.settimeout(10)
        with stream:
            play(stream, heard)
    except TimeoutError:
        end = "open"
    except (EOFError, ConnectionError):
        end = "ended"
    return {"heard": [kind for kind, _ in heard], "end": end}

print(json.dumps({way: attempt(way) for way in task["ways"]}))
"""


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def _extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(data)


def records(data: bytes, size: int = 1 << 14, *, kind: int = 22, version: bytes = b"\3\1") -> bytes:
    return b"".join(bytes([kind]) + version + vector(data[at : at + size]) for at in range(0, len(data), size))


_X25519, _P256 = b"\0\x1d", b"\0\x17"
_SIGNATURES = b"\4\3\x08\7\x08\4\4\1\5\3\6\3"


def message(name: str | None, *, version: int = 3, share: bool = True, early: bool = False) -> bytes:
    """Return a hello for TLS 1.2 or 1.3. Without a share of a key, a server of TLS 1.3 asks for a second hello."""
    extensions = b"" if name is None else _extension(0, vector(b"\0" + vector(name.encode())))
    # In TLS 1.2 the curve of the server's certificate must be among them.
    groups = _X25519 if version == 3 else _X25519 + _P256
    extensions += _extension(10, vector(groups)) + _extension(13, vector(_SIGNATURES)) + _extension(11, b"\1\0")
    if version == 3:
        key = _X25519 + vector(b"\x09" + bytes(31)) if share else b""
        extensions += _extension(43, b"\2\3\4") + _extension(45, b"\1\1")
        extensions += _extension(42, b"") if early else b""
        extensions += _extension(51, vector(key))
    suites = b"\x13\1\x13\3" if version == 3 else b"\xc0\x2b\xc0\x2f\xcc\xa9"
    session = bytes(range(32)) if version == 3 else b""
    body = b"\3\3" + b"r" * 32 + vector(session, 1) + vector(suites) + b"\1\0" + vector(extensions)
    return b"\1" + vector(body, 3)


Steps = list[list[Any]]


def send(data: bytes, size: int = 1 << 20) -> list[Any]:
    return ["send", data.hex(), size]


HEAR: list[Any] = ["hear"]


class Ending(Value):
    """How an attempt ended: the kinds of records that were heard, and whether the connection still stood."""

    heard: tuple[int, ...]
    end: str


class Server:
    """One server, which writes what it is asked for into a file."""

    def __init__(self, kind: str, words: Sequence[str], log: Path) -> None:
        self.kind = kind
        self._log = log
        with log.open("wb") as out:
            # OpenSSL's ends a connection when there is nothing more to be said to it.
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=out)
        self.port = self._wait_for_port()

    def names(self, mark: str) -> list[str]:
        """Return the names with a mark that it was asked for."""
        # OpenSSL says: Hostname in TLS extension: "NAME".
        return re.findall(rf'(?:^name|extension:) "([^"\n]*{mark}[^"\n]*)"', self.log, re.MULTILINE)

    @property
    def log(self) -> str:
        """All that it wrote."""
        return self._log.read_text("utf-8", "replace")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _wait_for_port(self) -> int:
        for _ in range(1200):
            found = re.search(r"ACCEPT 127\.0\.0\.1:(\d+)", self.log)
            if found is not None:
                return int(found[1])
            assert self._process.poll() is None, self.log
            time.sleep(0.025)
        message = f"{self.kind} does not listen: {self.log}"
        raise TimeoutError(message)


class Yard:
    """All servers and programs of the tests of TLS."""

    def __init__(self, net: Net, go_program: str) -> None:
        self.net = net
        self.folder = net.root / "tls"
        self.folder.mkdir()
        self._stack = ExitStack()
        own = (str(net.root / "leaf.pem"), str(net.root / "leaf.key"))
        self.servers = {
            "go": self.start("go", [go_program, *own]),
            "node": self.start("node", ["node", "-e", NODE, *own]),
            "openssl": self.openssl(),
        }

    def start(self, kind: str, words: Sequence[str]) -> Server:
        server = Server(kind, words, self.folder / f"{len(os.listdir(self.folder))}-{kind}.log")
        self._stack.callback(server.close)
        return server

    def openssl(self, *more: str) -> Server:
        """Start OpenSSL's server, which has a second certificate for one name."""
        cert, key = str(self.net.root / "leaf.pem"), str(self.net.root / "leaf.key")
        both = ("-cert", cert, "-key", key, "-cert2", cert, "-key2", key, "-servername", "evil.test")
        # Into a file its words would go only when there are many.
        words = ["stdbuf", "-oL", "openssl", "s_server", "-accept", "127.0.0.1:0", *both, *(more or ("-www",))]
        return self.start("openssl", words)

    def close(self) -> None:
        self._stack.close()

    def play(
        self, server: Server, steps: Steps, *, ways: Sequence[str] = ("itself",), sandbox: BlockingSandbox | None = None
    ) -> tuple[dict[str, Ending], Any]:
        """Have the steps played against a server, without walls or in a sandbox; return how that ended, and its result.

        Without walls the connection stands as long as the server lets it, so that is not waited for.
        """
        host, patience = ("127.0.0.1", 0.3) if sandbox is None else ("web.test", 10)
        task = {"host": host, "port": server.port, "patience": patience, "steps": steps, "ways": list(ways)}
        words = (sys.executable, "-I", "-S", "-c", PLAYER)
        given = json.dumps(task).encode()
        if sandbox is None:
            bare = subprocess.run(words, input=given, capture_output=True, timeout=PATIENCE, check=False)
            result, said, error = None, bare.stdout, bare.stderr
        else:
            result = sandbox.run(words, stdin=given, timeout=PATIENCE)
            said, error = result.stdout, result.stderr
        assert error == b"", error.decode()
        ends = json.loads(said)
        return {way: Ending(tuple(each["heard"]), each["end"]) for way, each in ends.items()}, result


@pytest.fixture(scope="session")
def tls_yard(net: Net, go_program: str) -> Iterator[Yard]:
    """What clients of TLS talk to."""
    yard = Yard(net, go_program)
    try:
        yield yard
    finally:
        yard.close()


@pytest.fixture(scope="session")
def tls() -> ModuleType:
    """This module: what hellos are made with. Tests cannot import it."""
    return sys.modules[__name__]
