"""A small world on loopback for the network's walls: names, web servers, and a journal of all that they heard.

Every server is the tests' own and writes each thing that reaches it into one journal. An attack carries a mark that
nobody else uses; it got through if, and only if, the journal has that mark. The control run of an attack is made
without walls, by programs that find the same names in a hosts file of their own.

A name of this world leads to 127.0.0.1, which the guard forbids; so what a test allows is the name and that very
address (``Net.allow``).
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pytest

from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy

PATIENCE = 60.0
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#: Names that have an address and a certificate; only the first few are ever allowed.
NAMES = (
    "web.test",
    "other.test",
    "git.test",
    "index.test",
    "evil.test",
    "web.test.evil.test",
    "notweb.test",
    "ssh.test",
)
_A, _AAAA = 1, 28
_NO_SUCH_NAME = 3


#: Both ends of TLS in Go: ``fetch ADDRESS AUTHORITY``, or a server that writes down each name that it is asked for.
GO = r"""
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Fetches an address as any program in Go would, by the proxies that its environment names.
func fetch(address, authority string) {
	pem, err := os.ReadFile(authority)
	fail(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	way := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool}}
	answer, err := (&http.Client{Transport: way}).Get(address)
	fail(err)
	_, err = io.Copy(os.Stdout, answer.Body)
	fail(err)
	if answer.StatusCode != 200 {
		os.Exit(1)
	}
}

func main() {
	if os.Args[1] == "fetch" {
		fetch(os.Args[2], os.Args[3])
		return
	}
	pair, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	fail(err)
	config := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		fmt.Printf("name \"%s\"\n", hello.ServerName)
		return &pair, nil
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	fmt.Printf("ACCEPT 127.0.0.1:%d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		raw, err := listener.Accept()
		fail(err)
		go func() {
			defer raw.Close()
			stream := tls.Server(raw, config)
			if _, err := bufio.NewReader(stream).ReadString('\n'); err == nil {
				fmt.Fprintf(stream, "HTTP/1.0 200 OK\r\n\r\nhello\n")
				stream.Close()
			}
		}()
	}
}
"""


class Journal:
    """All that reached any server, one text each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[str] = []

    def write(self, *words: object) -> None:
        with self._lock:
            self._entries.append(" ".join(map(str, words)))

    def entries(self, mark: str = "") -> list[str]:
        with self._lock:
            return [entry for entry in self._entries if mark in entry]

    def __len__(self) -> int:
        return len(self._entries)

    def since(self, before: int) -> list[str]:
        """Return what came after the journal had so many entries."""
        with self._lock:
            return self._entries[before:]


