"""A connection that was made for one name is not used for another, with no proxy in sight or through a tunnel."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

_TLS = """
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
stream = connect("web.test", facts["https"])
with context.wrap_socket(stream, server_hostname={name}) as secure:
    secure.sendall(f"GET /{{mark}} HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n".encode())
    end = codes(hear(secure))
"""
_TUNNELLED = """
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
{tunnel}
try:
    with context.wrap_socket(stream, server_hostname=f"{{mark}}.evil.test") as secure:
        secure.sendall(f"GET /{{mark}} HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n".encode())
        end = codes(hear(secure))
except (ssl.SSLError, ConnectionError):
    end = "ended"
"""
_BY_CONNECT = """stream = tunnel(f"web.test:{facts['https']}")[0]"""
_IN_PIECES = """
class Slow(socket.socket):
    def send(self, data, *flags):
        time.sleep(0.005)
        return super().send(data[:40], *flags)
stream = Slow(fileno=tunnel(f"web.test:{facts['https']}")[0].detach())
stream.settimeout(10)
"""
_BY_SOCKS = """
stream = to_proxy()
stream.settimeout(10)
method = 2 if place.username else 0
stream.sendall(bytes([5, 1, method]))
stream.recv(2)
if method:
    user, token = secret.split(b":")
    stream.sendall(b"\\1" + bytes([len(user)]) + user + bytes([len(token)]) + token)
    stream.recv(2)
stream.sendall(b"\\5\\1\\0\\3\\x08web.test" + facts["https"].to_bytes(2, "big"))
stream.recv(10)
"""
ATTACKS: dict[str, tuple[str, str]] = {
    "another server name by CONNECT": (_TUNNELLED.format(tunnel=_BY_CONNECT), "ended"),
    "another server name in pieces": (_TUNNELLED.format(tunnel=_IN_PIECES), "ended"),
    "another server name by SOCKS": (_TUNNELLED.format(tunnel=_BY_SOCKS), "ended"),
    "another server name": (_TLS.format(name='f"{mark}.evil.test"'), "ECONNRESET"),
    "a subdomain as server name": (_TLS.format(name='f"{mark}.web.test"'), "ECONNRESET"),
    "another Host": (
        """
stream = connect(facts["host"], facts["plain"])
stream.sendall(f"GET /{mark} HTTP/1.1\\r\\nHost: evil.test\\r\\nConnection: close\\r\\n\\r\\n".encode())
end = codes(hear(stream))
""",
        "403",
    ),
    "another host in the target": (
        """
stream = connect(facts["host"], facts["plain"])
target = f"http://evil.test/{mark}"
stream.sendall(f"GET {target} HTTP/1.1\\r\\nHost: {facts['host']}\\r\\nConnection: close\\r\\n\\r\\n".encode())
end = codes(hear(stream))
""",
        "400",
    ),
}
#: Loopback has many addresses, and nobody else is likely to use this one.
_PLACE = "127.71.13.7"


def _may_listen_at_80() -> bool:
    try:
        socket.create_server((_PLACE, 80)).close()
    except OSError:
        return False
    return True


if _may_listen_at_80():
    ATTACKS["another Host in a later request"] = (
        """
stream = connect(facts["host"], facts["plain"])
for host, path in ((facts["host"], ""), ("evil.test", mark)):
    stream.sendall(f"GET /{path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
end = codes(hear(stream))
""",
        "200 403",
    )


@pytest.fixture(scope="module")
def trial(net: Net, opened: Open, make_trial: MakeTrial) -> Iterator[Trial]:
    net.names.set("front.test", (_PLACE,))
    sandbox = opened(*net.allow("web.test"), "front.test:80", f"{_PLACE}:80")
    web = net.serve_at(_PLACE, 80) if _may_listen_at_80() else None
    try:
        yield make_trial(ATTACKS, sandbox, host=("web.test", "front.test"), plain=(net.http.port, 80))
    finally:
        if web is not None:
            web.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_connection_for_one_name_is_not_used_for_another(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name][1])


def test_the_name_itself_is_fine(net: Net, opened: Open, make_trial: MakeTrial) -> None:
    same = {"same": (_TLS.format(name='"web.test"'),), "none": (_TLS.format(name="None"),)}
    both = make_trial(same, opened(*net.allow("web.test")))
    for name in same:
        assert (both.control[name].end, both.inside[name].end) == ("200", "200")
        assert both.inside[name].heard != ()
