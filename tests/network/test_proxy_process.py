"""The proxy process with real sockets on loopback, from its owner's side."""

from __future__ import annotations

import array
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from stockade.errors import InvalidTextError, UnavailableError
from stockade.network.dns import Query, answer, read_query
from stockade.network.environment import Credential
from stockade.network.gate import Choice
from stockade.network.link import Link, Message, encode
from stockade.network.proxy_process import (
    Listeners,
    ProxyProcess,
    ProxySettings,
    Question,
    Refused,
    Withdrawn,
    _environment,
    package_path,
)
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.network.proxy_process import News

USER = Origin(Layer.USER, "~/.stockade/settings.json")
ALICE = Credential("alice", "secret-a")
BOB = Credential("bob", "secret-b")
T = TypeVar("T")


def rules(allowed: str = "", denied: str = "") -> NetworkRules:
    def of(texts: str) -> tuple[Sourced[DomainPattern], ...]:
        return tuple(Sourced(DomainPattern.parse(text, deny=True), USER) for text in texts.split())

    return NetworkRules(of(allowed), of(denied))


def until(found: Callable[[], T]) -> T:
    """Wait until something is true."""
    for _ in range(2000):
        if result := found():
            return result
        time.sleep(0.005)
    pytest.fail("it never came to hold")


class Echo:
    """A server that sends back what comes, with a word before it."""

    def __init__(self, word: bytes = b"", address: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family)
        self.port: int = self._listener.getsockname()[1]
        self.heard: list[bytes] = []
        self._word = word
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while data := connection.recv(65536):
                self.heard.append(data)
                connection.sendall(self._word + data)


