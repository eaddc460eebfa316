from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from stockade.network.original_destination import original_destination
from stockade.platforms.linux import identity, kernel, netlink, nftables, routing

InNetwork: TypeAlias = Callable[[Callable[[], object]], Any]
Families: TypeAlias = tuple[int, ...]

TRANSPARENT, NAMES, SERVER, NOBODY = 3129, 53, 8000, 8001
SECONDS = 20  # far more than anything takes; a test that waits this long has failed
IPV4, IPV6 = socket.AF_INET, socket.AF_INET6
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
INET: Families = (nftables.NFPROTO_INET,)
APART: Families = (nftables.NFPROTO_IPV4, nftables.NFPROTO_IPV6)


def bound(family: int, kind: int, address: str, port: int) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind((address, port))
    if kind == TCP:
        made.listen()
    made.settimeout(SECONDS)
    return made


def listeners(kind: int) -> dict[int, str]:
    """Return who listens in the network: the session's own, and a server of a command."""
    made: dict[socket.socket, str] = {}
    for name, port in (("transparent", TRANSPARENT), ("names", NAMES)):
        made |= {bound(family, kind, host, port): name for family, host in ((IPV4, "127.0.0.1"), (IPV6, "::1"))}
    made |= {bound(family, kind, host, SERVER): "server" for family, host in ((IPV4, "0.0.0.0"), (IPV6, "::1"))}  # noqa: S104 - of a network apart
    made[bound(IPV6, kind, "fd73:746f:636b::1", SERVER)] = "server"
    return {listener.detach(): name for listener, name in made.items()}


def make_local(family: int) -> None:
    netlink.perform(0, routing.everything_local(family), b"routes")


def carry(families: Families) -> None:
    if families == INET:
        routing.carry(TRANSPARENT, NAMES)
        return
    for kind in (IPV4, IPV6):
        make_local(kind)
    for family in families:
        routing.redirect(family, TRANSPARENT, NAMES)


def arrival(families: Families, kind: int, address: tuple[Any, ...], source: str = "") -> tuple[str, object]:
    """Return who hears a client, and the original destination; or the error that the client gets, at once.

    The client is connected, so that it takes an answer from where it sent to and from nowhere else.
    """
    carry(families)
    heard = listeners(kind)
    client = socket.socket(IPV6 if ":" in address[0] else IPV4, kind)
    client.settimeout(SECONDS)
    try:
        if source:
            client.bind((source, 0))
        client.connect(address)
        client.send(b"question")
        first = select.select([client.fileno(), *heard], [], [], SECONDS)[0][0]
        if first == client.fileno():
            client.recv(1)
        return heard[first], answered(socket.socket(fileno=first), client)
    except OSError as error:
        return "refused", errno.errorcode.get(error.errno or 0, repr(error))


def answered(listener: socket.socket, client: socket.socket) -> object:
    listener.settimeout(SECONDS)
    if listener.type == UDP:
        question, sender = listener.recvfrom(100)
        listener.sendto(b"answer to " + question, sender)
        return client.recv(100)
    connection, _ = listener.accept()
    connection.send(b"answer")
    assert client.recv(100) == b"answer"
    try:
        return original_destination(connection)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@pytest.mark.parametrize("families", [pytest.param(INET, id="inet"), pytest.param(APART, id="ip-and-ip6")])
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param(("198.18.5.5", 443), ("transparent", ("198.18.5.5", 443)), id="address-of-a-name"),
        pytest.param(("fd73:746f:636b::105", 443), ("transparent", ("fd73:746f:636b::105", 443)), id="of-a-name-ipv6"),
        pytest.param(("93.184.216.34", 80), ("transparent", ("93.184.216.34", 80)), id="real"),
        pytest.param(("2001:4860::1", 80), ("transparent", ("2001:4860::1", 80)), id="real-ipv6"),
        pytest.param(("93.184.216.34", 3129), ("transparent", ("93.184.216.34", 3129)), id="the-listeners-own-port"),
        pytest.param(("169.254.169.254", 80), ("transparent", ("169.254.169.254", 80)), id="link-local"),
        pytest.param(("fe80::1", 80, 0, 1), ("transparent", ("fe80::1", 80)), id="link-local-ipv6"),
        pytest.param(("240.0.0.1", 80), ("transparent", ("240.0.0.1", 80)), id="reserved"),
        pytest.param(("::ffff:1.2.3.4", 80), ("transparent", ("1.2.3.4", 80)), id="ipv4-in-ipv6"),
        pytest.param(("8.8.8.8", 53), ("names", ("8.8.8.8", 53)), id="dns"),
        pytest.param(("2001:4860:4860::8888", 53), ("names", ("2001:4860:4860::8888", 53)), id="dns-ipv6"),
        pytest.param(("127.0.0.1", SERVER), ("server", "ENOENT"), id="localhost"),
        pytest.param(("127.0.0.2", SERVER), ("server", "ENOENT"), id="all-of-127"),
        pytest.param(("::1", SERVER), ("server", "ENOENT"), id="localhost-ipv6"),
        pytest.param(("::ffff:127.0.0.1", SERVER), ("server", "ENOENT"), id="localhost-ipv4-in-ipv6"),
        pytest.param(("198.18.0.1", SERVER), ("server", "ENOENT"), id="own-address"),
        pytest.param(("fd73:746f:636b::1", SERVER), ("server", "ENOENT"), id="own-address-ipv6"),
        pytest.param(("0.0.0.0", SERVER), ("server", "ENOENT"), id="any"),  # noqa: S104 - connected to, not bound
        pytest.param(("::", SERVER), ("server", "ENOENT"), id="any-ipv6"),
        pytest.param(("127.0.0.1", TRANSPARENT), ("transparent", "ENOENT"), id="the-listener-itself"),
        pytest.param(("::1", TRANSPARENT), ("transparent", "ENOENT"), id="the-listener-itself-ipv6"),
        pytest.param(("127.0.0.1", NOBODY), ("refused", "ECONNREFUSED"), id="localhost-nobody"),
        pytest.param(("::1", NOBODY), ("refused", "ECONNREFUSED"), id="localhost-nobody-ipv6"),
        pytest.param(("198.18.0.1", TRANSPARENT), ("refused", "ECONNREFUSED"), id="own-address-nobody"),
        pytest.param(("255.255.255.255", 80), ("refused", "ENETUNREACH"), id="broadcast"),
        pytest.param(("224.0.0.1", 80), ("refused", "ENETUNREACH"), id="multicast"),
        pytest.param(("ff02::1", 80, 0, 1), ("refused", "ENETUNREACH"), id="multicast-ipv6"),
    ],
)
def test_connections_are_carried_or_refused_at_once(
    in_network: InNetwork, families: Families, address: tuple[Any, ...], expected: object
) -> None:
    assert in_network(lambda: arrival(families, TCP, address)) == expected


