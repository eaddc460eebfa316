"""What it costs to look at the TLS hellos of a tunnel: the same connections joined with a screen and without one.

    python benchmarks/tls_screen.py [--rounds N]

In each round connections are made and joined in one process, half of them looked at, in an order that changes. Each
says what a TLS connection says first: the real hello of OpenSSL's client, a server's hello, and the client's next
records; then a reply of 16 KiB comes back. Beside them stands a whole handshake of OpenSSL with itself in memory, which
is what every such connection pays anyway. The table is printed and written to ``results.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import machine
from results import write
from stockade.network.relay import Relays
from stockade.network.screen import Screen
from stockade.network.transport import SocketTransport
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port
from table import render

RESULTS = Path(__file__).with_name("results.md")
HEADING = "Looking at TLS hellos"
NAME = "allowed.example"
EACH = 200
#: A server's hello without its extensions, and a reply in records of application data.
ANSWER = b"\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03" + bytes(32) + b"\x00\x13\x01\x00"
REPLY = b"\x17\x03\x03\x40\x00" + bytes(16_384)
#: What the client says next: a change of ciphers, and its own end of the handshake, encrypted.
NEXT = b"\x14\x03\x03\x00\x01\x01" + b"\x17\x03\x03\x00\x45" + bytes(69)


class Options(argparse.Namespace):
    """The command line, typed."""

    rounds: int
    output: Path


def hello() -> bytes:
    """Return what OpenSSL's client says first."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=NAME)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError


async def _connection(first: bytes, *, looked_at: bool) -> float:
    """Join one connection, let both sides talk, and return how long that took."""
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    pair = Relays().new()
    (client, inner_client), (server, inner_server) = socket.socketpair(), socket.socketpair()
    for one in (client, server, inner_client, inner_server):
        one.setblocking(False)
    SocketTransport(inner_client, pair.client)
    SocketTransport(inner_server, pair.server)
    if looked_at:
        pair.screen = Screen(Destination(Host.parse(NAME), Port(443)), _refused)
    pair.join()
    await loop.sock_sendall(client, first)
    await _take(server, len(first))
    await loop.sock_sendall(server, ANSWER)
    await _take(client, len(ANSWER))
    await loop.sock_sendall(client, NEXT)
    await _take(server, len(NEXT))
    await loop.sock_sendall(server, REPLY)
    await _take(client, len(REPLY))
    took = time.perf_counter() - began
    pair.abort()
    client.close()
    server.close()
    await asyncio.sleep(0)
    return took


def _refused(why: str) -> None:
    raise AssertionError(why)


async def _take(end: socket.socket, size: int) -> None:
    loop = asyncio.get_running_loop()
    while size:
        size -= len(await loop.sock_recv(end, size))


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each connection, by whether it was looked at."""
    first = hello()
    took: dict[str, list[float]] = {"not looked at": [], "looked at": []}

    async def main() -> None:
        for _ in range(rounds):
            order = [*took] * EACH
            random.shuffle(order)
            for kind in order:
                took[kind].append(await _connection(first, looked_at=kind == "looked at"))

    asyncio.run(main())
    return took


def handshake(certificate: str, times: int = 50) -> float:
    """Return the seconds of one handshake of OpenSSL with itself, in memory."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    client = ssl.create_default_context(cafile=certificate)
    began = time.perf_counter()
    for _ in range(times):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [
            client.wrap_bio(to_client, to_server, server_hostname=NAME),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
        waiting = list(ends)
        while waiting:
            for end in tuple(waiting):
                try:
                    end.do_handshake()
                    waiting.remove(end)
                except ssl.SSLWantReadError:
                    continue
    return (time.perf_counter() - began) / times


def _certificate(folder: str) -> str:
    words = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME}".split()
    files = ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    subprocess.run([*words, *files], check=True, capture_output=True)
    both = Path(folder, "both.pem")
    both.write_text(Path(folder, "key.pem").read_text() + Path(folder, "cert.pem").read_text())
    return str(both)


def table(took: dict[str, list[float]], whole: float) -> str:
    """Return the table: microseconds, and how much looking adds to a connection with its handshake."""
    plain, looked = (statistics.median(took[kind]) for kind in ("not looked at", "looked at"))
    rows = [
        ["joined, not looked at", f"{plain * 1e6:.0f}", ""],
        ["joined, looked at", f"{looked * 1e6:.0f}", f"{looked / plain:.2f}x"],
        ["a handshake in memory", f"{whole * 1e6:.0f}", ""],
        ["both together", f"{(looked + whole) * 1e6:.0f}", f"{(looked + whole) / (plain + whole):.2f}x"],
    ]
    return render(["a TLS connection", "µs (median)", "times as long by looking"], rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help=f"each of {EACH} connections (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    with tempfile.TemporaryDirectory() as folder:
        whole = handshake(_certificate(folder))
    facts = "\n".join(f"- {fact}" for fact in machine.facts())
    text = f"{facts}\n\n{table(measure(options.rounds), whole)}"
    print(text)
    write(options.output, HEADING, text)


if __name__ == "__main__":
    main()
