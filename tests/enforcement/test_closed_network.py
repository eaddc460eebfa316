"""With no allowed domain nothing leaves, and the session's localhost is its own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground, MakeTrial, Trial

ROOT = os.geteuid() == 0

HOST: dict[str, tuple[str, ...]] = {
    "a TCP service of the host": (
        "socket.create_connection(('127.0.0.1', facts['tcp']), 5).close()",
        "ECONNREFUSED",
    ),
    "the same by another name": (
        "socket.create_connection(('127.9.9.9', facts['tcp']), 5).close()",
        "ECONNREFUSED",
        "ECONNREFUSED",
    ),
    "a UDP service of the host": (
        (
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', facts['udp']));"
            "s.send(b'x'); time.sleep(0.1); s.send(b'x')"
        ),
        "ECONNREFUSED",
    ),
    "the mapped address": (
        "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', facts['tcp']))",
        "ECONNREFUSED",
    ),
}
#: Every address leads to the session's own proxy, which refuses at once; other devices than loopback there are none.
#: (The control would leave the machine.)
AWAY: dict[str, tuple[str, str]] = {
    "TCP": ("socket.create_connection(('192.0.2.1', 80), 5).recv(1)", "ECONNRESET"),
    "TCP to any port": ("socket.create_connection(('192.0.2.1', 12345), 5).recv(1)", "ECONNRESET"),
    "TCP on IPv6": ("s = socket.socket(socket.AF_INET6); s.connect(('2001:db8::1', 80)); s.recv(1)", "ECONNRESET"),
    "TCP to a mapped address": (
        "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:192.0.2.1', 80)); s.recv(1)",
        "ECONNRESET",
    ),
    "TCP fast open": (
        "s = socket.socket(); s.sendto(b'x', 0x20000000, ('192.0.2.1', 80)); s.recv(1)",
        "ECONNRESET",
    ),
    "UDP": (
        (
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 443));"
            "s.send(b'x'); time.sleep(0.1); s.send(b'x')"
        ),
        "ECONNREFUSED",
    ),
    "UDP on IPv6": (
        (
            "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(('2001:db8::1', 443));"
            "s.send(b'x'); time.sleep(0.1); s.send(b'x')"
        ),
        "ECONNREFUSED",
    ),
    "the metadata address": ("socket.create_connection(('169.254.169.254', 80), 5).recv(1)", "ECONNRESET"),
    "broadcast, which nobody hears": (
        (
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1);"
            "s.sendto(b'x', ('255.255.255.255', 9))"
        ),
        "ok",
    ),
    "multicast, which nobody hears": (
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('224.0.0.251', 5353))",
        "ok",
    ),
    "ping": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)", "EPROTONOSUPPORT"),
    "ping on IPv6": ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 58)", "EPROTONOSUPPORT"),
    "raw": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)", "EPERM"),
    "raw on IPv6": ("socket.socket(socket.AF_INET6, socket.SOCK_RAW, 255)", "EPERM"),
    "packets": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)", "EAFNOSUPPORT"),
    "vsock": ("socket.socket(40, socket.SOCK_STREAM)", "EAFNOSUPPORT"),
    "SCTP": ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)", "EPROTONOSUPPORT"),
    "MPTCP": ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)", "EPROTONOSUPPORT"),
    "Bluetooth": ("socket.socket(31, socket.SOCK_RAW, 1)", "EAFNOSUPPORT"),
    "CAN": ("socket.socket(29, socket.SOCK_RAW, 1)", "EAFNOSUPPORT"),
    "kernel crypto": ("socket.socket(38, socket.SOCK_SEQPACKET)", "EAFNOSUPPORT"),
    "TIPC": ("socket.socket(30, socket.SOCK_STREAM)", "EAFNOSUPPORT"),
    "XDP": ("socket.socket(44, socket.SOCK_RAW)", "EAFNOSUPPORT"),
    "netlink for firewalls": ("socket.socket(16, socket.SOCK_RAW, 12)", "EPROTONOSUPPORT"),
    "netlink for hardware events": ("socket.socket(16, socket.SOCK_RAW, 15)", "EPROTONOSUPPORT"),
    "netlink for audit": ("socket.socket(16, socket.SOCK_RAW, 9)", "EPROTONOSUPPORT"),
    "generic netlink": ("socket.socket(16, socket.SOCK_RAW, 16)", "EPROTONOSUPPORT"),
    "a new device by netlink": (
        """
