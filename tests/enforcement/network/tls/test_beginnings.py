"""What begins like a record of TLS but is none goes through, and with it no server is asked for another name.

Java's server forgives the most: records of any version, and of twice the size that the standard has.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from tests.enforcement.network.conftest import Net
    from tests.enforcement.network.tls.conftest import Server, Yard

    from stockade.sandbox.blocking import BlockingSandbox

KINDS = ("openssl", "go", "node", "java")
PATIENCE = 100.0

JAVA = r"""
import java.io.*;
import java.net.InetAddress;
import java.security.KeyStore;
import java.util.List;
import javax.net.ssl.*;

class Serve {
    public static void main(String[] given) throws Exception {
        char[] secret = "secret".toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(new FileInputStream(given[0]), secret);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(store, secret);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        SSLServerSocket server = (SSLServerSocket) context.getServerSocketFactory().createServerSocket(
            0, 50, InetAddress.getByName("127.0.0.1"));
        SSLParameters parameters = server.getSSLParameters();
        parameters.setSNIMatchers(List.of(new SNIMatcher(0) {
            public boolean matches(SNIServerName name) {
                System.out.println("name \"" + new String(name.getEncoded()) + "\"");
                return true;
            }
        }));
        server.setSSLParameters(parameters);
        System.out.println("ACCEPT 127.0.0.1:" + server.getLocalPort());
        while (true) {
            SSLSocket stream = (SSLSocket) server.accept();
            new Thread(() -> {
                try (stream) {
                    stream.startHandshake();
                } catch (IOException error) {
                    // as it should be
                }
            }).start();
        }
    }
}
"""

#: Says each thing on a connection of its own, by each way, and hears the other to its end; returns what came back.
TELLER = r"""
def tell(way, data):
    heard = b""
    try:
        stream = {"connect": by_connect, "socks": by_socks, "itself": by_itself}[way](task["host"], task["port"])
        with stream:
            stream.settimeout(10)
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            while piece := stream.recv(65536):
                heard += piece
    except (EOFError, ConnectionError):
        return None
    except OSError as error:  # it may have been reset before its end was said
        if error.errno != errno.ENOTCONN:
            raise
        return None
    return heard.hex()