class Names:
    """A name server by which every name is 127.0.0.1."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._over = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._over = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._over:
            message, source = self._socket.recvfrom(4096)
            query = read_query(message)
            if isinstance(query, Query):
                self._socket.sendto(answer(query, addresses=[IPv4Address("127.0.0.1")]), source)


class Client:
    """A program that speaks through the proxy."""

    def __init__(self, port: int, credential: Credential | None = ALICE) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._credential = credential

    def connect(self, place: str) -> bytes:
        """Ask for a tunnel; return the head of the answer."""
        line = b""
        if self._credential is not None:
            secret = b64encode(f"{self._credential.user}:{self._credential.token}".encode())
            line = b"Proxy-Authorization: Basic " + secret + b"\r\n"
        self.socket.sendall(b"CONNECT " + place.encode() + b" HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n")
        return self.head()

    def head(self) -> bytes:
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            more = self.socket.recv(1)
            if not more:
                break
            data += more
        return data

    def echo(self, data: bytes) -> bytes:
        self.socket.sendall(data)
        return self.socket.recv(65536)


class Stage:
    """All of one test, gone at its end."""

    def __init__(self) -> None:
        self._closing: list[Callable[[], object]] = []
        self.last: tuple[News, ...] = ()

    def echo(self, word: bytes = b"", address: str = "127.0.0.1") -> Echo:
        return self._kept(Echo(word, address))

    def listener(self, address: str = "127.0.0.1") -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return self._kept(socket.create_server((address, 0), family=family, backlog=4096))

    def kept(self, some: socket.socket) -> socket.socket:
        return self._kept(some)

    def client(self, port: int, credential: Credential | None = ALICE) -> Client:
        client = Client(port, credential)
        self._kept(client.socket)
        return client

    def is_reset(self, port: int) -> bool:
        """Say whether a connection is reset, which may be before the client knows that it had one."""
        try:
            return self.client(port).socket.recv(1) != b"" and False
        except ConnectionResetError:
            return True

    def start(self, settings: ProxySettings | None = None, *, names: bool = False) -> ProxyProcess:
        settings = settings or ProxySettings()
        if names:
            settings = settings.but(name_servers=(self._kept(Names()).address,))
        return self._kept(ProxyProcess.start(settings))

    def proxy(
        self, allowed: str = "", denied: str = "", *, can_ask: bool = False, ask_seconds: float = 20.0
    ) -> tuple[ProxyProcess, int]:
        """Start a proxy with one listener and one command."""
        settings = ProxySettings(rules(allowed, denied), can_ask=can_ask, ask_seconds=ask_seconds)
        process = self.start(settings, names=True)
        listener = self.listener()
        process.serve(Listeners(http=listener.fileno()))
        process.add(ALICE, "command-a")
        return process, listener.getsockname()[1]

    def news(self, process: ProxyProcess, count: int = 1) -> list[News]:
        found: list[News] = []
        while len(found) < count:
            assert select.select([process], [], [], 20)[0]
            found += process.receive()
            assert not process.is_gone()
        return found

    def end(self) -> None:
        for close in reversed(self._closing):
            close()

    def _kept(self, some: T) -> T:
        self._closing.append(some.close)  # type: ignore[attr-defined] # whatever is kept can be closed
        return some


def children() -> set[str]:
    """The children of this process, dead ones that nobody has waited for too."""
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread that ends meanwhile
            found |= set(task.read_text().split())
    return found


@pytest.fixture
def stage() -> Iterator[Stage]:
    gc.collect()
    before, family = set(os.listdir("/dev/fd")), children()
    stage = Stage()
    yield stage
    stage.end()
    until(lambda: len(set(os.listdir("/dev/fd")) - before) <= 1)  # that of listing them
    until(lambda: children() <= family)  # others may have some of their own


def test_what_is_allowed_is_reached_and_what_is_not_is_told(stage: Stage) -> None:
    echo = stage.echo()
    process, port = stage.proxy(f"allowed.test 127.0.0.1:{echo.port}", "denied.test")
    client = stage.client(port)
    assert client.connect(f"allowed.test:{echo.port}").startswith(b"HTTP/1.1 200 ")
    assert client.echo(b"hello") == b"hello"
    assert stage.client(port).connect("denied.test:443").startswith(b"HTTP/1.1 403 ")
    assert stage.news(process) == [
        Refused(
            "denied.test:443",
            "DENIED",
            "denied.test",
            443,
            "denied.test",
            "~/.stockade/settings.json (user)",
            "",
            'remove "denied.test" in ~/.stockade/settings.json (user), then add "denied.test" to '
            "sandbox.network.allowedDomains (stockade allow-domain denied.test)",
            "command-a",
            1,
            'denied: denied.test:443: a rule denies it: "denied.test" in ~/.stockade/settings.json (user); remove '
            '"denied.test" in ~/.stockade/settings.json (user), then add "denied.test" to '
            "sandbox.network.allowedDomains (stockade allow-domain denied.test)",
        )
    ]
    assert not process.is_gone()


def test_what_was_only_counted_is_told_at_the_end(stage: Stage) -> None:
    process, port = stage.proxy()
    for _ in range(5):
        assert stage.client(port).connect("a.test:443").startswith(b"HTTP/1.1 403 ")
    news = process.close()
    told = [(one.asked, one.times) for one in news if isinstance(one, Refused)]
    assert told == [("a.test:443", 1), ("a.test:443", 4)]
    assert (process.is_gone(), process.close(), process.receive()) == (True, (), ())


def test_rules_change_while_it_runs(stage: Stage) -> None:
    echo = stage.echo()
    process, port = stage.proxy()
    place = f"late.test:{echo.port}"
    assert stage.client(port).connect(place).startswith(b"HTTP/1.1 403 ")
    process.update(rules(f"late.test 127.0.0.1:{echo.port}"))
    until(lambda: stage.client(port).connect(place).startswith(b"HTTP/1.1 200 "))
    process.update(rules())
    until(lambda: stage.client(port).connect(place).startswith(b"HTTP/1.1 403 "))


@pytest.mark.parametrize(
    ("choice", "head"),
    [
        pytest.param(Choice.ONCE, b"HTTP/1.1 200 ", id="once"),
        pytest.param(Choice.SESSION, b"HTTP/1.1 200 ", id="session"),
        pytest.param(Choice.DENY, b"HTTP/1.1 403 ", id="deny"),
    ],
)
def test_somebody_is_asked(stage: Stage, choice: Choice, head: bytes) -> None:
    echo = stage.echo()
    process, port = stage.proxy(f"127.0.0.1:{echo.port}", can_ask=True)
    client = stage.client(port)
    heads: list[bytes] = []
    thread = threading.Thread(target=lambda: heads.append(client.connect(f"asked.test:{echo.port}")))
    thread.start()
    (question,) = stage.news(process)
    assert question == Question(1, "asked.test", echo.port, "command-a")
    process.answer(1, choice.name, "not\ntoday")
    thread.join()
    assert heads[0].startswith(head)
    if choice is Choice.DENY:
        (refused,) = stage.news(process)
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.detail) == ("ANSWERED_NO", "not\\x0atoday")


def test_silence_is_no_and_the_question_is_withdrawn(stage: Stage) -> None:
    process, port = stage.proxy(can_ask=True, ask_seconds=0.1)
    assert stage.client(port).connect("asked.test:443").startswith(b"HTTP/1.1 403 ")
    question, *rest = stage.news(process, 3)
    assert question == Question(1, "asked.test", 443, "command-a")
    assert Withdrawn(1) in rest
    assert [one.reason for one in rest if isinstance(one, Refused)] == ["ASK_FAILED"]
    process.answer(1, Choice.ONCE.name)
    assert not process.is_gone()


def test_a_rule_settles_an_open_question(stage: Stage) -> None:
    echo = stage.echo()
    process, port = stage.proxy(can_ask=True)
    client = stage.client(port)
    heads: list[bytes] = []
    thread = threading.Thread(target=lambda: heads.append(client.connect(f"asked.test:{echo.port}")))
    thread.start()
    stage.news(process)
    process.update(rules(f"asked.test 127.0.0.1:{echo.port}"))
    thread.join()
    assert heads[0].startswith(b"HTTP/1.1 200 ")
    assert stage.news(process) == [Withdrawn(1)]


def test_credentials_hold_from_add_to_revoke(stage: Stage) -> None:
    process, port = stage.proxy()

    def connect(credential: Credential | None) -> bytes:
        return stage.client(port, credential).connect("a.test:443")[:12]

    assert connect(None) == b"HTTP/1.1 407"
    assert connect(Credential("alice", "wrong")) == b"HTTP/1.1 407"
    assert connect(BOB) == b"HTTP/1.1 407"
    process.add(BOB, "command-b")
    assert connect(BOB) == b"HTTP/1.1 403"
    (refused,) = stage.news(process)
    assert isinstance(refused, Refused)
    assert refused.command == "command-b"
    process.revoke(BOB)
    until(lambda: connect(BOB) == b"HTTP/1.1 407")
    assert connect(ALICE) == b"HTTP/1.1 403"


def test_a_credential_that_is_on_its_way_counts(stage: Stage) -> None:
    process, port = stage.proxy()
    for number in range(200):
        credential = Credential(f"user{number}", "token")
        client = stage.client(port, credential)
        process.add(credential, f"c{number}")
        assert client.connect("a.test:443").startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("others", [pytest.param(0, id="alone"), pytest.param(1, id="not alone")])
def test_names_are_answered_and_refusals_are_the_commands_that_is_alone(stage: Stage, others: int) -> None:
    process, _ = stage.proxy("allowed.test")
    for _ in range(others):
        process.add(BOB, "command-b")
    bound = stage.kept(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    bound.bind(("127.0.0.1", 0))
    tcp = stage.listener()
    process.serve(Listeners(name_udp=(bound.fileno(),), name_tcp=(tcp.fileno(),)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(20)
        asking.connect(bound.getsockname())
        asking.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4evil\4test\0\0\1\0\1")
        assert asking.recv(512)[:4] == b"\x12\x34\x81\x83"
        asking.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\7allowed\4test\0\0\1\0\1")
        assert asking.recv(512)[-4:-2] == b"\xc6\x12"
    (refused,) = stage.news(process)
    assert isinstance(refused, Refused)
    assert (refused.asked, refused.port, refused.command) == ("evil.test", 0, "" if others else "command-a")
    over_tcp = stage.client(tcp.getsockname()[1]).socket
    over_tcp.sendall(b"\0\x1e\x12\x34\1\0\0\1\0\0\0\0\0\0\7allowed\4test\0\0\1\0\1")
    assert over_tcp.recv(512)[2:6] == b"\x12\x34\x81\x80"


def test_a_connection_that_was_not_redirected_is_not_carried(stage: Stage) -> None:
    process, _ = stage.proxy("allowed.test")
    listener = stage.listener()
    process.serve(Listeners(transparent=(listener.fileno(),)))
    client = stage.client(listener.getsockname()[1])
    assert client.socket.recv(10) == b""
    assert not process.is_gone()


def test_a_port_of_the_host_is_judged_for_each_connection(stage: Stage) -> None:
    echo = stage.echo()
    process = stage.start(ProxySettings(rules(f"127.0.0.1:{echo.port}")))
    process.add(ALICE, "command-a")
    listener = stage.listener()
    process.serve(Listeners(host=((listener.fileno(), "127.0.0.1", echo.port),)))
    port = listener.getsockname()[1]
    client = stage.client(port)
    assert client.echo(b"hello") == b"hello"
    process.update(rules())
    until(lambda: stage.is_reset(port))
    assert client.echo(b"still here") == b"still here"
    (refused,) = stage.news(process)
    assert isinstance(refused, Refused)
    assert (refused.asked, refused.command) == (f"127.0.0.1:{echo.port}", "command-a")


class FakePorter:
    """Stands in for the one inside."""

    def __init__(self) -> None:
        self._mine, self.end = socket.socketpair()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._mine.shutdown(socket.SHUT_RDWR)
        self.end.close()

    def _serve(self) -> None:
        with self._mine, suppress(OSError):
            while letter := self._mine.recv(1):
                with socket.socket(socket.AF_INET if letter == b"4" else socket.AF_INET6) as given:
                    rights = array.array("i", [given.fileno()])
                    self._mine.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def test_ports_inside_are_published(stage: Stage) -> None:
    four, six = stage.echo(b"4"), stage.echo(b"6", "::1")
    process = stage.start()
    porter = stage._kept(FakePorter())
    listeners = [stage.listener() for _ in range(3)]
    closed = stage.listener()
    nobody = closed.getsockname()[1]
    closed.close()
    for listener, port in zip(listeners, (four.port, six.port, nobody), strict=True):
        process.publish(listener.fileno(), port, porter.end.fileno())
    outside = [listener.getsockname()[1] for listener in listeners]
    clients = [(stage.client(outside[0]), stage.client(outside[1])) for _ in range(20)]
    for first, second in clients:
        assert (first.echo(b"x"), second.echo(b"x")) == (b"4x", b"6x")
    assert stage.is_reset(outside[2])
    assert stage.client(outside[0]).echo(b"y") == b"4y"


def test_another_proxy_takes_what_comes_unread(stage: Stage) -> None:
    http, socks = stage.echo(b"http "), stage.echo(b"socks ")
    process = stage.start(ProxySettings(http_port=http.port, socks_port=socks.port))
    first, second = stage.listener(), stage.listener()
    process.serve(Listeners(http=first.fileno(), socks=second.fileno()))
    assert stage.client(first.getsockname()[1]).echo(b"anything") == b"http anything"
    assert stage.client(second.getsockname()[1]).echo(b"anything") == b"socks anything"
    assert process.close() == ()


def test_another_proxy_that_is_not_there_is_told_to_who_speaks_http(stage: Stage) -> None:
    closed = stage.listener()
    nobody = closed.getsockname()[1]
    closed.close()
    process = stage.start(ProxySettings(http_port=nobody, socks_port=nobody))
    first, second = stage.listener(), stage.listener()
    process.serve(Listeners(http=first.fileno(), socks=second.fileno()))
    answer = stage.client(first.getsockname()[1]).connect("far.test:443")
    assert answer.startswith(b"HTTP/1.1 502 httpProxyPort: no proxy answers at 127.0.0.1:%d\r\n" % nobody)
    assert stage.is_reset(second.getsockname()[1])


def test_the_way_out_may_lead_through_an_upstream_proxy(stage: Stage) -> None:
    upstream = stage.echo(b"HTTP/1.1 200 OK\r\n\r\n")
    environment = {"HTTPS_PROXY": f"http://user:hunter2@127.0.0.1:{upstream.port}", "PATH": "/nowhere"}
    process = stage.start(ProxySettings(rules("far.test"), environment=environment))
    listener = stage.listener()
    process.serve(Listeners(http=listener.fileno()))
    process.add(ALICE, "a")
    assert stage.client(listener.getsockname()[1]).connect("far.test:443").startswith(b"HTTP/1.1 200 ")
    assert b"CONNECT far.test:443" in upstream.heard[0]
    assert b64encode(b"user:hunter2") in upstream.heard[0]
    if sys.platform == "linux":
        for name in ("cmdline", "environ"):
            with suppress(PermissionError), open(f"/proc/{process.pid}/{name}", "rb") as file:
                assert b"hunter2" not in file.read()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ProxySettings(environment={"https_proxy": "gopher://x"}), id="upstream"),
        pytest.param(ProxySettings(name_servers=("name",)), id="name server"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_started(stage: Stage, settings: ProxySettings) -> None:
    with pytest.raises(InvalidTextError):
        stage.start(settings)


def test_its_end_is_seen_and_another_can_take_over_the_listeners(stage: Stage) -> None:
    process, port = stage.proxy()
    assert stage.client(port).connect("a.test:443").startswith(b"HTTP/1.1 403 ")
    os.kill(process.pid, signal.SIGKILL)
    assert select.select([process], [], [], 20)[0]
    until(process.is_gone)
    assert [one.asked for one in process.receive() if isinstance(one, Refused)] == ["a.test:443"]
    process.update(rules())
    process.revoke(ALICE)
    process.answer(1, Choice.ONCE.name)
    with pytest.raises(UnavailableError, match="gone"):
        process.add(BOB, "b")
    assert process.close() == ()


def test_listeners_outlive_a_proxy(stage: Stage) -> None:
    listener = stage.listener()
    for _ in range(2):
        process = stage.start()
        process.serve(Listeners(http=listener.fileno()))
        process.add(ALICE, "a")
        assert stage.client(listener.getsockname()[1]).connect("a.test:443").startswith(b"HTTP/1.1 403 ")
        process.close()


def test_a_proxy_that_hangs_is_given_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.network.proxy_process._SEND_SECONDS", 0.05)
    monkeypatch.setattr("stockade.network.proxy_process._LAST_WORDS_SECONDS", 0.05)
    process, _ = stage.proxy()
    os.kill(process.pid, signal.SIGSTOP)
    many = NetworkRules(rules("a.test").allowed * 50_000)
    process.update(many)
    assert process.is_gone()
    assert process.close() == ()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"\xff" * 64, id="no frame"),
        pytest.param(encode(Message(b"?")), id="unknown kind"),
        pytest.param(encode(Message(b"R", (b"",))), id="too few fields"),
        pytest.param(encode(Message(b"Q", (b"1", b"a b", b"1", b""))), id="no host"),
    ],
)
@pytest.mark.usefixtures("stage")
def test_a_proxy_that_talks_nonsense_is_given_up(said: bytes) -> None:
    """Its link is played by the test; the child is any that waits."""
    link, theirs = Link.pair()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    process = ProxyProcess(child.pid, link)
    good = Refused("a", "DENIED", command="never told").message()
    theirs.send(encode(good) + said)
    (first,) = process.receive()
    assert first == Refused("a", "DENIED")
    assert process.is_gone()
    assert theirs.recv(1) == b""
    theirs.close()
    process.close()
    child.returncode = 0  # it was waited for


@pytest.mark.parametrize(
    "said", [pytest.param(b"\xff" * 64, id="no frame"), pytest.param(encode(Message(b"?")), id="unknown")]
)
def test_nonsense_from_the_owner_ends_the_proxy(stage: Stage, said: bytes) -> None:
    process, port = stage.proxy()
    assert stage.client(port).connect("a.test:443").startswith(b"HTTP/1.1 403 ")
    process._link._socket.send(said)
    until(process.is_gone)


def memory(process: ProxyProcess) -> int:
    """Return how many KiB a process has."""
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=True)
    return int(found.stdout)


def test_a_flood_of_refusals_that_nobody_reads(stage: Stage) -> None:
    process, port = stage.proxy()
    bound = stage.kept(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    bound.bind(("127.0.0.1", 0))
    process.serve(Listeners(name_udp=(bound.fileno(),)))
    count = 6000
    assert stage.client(port).connect("a.test:443").startswith(b"HTTP/1.1 403 ")  # it is there now
    before = memory(process)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(20)
        asking.connect(bound.getsockname())
        for number in range(count):
            name = b"\x3fh" + b"%062d" % number + b"\4test\0"
            asking.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1")
            assert asking.recv(512)[:4] == b"\x12\x34\x81\x83"
    assert memory(process) - before < 32 << 10
    told = [one for one in process.close() if isinstance(one, Refused)]
    assert sum(one.times for one in told) == count + 1
    assert [one.asked for one in told if not one.reason] == [""]


@pytest.mark.skipif(sys.platform != "linux", reason="counts by /proc")
def test_it_has_nothing_of_its_owner(stage: Stage) -> None:
    pipe = os.pipe()
    os.set_inheritable(pipe[1], True)
    process, port = stage.proxy()
    stage.client(port).connect("a.test:443")
    os.close(pipe[1])
    assert os.read(pipe[0], 1) == b""
    os.close(pipe[0])
    assert os.getsid(process.pid) == process.pid
    with open(f"/proc/{process.pid}/status") as file:
        status = dict(line.split(":", 1) for line in file)
    assert status["NoNewPrivs"].strip() == "1"


OWNER = """
import os, sys, time
from stockade.network.proxy_process import ProxyProcess, ProxySettings, Listeners
process = ProxyProcess.start(ProxySettings())
process.serve(Listeners(http=int(sys.argv[1])))
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(100)
if sys.argv[2] == "close":
    if os.fork() == 0:
        process.close()
        os._exit(0)
    os.wait()
