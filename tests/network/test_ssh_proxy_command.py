from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network import ssh_proxy_command
from stockade.network.ssh_proxy_command import carry, read_proxy, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OK = b"HTTP/1.1 200 OK\r\n\r\n"
BIG = bytes(range(256)) * 20_000


class Proxy:
    """A server for one connection: it reads the request and lets the scene go on."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.request = b""

    @property
    def address(self) -> str:
        return f"http://c7:token@127.0.0.1:{self.server.getsockname()[1]}"

    def run(self, scene: Callable[[socket.socket], None]) -> None:
        threading.Thread(target=self._serve, args=(scene,), daemon=True).start()

    def _serve(self, scene: Callable[[socket.socket], None]) -> None:
        connection, _ = self.server.accept()
        with connection:
            while not self.request.endswith(b"\r\n\r\n"):
                self.request += connection.recv(1)
            scene(connection)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    yield made
    made.server.close()


def start(address: str | None, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-S", ssh_proxy_command.__file__, *words],
        env={} if address is None else {"STOCKADE_PROXY": address},
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
    )


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("first", [b"", b"SSH-2.0-early\r\n"])
@pytest.mark.parametrize("data", [b"", b"hello", BIG], ids=["nothing", "little", "much"])
def test_both_ways_are_carried_to_their_ends(proxy: Proxy, data: bytes, first: bytes) -> None:
    def echo(connection: socket.socket) -> None:
        connection.sendall(OK + first)
        connection.sendall(everything(connection))  # comes to its end only by a half-close

    proxy.run(echo)
    ran = start(proxy.address, "a.example", "22", data=data)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == first + data
    assert proxy.request == (
        b"CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\nProxy-Authorization: Basic Yzc6dG9rZW4=\r\n\r\n"
    )


def test_it_ends_when_the_far_end_does_though_input_stays_open(proxy: Proxy) -> None:
    proxy.run(lambda connection: connection.sendall(OK + b"bye"))
    reader, writer = os.pipe()
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", ssh_proxy_command.__file__, "a.example", "22"],
            env={"STOCKADE_PROXY": proxy.address},
            stdin=reader,
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert (ran.returncode, ran.stdout) == (0, b"bye")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nline 1\nline 2\n",
            "stockade: line 1\nstockade: line 2\n",
            id="body",
        ),
        pytest.param(b"HTTP/1.1 403 Not this host\r\n\r\n", "stockade: HTTP/1.1 403 Not this host\n", id="no body"),
        pytest.param(b"HTTP/1.1 403 No\r\n\r\na\x1b[2Jb", "stockade: a?[2Jb\n", id="no control characters"),
        pytest.param(b"nonsense", "stockade: nonsense\n", id="no HTTP"),
    ],
)
def test_a_refusal_is_told_in_the_proxys_words(proxy: Proxy, answer: bytes, message: str) -> None:
    proxy.run(lambda connection: connection.sendall(answer))
    ran = start(proxy.address, "a.example", "22")
    assert (ran.returncode, ran.stdout, ran.stderr.decode()) == (1, b"", message)


@pytest.mark.parametrize(
    ("address", "words", "message"),
    [
        (None, ["a", "22"], "STOCKADE_PROXY in the environment does not say where the sandbox's proxy is"),
        ("socks5://127.0.0.1:1", ["a", "22"], "STOCKADE_PROXY in the environment does not say where"),
        ("http://127.0.0.1:1", ["a b", "22"], "host or port has characters that none may have"),
        ("http://127.0.0.1:1", ["a", "22\r\nX: y"], "host or port has characters that none may have"),
        ("http://127.0.0.1:1", ["a"], "two arguments are needed"),
        ("http://127.0.0.1:1", ["a", "22"], "the sandbox's proxy does not answer: Connection refused"),
    ],
)
def test_what_is_wrong_is_one_line(address: str | None, words: list[str], message: str) -> None:
    ran = start(address, *words)
    assert ran.returncode == 1
    assert ran.stderr.decode().startswith(f"stockade: {message}")
    assert ran.stderr.count(b"\n") == 1


def test_it_imports_little() -> None:
    program = f"""
import sys
sys.argv = ["x"]
import os
before = set(sys.modules)
try:
    exec(open({ssh_proxy_command.__file__!r}).read(), {{"__name__": "__main__"}})
except SystemExit:
    pass
print(*sorted(set(sys.modules) - before))
"""
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"__future__", "_socket", "array", "binascii", "select"}


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_the_request(text: str, host: str, port: str) -> None:
    for address in (text, f"http://{text}@127.0.0.1:3128"):
        try:
            _, request = read_proxy(address, host, port)
        except ValueError:
            continue
        assert request.endswith(b"\r\n\r\n")
        assert request.count(b"\n") <= 4


def test_an_ipv6_address_gets_its_brackets() -> None:
    place, request = read_proxy("http://127.0.0.1:3128", "::1", "22")
    assert place == ("127.0.0.1", 3128)
    assert request == b"CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]:22\r\n\r\n"


@given(st.binary(), st.binary())
def test_any_refusal_can_be_shown(head: bytes, body: bytes) -> None:
    assert all(line.isprintable() for line in refusal(head, body).split("\n"))


def test_descriptors_may_be_higher_than_select_takes(descriptors: Callable[[int], None]) -> None:
    descriptors(1200)
    ends = (*os.pipe(), *os.pipe())
    source, giving, taking, sink = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 1100) for end in ends)
    for end in ends:
        os.close(end)
    ours, theirs = socket.socketpair()
    os.write(giving, b"question")
    os.close(giving)
    theirs.sendall(b"answer")
    theirs.shutdown(socket.SHUT_WR)
    with ours, theirs:
        carry(ours, b"first ", source, sink)
        assert os.read(taking, 100) == b"first answer"
    for end in (source, taking, sink):
        os.close(end)