@pytest.mark.parametrize(
    ("address", "source"),
    [
        pytest.param("1.2.3.4", "127.0.0.1", id="localhost"),
        pytest.param("1.2.3.4", "5.6.7.8", id="of-nobody"),
        pytest.param("1.2.3.4", "1.2.3.4", id="the-destination"),
        pytest.param("2001::4", "::1", id="localhost-ipv6"),
    ],
)
def test_a_client_may_have_any_address_of_its_own(in_network: InNetwork, address: str, source: str) -> None:
    found = in_network(lambda: arrival(INET, TCP, (address, 80), source))
    assert found == ("transparent", (address, 80))


@pytest.mark.parametrize("families", [pytest.param(INET, id="inet"), pytest.param(APART, id="ip-and-ip6")])
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param(("8.8.8.8", 53), ("names", b"answer to question"), id="dns"),
        pytest.param(("2001:4860:4860::8888", 53), ("names", b"answer to question"), id="dns-ipv6"),
        pytest.param(("::ffff:8.8.8.8", 53), ("names", b"answer to question"), id="dns-ipv4-in-ipv6"),
        pytest.param(("127.0.0.1", 53), ("names", b"answer to question"), id="the-name-server-itself"),
        pytest.param(("127.0.0.1", SERVER), ("server", b"answer to question"), id="localhost"),
        pytest.param(("8.8.8.8", 443), ("refused", "ECONNREFUSED"), id="other-port"),
        pytest.param(("2001:4860:4860::8888", 443), ("refused", "ECONNREFUSED"), id="other-port-ipv6"),
        pytest.param(("8.8.8.8", TRANSPARENT), ("refused", "ECONNREFUSED"), id="transparent-port"),
        pytest.param(("127.0.0.1", NOBODY), ("refused", "ECONNREFUSED"), id="localhost-nobody"),
        pytest.param(("255.255.255.255", 67), ("refused", "EACCES"), id="broadcast"),
    ],
)
def test_of_datagrams_only_names_are_carried(
    in_network: InNetwork, families: Families, address: tuple[Any, ...], expected: object
) -> None:
    assert in_network(lambda: arrival(families, UDP, address)) == expected


# Answers any question of one name: A with 198.18.1.0, AAAA with fd73:746f:636b::100.
ADDRESSES = {1: bytes((198, 18, 1, 0)), 28: bytes.fromhex("fd73746f636b00000000000000000100")}


def answer_names() -> None:
    server = bound(IPV4, UDP, "127.0.0.1", NAMES)
    while True:
        question, sender = server.recvfrom(512)
        end = question.index(b"\0", 12) + 5
        address = ADDRESSES[question[end - 3]]
        record = b"\xc0\x0c" + question[end - 4 : end] + bytes(4) + len(address).to_bytes(2, "big") + address
        head = question[:2] + b"\x85\x80" + b"\0\1\0\1" + bytes(4)
        server.sendto(head + question[12:end] + record, sender)


