"""What is allowed works as if there were no walls: the same probe outside and inside, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

PROBES: dict[str, tuple[str, str]] = {
    "a server that speaks second": (
        'stream = connect("web.test", facts["echo"]); stream.sendall(b"ping"); end = stream.recv(9).decode()',
        "ping",
    ),
    "a server that speaks first": (
        'end = connect("web.test", facts["banner"]).recv(99).decode().strip()',
        "220 who speaks first",
    ),
    "an end of one direction": (
        """
stream = connect("web.test", facts["echo"])
stream.sendall(b"all")
stream.shutdown(1)
end = hear(stream, 10).decode()
""",
        "all",
    ),
    "a tunnel to a server that speaks first": (
        """
stream, said = tunnel(f"web.test:{facts['banner']}")
end = codes(said) + " " + stream.recv(99).decode().strip()
""",
        "200 220 who speaks first",
    ),
    "chunks": (
        """
server = f"web.test:{facts['http']}"
said = proxy(request(f"http://{server}/chunked", "Connection: close", host=server))
end = codes(said) + str(b"three" in said)
""",
        "200True",
    ),
    "three requests on one connection": (
        """
with to_proxy() as stream:
    for turn in range(3):
        last = ("Connection: close",) if turn == 2 else ()
        stream.sendall(request(f"http://web.test:{facts['http']}/{mark}", *last))
    end = codes(hear(stream))
""",
        "200 200 200",
    ),
    "an upgrade": (
        """
stream = to_proxy()
stream.sendall(request(f"http://web.test:{facts['http']}/", "Connection: Upgrade", "Upgrade: websocket"))
said = head(stream)
stream.sendall(b"after the upgrade")
end = codes(said) + " " + stream.recv(99).decode()
""",
        "101 after the upgrade",
    ),
    "much, downwards": (
        """
said = proxy(request(f"http://web.test:{facts['http']}/big/8000000", "Connection: close"))
end = str(len(said.partition(b"\\r\\n\\r\\n")[2]))
""",
        "8000000",
    ),
    "much, both ways": (
        """
import threading
stream = connect("web.test", facts["echo"])
def pour():
    stream.sendall(bytes(4_000_000))
    stream.shutdown(1)
threading.Thread(target=pour).start()
end = str(len(hear(stream, 20)))
""",
        "4000000",
    ),
    "by IPv6": (
        """
family, _, _, _, address = socket.getaddrinfo("web.test", facts["echo"], facts["family"], 1)[0]
stream = socket.socket(family)
stream.connect(address)
stream.sendall(b"six")
end = stream.recv(9).decode()
""",
        "six",
    ),
    "a body upwards": (
        """
body = b"x" * 300_000
words = request(f"http://web.test:{facts['http']}/", "Connection: close", f"Content-Length: {len(body)}", method="POST")
end = str(len(proxy(words, body).partition(b"\\r\\n\\r\\n")[2]))
""",
        "300000",
    ),
}


@pytest.fixture(scope="module")
def trial(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    return make_trial(PROBES, opened(*net.allow("web.test")), banner=net.banner.port, family=(2, 10))


@pytest.mark.parametrize("name", PROBES)
def test_what_is_allowed_works_as_without_walls(trial: Trial, name: str) -> None:
    assert (trial.control[name].end, trial.inside[name].end) == (PROBES[name][1], PROBES[name][1])