s = socket.socket(16, socket.SOCK_RAW, 0)
s.bind((0, 0))
name = struct.pack('HH', 10, 3) + b'dummy0' + bytes(2)
info = struct.pack('HH', 14, 18) + struct.pack('HH', 10, 1) + b'dummy' + bytes(3) + bytes(2)
body = struct.pack('BxHiII', 0, 0, 0, 0, 0) + name + info
s.send(struct.pack('IHHII', 16 + len(body), 16, 0x605, 1, 0) + body)
answer = s.recv(4096)
code = -struct.unpack_from('i', answer, 16)[0]
if code:
    raise OSError(code, '')
""",
        "EPERM",
    ),
    "a name": (
        "try:\n    socket.getaddrinfo('example.com', 80)\nexcept socket.gaierror as e:\n    raise OSError(101, '')",
        "ENETUNREACH",
    ),
    "a socket that asks for a device": (
        "socket.socket().setsockopt(1, 25, b'eth0')",
        "ENODEV",
    ),
    "a mark that leaves by another table": ("socket.socket().setsockopt(1, 36, 1)", "EPERM"),
}


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    return make_trial(HOST)


@pytest.mark.parametrize("name", HOST)
def test_no_service_of_the_host_is_reached(trial: Trial, name: str) -> None:
    trial.judge(name, HOST[name])


def test_no_service_of_the_host_hears_anything(trial: Trial) -> None:
    assert set(trial.control.reached) == {"tcp", "udp"}
    assert trial.inside.reached == ()


@pytest.fixture(scope="module")
def away(inside_only: MakeTrial) -> Trial:
    return inside_only(AWAY)


@pytest.mark.parametrize("name", AWAY)
def test_nothing_leaves(away: Trial, name: str) -> None:
    assert away.inside.endings[name].end == AWAY[name][1]


def test_only_loopback_is_there(ground: Ground) -> None:
    assert (
        ground.sandbox().run("ls /sys/class/net; cat /proc/net/dev | tail -n +3 | cut -d: -f1").output.split()[-1]
        == "lo"
    )
    assert ground.sandbox().run("tail -n +3 /proc/net/dev").output.count(":") == 1
    assert ground.sandbox().run("cat /proc/net/route").output.count("\n") == 1


SERVE = """
import os, socket, sys, time
service = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(service.getsockname()[1], flush=True)
service.settimeout(20)
client = service.accept()[0]
client.sendall(b"hello from inside")
client.close()
"""
ASK = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print(s.recv(99).decode())"


def test_localhost_is_shared_by_the_commands_of_a_session_and_by_nobody_else(ground: Ground) -> None:
    sandbox, other = ground.sandbox(), ground.sandbox()
    reader, writer = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    python = [sys.executable, "-I", "-S", "-c"]
    serving = sandbox.session.start([*python, SERVE, "0"], (nothing, writer, nothing))
    os.close(writer)
    port = os.read(reader, 99).decode().strip()
    assert ground.bare(f'{sys.executable} -c "{ASK}" {port}').returncode == 1, "the host"
    assert other.run([*python, ASK, port]).exit_code == 1, "another session"
    assert sandbox.run([*python, ASK, port]).output == "hello from inside\n"
    while serving.outcome is None:
        sandbox.session.pump()
    os.close(reader)
    os.close(nothing)


def test_two_sessions_may_listen_on_the_same_port(ground: Ground) -> None:
    line = [sys.executable, "-I", "-S", "-c", "import socket; socket.create_server(('127.0.0.1', 4321)); print('up')"]
    for _ in range(2):
        assert ground.sandbox().run(line).output == "up\n"