def found_addresses(folder: str) -> list[object]:
    setting = os.path.join(folder, "resolv.conf")
    with open(setting, "w") as file:
        file.write("nameserver 8.8.8.8\n")
    place = os.path.realpath("/etc/resolv.conf").encode()
    kernel.move_mount(
        kernel.open_tree(kernel.AT_FDCWD, setting.encode(), kernel.OPEN_TREE_CLONE), kernel.resolve(place)
    )
    routing.carry(TRANSPARENT, NAMES)
    threading.Thread(target=answer_names, daemon=True).start()
    # In a new process: this one has read the host's setting already.
    ask = (
        "import socket; print([i[4][0] for i in socket.getaddrinfo('example.com', 443, 0, 1, 0, socket.AI_ADDRCONFIG)])"
    )
    words = [sys.executable, "-I", "-S", "-c", ask]
    return [subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()]


@pytest.mark.skipif(not os.path.exists("/etc/resolv.conf"), reason="this machine has no /etc/resolv.conf")
def test_both_families_count_as_there(in_network: InNetwork, tmp_path: os.PathLike[str]) -> None:
    (found,) = in_network(lambda: found_addresses(os.fspath(tmp_path)))
    assert sorted(found.strip("[]").split(", ")) == ["'198.18.1.0'", "'fd73:746f:636b::100'"]


def refusals_in_a_jail() -> list[tuple[int | None, object]]:
    """Carry, then try the same as the root of a user namespace below, in which commands live."""
    routing.carry(TRANSPARENT, NAMES)
    kernel.unshare(kernel.CLONE_NEWUSER)
    identity.write_maps(b"self", b"0 0 1", b"0 0 1", keep_groups=True)
    found: list[tuple[int | None, object]] = []
    for action in (
        partial(make_local, IPV4),
        partial(make_local, IPV6),
        partial(routing.redirect, nftables.NFPROTO_IPV4, 1, 2),
        partial(routing.carry, 1, 2),
    ):
        try:
            action()
            found.append((0, ""))
        except OSError as error:
            found.append((error.errno, error.filename))
    return found


def test_root_of_a_jail_cannot_change_it(in_network: InNetwork) -> None:
    assert in_network(refusals_in_a_jail) == [
        (errno.EPERM, b"IPv4 address on the loopback device"),
        (errno.EPERM, b"IPv6 address on the loopback device"),
        (errno.EPERM, b"nftables"),
        (errno.EPERM, b"IPv4 address on the loopback device"),
    ]


def carried_without_ipv6() -> tuple[object, bool]:
    with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as file:
        file.write("1")
    routing.carry(TRANSPARENT, NAMES)
    listener = bound(IPV4, TCP, "127.0.0.1", TRANSPARENT)
    client = socket.create_connection(("93.184.216.34", 80), SECONDS)
    connection, _ = listener.accept()
    refused = socket.socket(IPV6).connect_ex(("2001::1", 80))
    client.close()
    return original_destination(connection), refused in {errno.EADDRNOTAVAIL, errno.ENETUNREACH}


def test_without_ipv6_the_rest_is_carried(in_network: InNetwork) -> None:
    assert in_network(carried_without_ipv6) == (("93.184.216.34", 80), True)


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        pytest.param({}, ["routes 2", "routes 10", "rules 1"], id="all-there"),
        pytest.param(
            {"rules 1": errno.EOPNOTSUPP}, ["routes 2", "routes 10", "rules 1", "rules 2", "rules 10"], id="old"
        ),
        pytest.param(
            {"routes 10": errno.EOPNOTSUPP, "rules 1": errno.EAFNOSUPPORT},
            ["routes 2", "routes 10", "rules 1", "rules 2"],
            id="no-ipv6",
        ),
        pytest.param({"routes 2": errno.EPERM}, ["routes 2", errno.EPERM], id="no-right"),
        pytest.param({"routes 10": errno.EPERM}, ["routes 2", "routes 10", errno.EPERM], id="no-right-ipv6"),
        pytest.param({"rules 1": errno.EPERM}, ["routes 2", "routes 10", "rules 1", errno.EPERM], id="no-right-rules"),
        pytest.param(
            {"rules 1": errno.EINVAL, "rules 2": errno.EINVAL},
            ["routes 2", "routes 10", "rules 1", "rules 2", errno.EINVAL],
            id="no-nftables",
        ),
    ],
)
def test_what_a_kernel_lacks_is_done_without_or_said(
    monkeypatch: pytest.MonkeyPatch, refused: dict[str, int], expected: list[object]
) -> None:
    done: list[object] = []

    def perform(protocol: int, requests: tuple[netlink.Request, ...], _opening: bytes) -> None:
        done.append(f"rules {requests[1].body[0]}" if protocol else f"routes {requests[0].body[0]}")
        if number := refused.get(str(done[-1])):
            raise OSError(number, os.strerror(number), requests[0].step)

    monkeypatch.setattr(routing, "perform", perform)
    try:
        routing.carry(TRANSPARENT, NAMES)
    except OSError as error:
        done.append(error.errno)
    assert done == expected