print(json.dumps({way: [tell(way, bytes.fromhex(each)) for each in task["said"]] for way in task["ways"]}))
"""


def _tell(
    tls: ModuleType, port: int, said: Sequence[bytes], ways: Sequence[str], sandbox: BlockingSandbox | None = None
) -> dict[str, list[bytes | None]]:
    """Say things without walls or in a sandbox; return what came back, or nothing where the connection was reset."""
    host = "127.0.0.1" if sandbox is None else "web.test"
    task = {"host": host, "port": port, "ways": list(ways), "said": [each.hex() for each in said]}
    words = (sys.executable, "-I", "-S", "-c", tls.PLAYER.partition("def play(")[0] + TELLER)
    given = json.dumps(task).encode()
    if sandbox is None:
        bare = subprocess.run(words, input=given, capture_output=True, timeout=PATIENCE, check=False)
        out, error = bare.stdout, bare.stderr
    else:
        result = sandbox.run(words, stdin=given, timeout=PATIENCE)
        out, error = result.stdout, result.stderr
    assert error == b"", error.decode()
    return {
        way: [None if each is None else bytes.fromhex(each) for each in heard] for way, heard in json.loads(out).items()
    }


@pytest.fixture(scope="module")
def servers(net: Net, tls_yard: Yard) -> dict[str, Server]:
    """All of the yard, and Java's."""
    store, source = tls_yard.folder / "leaf.p12", tls_yard.folder / "Serve.java"
    source.write_text(JAVA)
    own = ("-in", str(net.root / "leaf.pem"), "-inkey", str(net.root / "leaf.key"))
    words = ["openssl", "pkcs12", "-export", *own, "-out", str(store), "-passout", "pass:secret"]
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
    java = tls_yard.start("java", ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", str(source), str(store)])
    return {**tls_yard.servers, "java": java}


@pytest.fixture(scope="module")
def sandbox(net: Net, servers: dict[str, Server]) -> Iterator[BlockingSandbox]:
    ports = [net.echo.port, *(server.port for server in servers.values())]
    with net.sandbox(*net.allow("web.test", ports=ports)) as sandbox:
        yield sandbox


def _hellos(tls: ModuleType, mark: str) -> list[bytes]:
    """Return hellos of another name in whatever version, and behind whatever record a server might skip."""
    sizes, payloads = range(7), (bytes(6), b"\1\x5a" * 3)
    firsts = [
        bytes([kind, version, 1 if version == 3 else 0]) + tls.vector(payload[:size])
        for kind, version, size, payload in product(range(20, 25), (0, 1, 2, 3, 4, 200), sizes, payloads)
    ]
    said = [first + tls.records(tls.message(f"{mark}{at}.evil.test")) for at, first in enumerate(firsts)]
    for version in (0, 1, 2, 4, 15, 16, 83, 255):
        name = f"{mark}version{version}.evil.test"
        said += [tls.records(tls.message(name), size, version=bytes([version, 1])) for size in (1, 4, 5, 1 << 14)]
        body = tls.message(f"{mark}large{version}.evil.test")[4:] + b"\0\x15" + tls.vector(bytes(20_000))
        said.append(bytes([22, version, 1]) + tls.vector(b"\1" + tls.vector(_with_longer_extensions(body), 3)))
    return said


def _with_longer_extensions(body: bytes) -> bytes:
    """Return a hello to which 20,004 bytes were added, with the length of all extensions put right."""
    # Version, random, a session of 32 bytes, two suites, one method of compression.
    at = 34 + 33 + 6 + 2
    return body[:at] + (len(body) - at - 2).to_bytes(2, "big") + body[at + 2 :]


@pytest.mark.parametrize("kind", KINDS)
def test_behind_nothing_that_passes_a_server_is_asked_for_another_name(
    net: Net, tls: ModuleType, servers: dict[str, Server], sandbox: BlockingSandbox, kind: str
) -> None:
    server, inside, outside = servers[kind], net.mark(), net.mark()
    heard = _tell(tls, server.port, _hellos(tls, inside), ("connect", "itself"), sandbox)
    # Some of it is no TLS to anybody, and passes.
    assert all(any(each is not None for each in way) for way in heard.values())
    _tell(tls, server.port, _hellos(tls, outside), ("itself",))
    forgiven = server.names(outside)
    assert forgiven
    if kind == "java":
        assert f"{outside}large83.evil.test" in forgiven
    assert server.names(inside) == []


def test_messages_that_begin_like_a_record_go_through(net: Net, tls: ModuleType, sandbox: BlockingSandbox) -> None:
    """Those of MongoDB begin with their size and number; what Minecraft says begins with its size too."""
    numbers = [(size, number) for size in range(270, 291) for number in (1, 2, 255)]
    numbers += [(size, number) for size in range(276, 281) for number in (0, 3, 4, 5, *range(6, 256, 25), 0x7FEE5500)]
    said = [struct.pack("<iiii", size, number, 0, 2013) + bytes(size - 16) for size, number in numbers]
    hosts = [b"h" * size for size in range(12, 20)]
    said += [bytes([len(host) + 7]) + b"\0\xfd\5" + tls.vector(host, 1) + b"\x63\xdd\1" for host in hosts]
    # Less than it takes to tell: nothing follows, so there is no hello in it.
    said += [b"\x14", b"\x15\1", b"\x16\1\0\0", b"\x17\1\0\0\1", b"\x18\1\0\0\4\0\0\0\0"]
    ways = ("connect", "socks", "itself")
    heard = _tell(tls, net.echo.port, said, ways, sandbox)
    for way in ways:
        assert [each for each, back in zip(said, heard[way], strict=True) if each != back] == []
