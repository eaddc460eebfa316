from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.network.dns import Frames, frame
from stockade.network.dns_client import Answered, DnsClient, Question, parse_server, read_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Makes the datagrams that answer a question, or the message of an answer over TCP.
Reply: TypeAlias = Callable[[bytes], list[bytes]]
A, AAAA, CNAME = 1, 28, 5
OURS = b"\xc0\x0c"


def name(text: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in text.split(".")) + b"\0"


def record(owner: bytes, kind: int, data: bytes, kind_class: int = 1) -> bytes:
    head = kind.to_bytes(2, "big") + kind_class.to_bytes(2, "big") + bytes(4)
    return owner + head + len(data).to_bytes(2, "big") + data


def reply(query: bytes, records: list[bytes], flags: int = 0x8180, count: int | None = None) -> bytes:
    counts = b"\0\1" + (len(records) if count is None else count).to_bytes(2, "big") + bytes(4)
    return query[:2] + flags.to_bytes(2, "big") + counts + query[12:] + b"".join(records)


QUESTION = Question.about("Example.com", A, 0x1234)
QUERY = QUESTION.render()
FOUR = bytes((192, 0, 2, 1))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(reply(QUERY, [record(OURS, A, FOUR)]), Answered(0, ("192.0.2.1",)), id="address"),
        pytest.param(
            reply(QUERY, [record(name("EXAMPLE.com"), A, FOUR)]), Answered(0, ("192.0.2.1",)), id="name spelt out"
        ),
        pytest.param(reply(QUERY, []), Answered(0), id="no such record"),
        pytest.param(reply(QUERY, [], 0x8183), Answered(3), id="no such name"),
        pytest.param(reply(QUERY, [], 0x8182), Answered(2), id="server failed"),
        pytest.param(reply(QUERY, [], 0x8380), Answered(0, truncated=True), id="cut"),
        pytest.param(
            reply(
                QUERY,
                [
                    record(OURS, CNAME, name("b.test")),
                    record(name("b.test"), CNAME, name("c.test")),
                    record(name("c.test"), A, FOUR),
                    record(name("other.test"), A, bytes(4)),
                ],
            ),
            Answered(0, ("192.0.2.1",)),
            id="aliases",
        ),
        pytest.param(
            reply(QUERY, [record(OURS, CNAME, name("b.test")), record(name("b.test"), CNAME, OURS)]),
            Answered(0),
            id="aliases in a circle",
        ),
        pytest.param(
            reply(
                QUERY,
                [record(OURS, CNAME, name("a0.test"))]
                + [record(name(f"a{n}.test"), CNAME, name(f"a{n + 1}.test")) for n in range(40)]
                + [record(name("a40.test"), A, FOUR)],
            ),
            Answered(0),
            id="too many aliases",
        ),
        pytest.param(
            reply(QUERY, [record(name("evil.test"), A, FOUR)]), Answered(0), id="an address that was not asked for"
        ),
        pytest.param(reply(QUERY, [record(OURS, A, FOUR, 3)]), Answered(0), id="another class"),
        pytest.param(reply(QUERY, [record(OURS, AAAA, bytes(16))]), Answered(0), id="another type"),
        pytest.param(b"\x12\x35" + reply(QUERY, [])[2:], None, id="another id"),
        pytest.param(reply(Question.about("other.com", A, 0x1234).render(), []), None, id="another name"),
        pytest.param(reply(Question.about("example.com", AAAA, 0x1234).render(), []), None, id="another question"),
        pytest.param(QUERY, None, id="no answer"),
        pytest.param(reply(QUERY, [record(OURS, A, b"123")]), None, id="an address of three bytes"),
        pytest.param(reply(QUERY, [record(OURS, A, FOUR)], count=2), None, id="fewer records than said"),
        pytest.param(reply(QUERY, [record(OURS, A, FOUR)[:-1]]), None, id="cut short"),
        pytest.param(reply(QUERY, [record(b"\xc0\x1d", A, FOUR)]), None, id="a pointer to itself"),
        pytest.param(reply(QUERY, [record(b"\xc0\xff", A, FOUR)]), None, id="a pointer ahead"),
        pytest.param(
            reply(QUERY, [record(b"\xc0\x29", CNAME, name("example.com")), record(OURS, A, FOUR)]),
            None,
            id="a pointer ahead, to a name",
        ),
        pytest.param(reply(QUERY, [record(b"\x80", A, FOUR)]), None, id="a label of no kind"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_answers_are_read(message: bytes, expected: Answered | None) -> None:
    assert read_answer(QUESTION, message) == expected


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    read_answer(QUESTION, data)
    read_answer(QUESTION, reply(QUERY, [data], count=3))
    read_answer(QUESTION, reply(QUERY, [record(OURS, CNAME, data), record(data, A, FOUR)]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1:5353", ("127.0.0.1", 5353), id="IPv4"),
        pytest.param("127.0.0.1", ("127.0.0.1", 53), id="no port"),
        pytest.param("[::1]:5353", ("::1", 5353), id="IPv6"),
    ],
)
def test_servers_are_read(text: str, expected: tuple[str, int]) -> None:
    assert parse_server(text) == expected


@pytest.mark.parametrize("text", ["", "localhost:53", "127.0.0.1:0", "127.0.0.1:x", "a b", "[::1", "\x1b"])
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(InvalidTextError):
        parse_server(text)


class Server:
    """A name server on loopback, by UDP and TCP at one port."""

    def __init__(self, udp: Reply, tcp: Reply) -> None:
        self.queries: list[bytes] = []
        self.sources: set[tuple[str, int]] = set()
        self._replies = udp, tcp
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(self._tcp.getsockname())
        self._tcp.settimeout(0.02)
        self._udp.settimeout(0.02)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._tcp.getsockname()[1]}"

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._tcp.close()
        self._udp.close()

    def _serve_udp(self) -> None:
        while not self._over.is_set():
            try:
                query, source = self._udp.recvfrom(4096)
            except TimeoutError:
                continue
            self.queries.append(query)
            self.sources.add(source)
            for message in self._replies[0](query):
                self._udp.sendto(message, source)

    def _serve_tcp(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._tcp.accept()
            except TimeoutError:
                continue
            with connection:
                frames = Frames()
                while not (messages := frames.receive(connection.recv(4096))):
                    pass
                for message in self._replies[1](messages[0]):
                    connection.sendall(message)


def silent(_query: bytes) -> list[bytes]:
    return []


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(udp: Reply, tcp: Reply = silent) -> Server:
        servers.append(Server(udp, tcp))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def is_a(query: bytes) -> bool:
    return query[-4:-2] == b"\0\1"


def both(query: bytes) -> list[bytes]:
    return [reply(query, [record(OURS, A, FOUR) if is_a(query) else record(OURS, AAAA, bytes(15) + b"\2")])]


def missing(query: bytes) -> list[bytes]:
    return [reply(query, [], 0x8183)]


def failing(query: bytes) -> list[bytes]:
    return [reply(query, [], 0x8182)]


def test_both_families_are_found(start: Callable[..., Server]) -> None:
    server = start(both)
    assert DnsClient([server.address])("example.com") == ["192.0.2.1", "::2"]
    assert len(server.sources) == 2
    assert len({query[2:-4] for query in server.queries}) == 1


def test_ids_are_left_to_chance(start: Callable[..., Server]) -> None:
    server = start(both)
    client = DnsClient([server.address])
    for _ in range(10):
        client("example.com")
    assert len({query[:2] for query in server.queries}) > 10


def test_forged_answers_are_passed_over(start: Callable[..., Server]) -> None:
    def forging(query: bytes) -> list[bytes]:
        other = bytes((query[0] ^ 1,)) + query[1:]
        wrong = reply(Question.about("evil.com", A, int.from_bytes(query[:2], "big")).render(), [])
        return [b"", b"x", reply(other, [record(OURS, A, bytes(4))]), wrong, *both(query)]

    assert DnsClient([start(forging).address])("example.com") == ["192.0.2.1", "::2"]


def test_an_answer_of_another_server_is_not_taken(start: Callable[..., Server]) -> None:
    def from_elsewhere(query: bytes) -> list[bytes]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for source in tuple(server.sources):
                other.sendto(reply(query, [record(OURS, A, bytes(4))]), source)
        return both(query)

    server = start(from_elsewhere)
    assert DnsClient([server.address])("example.com") == ["192.0.2.1", "::2"]


def test_what_was_cut_is_asked_for_over_tcp(start: Callable[..., Server]) -> None:
    server = start(
        lambda query: [reply(query, [], 0x8380)],
        lambda query: [frame(reply(query, [record(OURS, A, FOUR)] * 200)) if is_a(query) else frame(reply(query, []))],
    )
    assert DnsClient([server.address])("example.com") == ["192.0.2.1"] * 200


@pytest.mark.parametrize(
    "tcp",
    [
        pytest.param(silent, id="closed at once"),
        pytest.param(lambda _query: [b"\0\x05abc"], id="cut short"),
        pytest.param(lambda _query: [b"\0\x05abcde"], id="unreadable"),
    ],
)
def test_a_broken_answer_over_tcp_is_a_failure(start: Callable[..., Server], tcp: Reply) -> None:
    server = start(lambda query: [reply(query, [], 0x8380)], tcp)
    with pytest.raises(OSError, match="failed"):
        DnsClient([server.address], rounds=1)("example.com")


def test_no_such_name_is_told_as_that(start: Callable[..., Server]) -> None:
    server = start(missing)
    with pytest.raises(socket.gaierror) as caught:
        DnsClient([server.address])("example.com")
    assert caught.value.errno == socket.EAI_NONAME
    assert len(server.queries) == 2


def test_the_next_server_is_asked_where_one_fails(start: Callable[..., Server]) -> None:
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("127.0.0.1", 0))
    nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    client = DnsClient([nobody, start(failing).address, start(silent).address, start(both).address], seconds=0.1)
    assert client("example.com") == ["192.0.2.1", "::2"]


def test_one_family_is_enough(start: Callable[..., Server]) -> None:
    server = start(lambda query: both(query) if is_a(query) else [])
    assert DnsClient([server.address], seconds=0.1)("example.com") == ["192.0.2.1"]


def test_silence_is_a_failure(start: Callable[..., Server]) -> None:
    server = start(silent)
    with pytest.raises(OSError, match="failed"):
        DnsClient([server.address], seconds=0.05)("example.com")
    assert len(server.queries) == 4


@pytest.mark.parametrize("text", ["localhost", "a.localhost"])
def test_localhost_is_never_asked_for(text: str) -> None:
    assert DnsClient(["192.0.2.1"])(text) == ["127.0.0.1", "::1"]


@pytest.mark.parametrize("text", ["a" * 64, "a..b", ".".join(["a" * 60] * 5)])
def test_what_dns_cannot_have_does_not_exist(text: str) -> None:
    with pytest.raises(socket.gaierror):
        DnsClient(["192.0.2.1"])(text)