print(process.pid, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("plain", id="alone"),
        pytest.param("close", id="after a fork of it has closed its copy"),
        pytest.param(
            "fork",
            id="while a fork of it lives",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs a pidfd"),
        ),
    ],
)
def test_it_ends_when_its_owner_is_killed(stage: Stage, how: str) -> None:
    listener = stage.listener()
    os.set_inheritable(listener.fileno(), True)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(listener.fileno()), how],
        stdout=subprocess.PIPE,
        close_fds=False,
        start_new_session=True,
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert stage.client(listener.getsockname()[1], None).connect("a.test:443").startswith(b"HTTP/1.1 407 ")
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()

    def is_dead() -> bool:
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    until(is_dead)
    with suppress(ProcessLookupError):
        os.killpg(owner.pid, signal.SIGKILL)
    owner.stdout.close()


def test_two_thousand_idle_connections_leave_it_at_work(stage: Stage, descriptors: Callable[[int], None]) -> None:
    descriptors(2100)
    process, port = stage.proxy()
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(2000)]
    assert stage.client(port).connect("a.test:443").startswith(b"HTTP/1.1 403 ")
    for connection in idle:
        connection.close()
    assert not process.is_gone()


def test_only_certificates_are_told_by_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        os, "environ", {"SSL_CERT_FILE": "ca.pem", "SSL_CERT_DIR": "", "AWS_SECRET": "x", "PATH": "/bin"}
    )
    assert _environment() == {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}


def test_its_packages_are_found_without_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("h11", "idna", "asyncio"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), *sys.path])
    found = package_path()
    assert str(tmp_path) not in found
    assert all(map(os.path.isabs, found))


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(UnavailableError, match="h11") as caught:
        package_path()
    assert caught.value.hint == f"install it beside Stockade: {sys.executable} -m pip install h11 idna"


def test_an_interpreter_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UnavailableError, match="cannot start the network proxy"):
        ProxyProcess.start(ProxySettings())


def test_the_owners_side_is_cheap_to_import() -> None:
    program = (
        "import sys; before = set(sys.modules); import stockade.network.proxy_process;"
        "print(*(set(sys.modules) - before))"
    )
    loaded = set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded.isdisjoint({"asyncio", "json", "struct", "pickle", "socket", "ssl", "subprocess", "h11", "ctypes"})