class Names:
    """A DNS server, by UDP and TCP, with a table that tests change. A name has a row of answers; the last one stays."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._table: dict[str, list[tuple[str, ...]]] = {}
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for serve in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=serve, daemon=True).start()

    def set(self, name: str, *answers: tuple[str, ...]) -> None:
        """Answer the first question for a name's addresses with the first, and so on."""
        self._table[name.lower()] = list(answers)

    def close(self) -> None:
        for server in (self._udp, self._tcp):
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()

    def _serve_udp(self) -> None:
        with suppress(OSError):
            while True:
                query, sender = self._udp.recvfrom(4096)
                if query:
                    self._udp.sendto(self._answer(query, "udp"), sender)

    def _serve_tcp(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._tcp.accept()
                threading.Thread(target=self._speak, args=(connection,), daemon=True).start()

    def _speak(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, suppress(OSError):
            connection.settimeout(PATIENCE)
            while head := stream.read(2):
                answer = self._answer(stream.read(int.from_bytes(head, "big")), "tcp")
                connection.sendall(len(answer).to_bytes(2, "big") + answer)

    def _answer(self, query: bytes, transport: str) -> bytes:
        name, end = _read_name(query)
        kind = int.from_bytes(query[end : end + 2], "big")
        self._journal.write("dns", transport, kind, name)
        addresses = self._addresses(name.lower(), kind)
        code = _NO_SUCH_NAME if addresses is None else 0
        records = b"".join(
            struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed
            for packed in (ip_address(text).packed for text in addresses or ())
            if len(packed) == (4 if kind == _A else 16)
        )
        count = len(records) // (16 if kind == _A else 28)
        flags = 0x8580 | code
        return query[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + query[12 : end + 4] + records

    def _addresses(self, name: str, kind: int) -> tuple[str, ...] | None:
        row = self._table.get(name)
        if row is None:
            return None
        if kind not in (_A, _AAAA):
            return ()
        # Who asks for both families asks two questions, which are one resolution.
        return row.pop(0) if kind == _A and len(row) > 1 else row[0]


def _read_name(query: bytes) -> tuple[str, int]:
    labels, at = [], 12
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    return ".".join(labels), at + 1


class Request(Value):
    """What a web server was asked."""

    method: str
    path: str
    host: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Response(Value):
    """What it answers."""

    body: bytes
    status: int = 200
    kind: str = "text/plain"
    headers: tuple[tuple[str, str], ...] = ()


class Route(Protocol):
    """Answers what is asked below a place."""

    def __call__(self, request: Request) -> Response: ...


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: Web

    def setup(self) -> None:
        self.server.journal.write("connection", self.server.name)
        if self.server.tls is not None:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        else:
            # Even what is no request was heard.
            self.server.journal.write("bytes", self.server.name, self.request.recv(4096, socket.MSG_PEEK))
        super().setup()

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()
        # What TLS was put around is another object than the one that the server closes.
        self.request.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Say nothing: the journal has it."""

    def do_GET(self) -> None:
        body = self._body()
        host = self.headers.get("Host", "")
        self.server.journal.write("http", self.server.name, self.command, self.path, host, body[:200])
        # A careless proxy passes a whole address on as the target.
        self.path = self.path.removeprefix(f"http://{host}")
        request = Request(self.command, self.path, host, tuple(self.headers.items()), body)
        if self.headers.get("Upgrade"):
            self._upgrade()
            return
        for place, route in self.server.routes.items():
            if self.path.startswith(place):
                self._send(route(request))
                return
        if self.path.startswith("/chunked"):
            self._send_chunked()
        else:
            self._send(_standard(request))

    do_POST = do_PUT = do_HEAD = do_CONNECT = do_GET  # noqa: N815 - the names are the library's

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0").split(",")[0]))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _send_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (b"one ", b"two ", b"three"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _upgrade(self) -> None:
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.end_headers()
        while data := self.connection.recv(4096):
            self.server.journal.write("upgraded", data)
            self.connection.sendall(data)
        self.close_connection = True


def _standard(request: Request) -> Response:
    _, _, size = request.path.partition("/big/")
    if size.isdecimal():
        return Response(bytes(int(size)))
    return Response(request.body or f"hello from {request.host.partition(':')[0]}\n".encode())


class Web(ThreadingHTTPServer):
    """A web server that writes down every connection and every request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self,
        name: str,
        journal: Journal,
        tls: ssl.SSLContext | None = None,
        place: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.name = name
        self.journal = journal
        self.tls = tls
        self.routes: dict[str, Route] = {}
        super().__init__(place, _Handler)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: attacks break connections."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Echo(BaseRequestHandler):
    banner: ClassVar[bytes] = b""
    server: Raw

    def handle(self) -> None:
        self.server.journal.write("connection", self.server.name)
        self.request.settimeout(PATIENCE)
        with suppress(OSError):
            self.request.sendall(self.server.banner)
            while data := self.request.recv(65536):
                self.server.journal.write(self.server.name, data[:200])
                self.request.sendall(data)


class Raw(ThreadingTCPServer):
    """Gives back what it is sent; with a banner, it speaks first."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, name: str, journal: Journal, banner: bytes = b"") -> None:
        self.name = name
        self.journal = journal
        self.banner = banner
        super().__init__(("127.0.0.1", 0), _Echo)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: attacks break connections."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


def _certify(folder: Path) -> ssl.SSLContext:
    """Make an authority of our own and one certificate for every name; return what a server needs."""
    names = ",".join(f"DNS:{name}" for name in NAMES)
    (folder / "leaf.ext").write_text(f"subjectAltName={names},IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    authority = ("-subj", "/CN=Test authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    _openssl(folder, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", *authority)
    _openssl(folder, "req", *curve[:-2], "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=web.test")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "leaf.ext")
    _openssl(folder, "x509", "-req", "-in", "leaf.csr", *signed, "-out", "leaf.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return context


class Net:
    """The servers of this world, and how to run commands in it: without walls, or within."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.journal = Journal()
        self.names = Names(self.journal)
        tls = _certify(root)
        tls.set_servername_callback(lambda _socket, name, _context: self.journal.write("server name", name))
        self.ca = root / "ca.pem"
        self.http = Web("http", self.journal)
        self.https = Web("https", self.journal, tls)
        self.echo = Raw("echo", self.journal)
        self.banner = Raw("banner", self.journal, b"220 who speaks first\r\n")
        self.hidden = Web("hidden", self.journal)
        self._hidden_udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._hidden_udp.bind(("127.0.0.1", 0))
        self.hidden_udp_port: int = self._hidden_udp.getsockname()[1]
        threading.Thread(target=self._note_datagrams, daemon=True).start()
        self.hosts = root / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost {' '.join(NAMES)}\n")
        for name in NAMES:
            self.names.set(name, ("127.0.0.1",))
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.environment = {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "SHELL": "/bin/bash"}
        self._marks = 0

    def _note_datagrams(self) -> None:
        with suppress(OSError):
            while data := self._hidden_udp.recv(4096):
                self.journal.write("udp", data)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of all servers but the hidden one, which no test allows."""
        return (self.http.port, self.https.port, self.echo.port, self.banner.port)

    def mark(self) -> str:
        """Return a word that nobody has used."""
        self._marks += 1
        return f"mark{os.getpid()}x{self._marks}x"

    def allow(self, *names: str, ports: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the allow list that lets names lead to this world's servers."""
        open_ports = ports or self.ports
        return tuple(f"{name}:{port}" for name in (*names, "127.0.0.1") for port in open_ports)

    def policy(self, *allowed: str, **settings: Any) -> SandboxPolicy:
        named = {f"sandbox.{name.replace('__', '.')}": value for name, value in settings.items()}
        named["sandbox.network.allowedDomains"] = allowed
        merged = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(merged, cwd=str(self.project), home=str(self.home))

    def sandbox(self, *allowed: str, **settings: Any) -> BlockingSandbox:
        """Return a sandbox, not open yet, that finds this world's names."""
        return BlockingSandbox(
            self.policy(*allowed, **settings),
            environment=self.environment,
            name_servers=(f"127.0.0.1:{self.names.port}",),
        )

    def bare(
        self, words: Sequence[str], *, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run words without walls: the control. Only the hosts file is another one."""
        hosts = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(self.hosts), "/etc/hosts", "--"]
        return subprocess.run(
            [*hosts, *words],
            input=stdin,
            cwd=self.project,
            env=self.environment | (env or {}),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )

    def serve_at(self, address: str, port: int) -> Web:
        """Start one more web server, at a place of its own; whoever wants it closes it."""
        return Web("more", self.journal, place=(address, port))

    def close(self) -> None:
        for server in (self.names, self.http, self.https, self.echo, self.banner, self.hidden):
            server.close()
        with suppress(OSError):
            self._hidden_udp.shutdown(socket.SHUT_RDWR)
        self._hidden_udp.close()
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture(scope="session")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    """The world of one test process."""
    net = Net(tmp_path_factory.mktemp("net").resolve())
    try:
        yield net
    finally:
        net.close()


class Open:
    """Opens sandboxes of the world, each once, and keeps them until the module's tests are done."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._stack = ExitStack()
        self._open: dict[tuple[object, ...], BlockingSandbox] = {}

    def __call__(self, *allowed: str, **settings: Any) -> BlockingSandbox:
        key = (allowed, *settings.items())
        if key not in self._open:
            self._open[key] = self._stack.enter_context(self._net.sandbox(*allowed, **settings))
        return self._open[key]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def opened(net: Net) -> Iterator[Open]:
    """Sandboxes that are shared by the tests of a module."""
    opened = Open(net)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="session")
def go_program(net: Net) -> str:
    """The program in Go, built without anything from elsewhere."""
    folder = net.root / "go"
    folder.mkdir()
    (folder / "main.go").write_text(GO)
    places = {name: folder / name for name in ("GOCACHE", "GOPATH", "GOTMPDIR")}
    for place in places.values():
        place.mkdir()
    closed = {"GO111MODULE": "off", "GOPROXY": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    subprocess.run(
        ["go", "build", "-o", "both", "main.go"],
        cwd=folder,
        env=net.environment | closed | {name: str(place) for name, place in places.items()},
        check=True,
        capture_output=True,
        timeout=100,
    )
    return str(folder / "both")
