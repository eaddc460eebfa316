"""Carries ssh through the sandbox's HTTP proxy: ``python -I -S ssh_proxy_command.py HOST PORT``.

``ssh`` runs it as its ``ProxyCommand`` and speaks to it over standard input and output, so that neither ``nc`` nor
``socat`` has to be there. It is run by its path, inside the sandbox, by whatever command uses git: it imports
nothing of this package and little else, for each ``git fetch`` waits for it.

Rules: the proxy and the credential come from the environment (``STOCKADE_PROXY``), never from arguments, which
every process could read. A refusal is written to standard error in the proxy's own words, where git shows it.
Both directions end by themselves: one that is finished is closed, and the other goes on.

Source of truth: RFC 9110 section 9.3.6; ssh_config(5), ProxyCommand.
"""

from __future__ import annotations

import os
import select
import sys
from _socket import AF_INET, IPPROTO_TCP, SHUT_WR, SOCK_STREAM, TCP_NODELAY, socket

VARIABLE = "STOCKADE_PROXY"
_LONGEST_HEAD = 16 * 1024
_LONGEST_BODY = 4 * 1024
_PIECE = 64 * 1024
_FAILED = 1
_ARGUMENTS = 3


def main() -> int:
    """Connect and carry; return the exit status."""
    if len(sys.argv) != _ARGUMENTS:
        return _fail("two arguments are needed, host and port")
    host, port = sys.argv[1:]
    try:
        proxy, request = read_proxy(os.environ.get(VARIABLE, ""), host, port)
    except ValueError as error:
        return _fail(str(error))
    connection = socket(AF_INET, SOCK_STREAM)
    try:
        connection.connect(proxy)
        connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        connection.sendall(request)
        head, rest = _head(connection)
        status = head.split(b"\n", 1)[0].split(b" ")
        if len(status) < 2 or status[1] != b"200":  # noqa: PLR2004 (version and code)
            return _fail(refusal(head, rest + _body(connection, rest)))
        carry(connection, rest)
    except (BrokenPipeError, ConnectionResetError):
        return _FAILED  # one side is gone, and says so itself
    except OSError as error:
        return _fail(f"the sandbox's proxy does not answer: {error.strerror or error}")
    finally:
        connection.close()
    return 0


def read_proxy(text: str, host: str, port: str) -> tuple[tuple[str, int], bytes]:
    """Return where the proxy is and what to ask of it, or raise ``ValueError``."""
    scheme, _, rest = text.partition("://")
    secret, _, place = rest.rstrip("/").rpartition("@")
    address, _, number = place.rpartition(":")
    if scheme != "http" or not address or not number.isdecimal():
        message = f"{VARIABLE} in the environment does not say where the sandbox's proxy is"
        raise ValueError(message)
    if not (host.isascii() and host.isprintable() and port.isdecimal()) or " " in host:
        message = "host or port has characters that none may have"
        raise ValueError(message)
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if secret:
        from binascii import b2a_base64  # the owner of a sandbox imports this module for its name alone

        lines.append(f"Proxy-Authorization: Basic {b2a_base64(secret.encode(), newline=False).decode()}")
    return (address, int(number)), "\r\n".join((*lines, "", "")).encode()


def refusal(head: bytes, body: bytes) -> str:
    """Return what the proxy said, as plain lines: its body if there is one, else its status line."""
    text = body.decode("utf-8", "replace").strip() or head.split(b"\n", 1)[0].decode("latin-1").strip()
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def carry(connection: socket, first: bytes, source: int = 0, sink: int = 1) -> None:
    """Carry both ways until the far end is done; ``first`` came with the answer."""
    outgoing, incoming = b"", first
    reading = [source, connection.fileno()]
    connection.setblocking(False)
    os.set_blocking(sink, False)
    try:
        while incoming or connection.fileno() in reading:
            readers = [one for one in reading if not (outgoing if one == source else incoming)]
            writers = ([connection.fileno()] if outgoing else []) + ([sink] if incoming else [])
            readable, writable = _ready(readers, writers)
            if sink in writable:
                incoming = _write(sink, incoming)
            if connection.fileno() in writable:
                outgoing = _send(connection, outgoing)
            if connection.fileno() in readable:
                incoming = _received(connection, reading)
            if source in readable:
                outgoing = os.read(source, _PIECE)
                if not outgoing:
                    reading.remove(source)
                    connection.shutdown(SHUT_WR)
    finally:
        os.set_blocking(sink, True)


def _ready(readers: list[int], writers: list[int]) -> tuple[set[int], set[int]]:
    """Wait; return what can be read or has ended, and what can be written or is broken.

    By poll(2): ssh may hand down descriptors above 1,023, which select(2) does not take.
    """
    wanted: dict[int, int] = dict.fromkeys(readers, select.POLLIN)
    for writer in writers:
        wanted[writer] = wanted.get(writer, 0) | select.POLLOUT
    poller = select.poll()
    for descriptor, events in wanted.items():
        poller.register(descriptor, events)
    found = dict(poller.poll())
    broken = select.POLLERR | select.POLLHUP | select.POLLNVAL
    return (
        {one for one in readers if found.get(one, 0) & (select.POLLIN | broken)},
        {one for one in writers if found.get(one, 0) & (select.POLLOUT | broken)},
    )


def _write(place: int, data: bytes) -> bytes:
    """Write what goes in, and return what does not."""
    try:
        return data[os.write(place, data) :]
    except BlockingIOError:
        return data


def _send(connection: socket, data: bytes) -> bytes:
    """Send what goes out, and return what does not."""
    try:
        return data[connection.send(data) :]
    except BlockingIOError:
        return data


def _received(connection: socket, reading: list[int]) -> bytes:
    try:
        data = connection.recv(_PIECE)
    except BlockingIOError:
        return b""
    if not data:
        reading.remove(connection.fileno())
    return data


def _head(connection: socket) -> tuple[bytes, bytes]:
    buffer = b""
    while b"\r\n\r\n" not in buffer and len(buffer) <= _LONGEST_HEAD:
        piece = connection.recv(_PIECE)
        if not piece:
            break
        buffer += piece
    head, _, rest = buffer.partition(b"\r\n\r\n")
    return head, rest


def _body(connection: socket, begun: bytes) -> bytes:
    """Return the rest of a refusal: as much as comes soon, for nobody waits for an explanation."""
    body = b""
    connection.settimeout(1.0)
    try:
        while len(begun) + len(body) < _LONGEST_BODY:
            piece = connection.recv(_PIECE)
            if not piece:
                break
            body += piece
    except OSError:
        pass
    return body[:_LONGEST_BODY]


def _fail(message: str) -> int:
    for line in message.splitlines():
        sys.stderr.write(f"stockade: {line}\n")
    return _FAILED


if __name__ == "__main__":
    sys.exit(main())
