"""By no trick with hellos is a server of TLS asked for another name than the one that the connection is for.

Every trick is played without walls first: then one of the servers at least is asked for the other name. Which of them
that is differs with their versions; inside, nothing of it reaches any of them, by whatever way out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tests.enforcement.network.conftest import Net
    from tests.enforcement.network.tls.conftest import Steps, Yard

    from stockade.sandbox.blocking import BlockingSandbox

KINDS = ("openssl", "go", "node")
WAYS = ("connect", "socks", "itself")


def _tricks(tls: ModuleType) -> dict[str, tuple[Callable[[str], Steps], str]]:
    """Return for each trick the steps that ask for a name, and what is told of it."""
    message, records, send, hear = tls.message, tls.records, tls.send, tls.HEAR
    first = records(message("web.test", share=False))
    early = records(message("web.test", share=False, early=True))
    nameless = records(message(None, share=False))
    alert, change = records(b"\1\x5a", kind=21), records(b"\1", kind=20)
    data = records(bytes(60), kind=23)
    version = "a record before the server's answer has another version than 3"
    second = "its second TLS hello names another server"

    def split(name: str, between: bytes = b"", **later: bytes) -> bytes:
        whole = message(name)
        return bytes(records(whole[:50]) + between + records(whole[50:], **later))

    return {
        "another name": (lambda name: [send(records(message(name)))], "its TLS server name is"),
        "another name, in TLS 1.2": (lambda name: [send(records(message(name, version=2)))], "its TLS server name is"),
        "another name, a record for each byte": (
            lambda name: [send(records(message(name), 1), 7)],
            "its TLS server name is",
        ),
        "an alert before the hello": (
            lambda name: [send(alert + records(message(name)))],
            "an alert stands before its hello",
        ),
        "an alert before the hello, in TLS 1.2": (
            lambda name: [send(alert), send(records(message(name, version=2)), 9)],
            "an alert stands before its hello",
        ),
        "an alert in the hello": (
            lambda name: [send(split(name, alert))],
            "an alert stands between the records of its hello",
        ),
        "an empty record before the hello": (
            lambda name: [send(b"\x16\3\1\0\0" + records(message(name)))],
            "a record of its hello is empty",
        ),
        "version 2": (lambda name: [send(records(message(name), version=b"\2\0"))], version),
        "version 0": (lambda name: [send(records(message(name), version=b"\0\0"), 3)], version),
        "version 2 in the second record": (lambda name: [send(split(name, version=b"\2\0"))], version),
        "a second hello": (lambda name: [send(first), hear, send(records(message(name)))], second),
        "a second hello after a change of cipher": (
            lambda name: [send(first), hear, send(change + records(message(name)))],
            second,
        ),
        "a second hello after an alert": (
            lambda name: [send(first), hear, send(alert + records(message(name)))],
            second,
        ),
        "a second hello before it is asked for": (lambda name: [send(first + change + records(message(name)))], second),
        "a second hello, a record for each byte": (
            lambda name: [send(first), hear, send(change + records(message(name), 1), 7)],
            second,
        ),
        "a second hello after one without a name": (
            lambda name: [send(nameless), hear, send(records(message(name)))],
            second,
        ),
        "a second hello after early data": (
            lambda name: [send(early + data), hear, send(data + records(message(name)))],
            second,
        ),
        "a second hello after early data, all at once": (
            lambda name: [send(early + change + data * 3 + records(message(name)), 100)],
            second,
        ),
    }


TRICKS = (
    "another name",
    "another name, in TLS 1.2",
    "another name, a record for each byte",
    "an alert before the hello",
    "an alert before the hello, in TLS 1.2",
    "an alert in the hello",
    "an empty record before the hello",
    "version 2",
    "version 0",
    "version 2 in the second record",
    "a second hello",
    "a second hello after a change of cipher",
    "a second hello after an alert",
    "a second hello before it is asked for",
    "a second hello, a record for each byte",
    "a second hello after one without a name",
    "a second hello after early data",
    "a second hello after early data, all at once",
)


@pytest.fixture(scope="module")
def sandbox(net: Net, tls_yard: Yard) -> Iterator[BlockingSandbox]:
    ports = [server.port for server in tls_yard.servers.values()]
    with net.sandbox(*net.allow("web.test", ports=ports)) as sandbox:
        yield sandbox


def test_the_list_of_tricks_is_whole(tls: ModuleType) -> None:
    assert tuple(_tricks(tls)) == TRICKS


@pytest.mark.parametrize("trick", TRICKS)
def test_without_walls_a_server_is_asked_for_the_other_name(
    net: Net, tls: ModuleType, tls_yard: Yard, trick: str
) -> None:
    name = f"{net.mark()}.evil.test"
    for server in tls_yard.servers.values():
        tls_yard.play(server, _tricks(tls)[trick][0](name))
    assert any(server.names(name) for server in tls_yard.servers.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trick", TRICKS)
def test_no_server_is_asked_for_another_name_than_the_allowed_one(
    net: Net, tls: ModuleType, tls_yard: Yard, sandbox: BlockingSandbox, trick: str, kind: str
) -> None:
    server, name = tls_yard.servers[kind], f"{net.mark()}.evil.test"
    steps, why = _tricks(tls)[trick]
    for way in WAYS:
        ends, result = tls_yard.play(server, steps(name), ways=(way,), sandbox=sandbox)
        assert (server.names(name), ends[way].end) == ([], "ended")
        if kind == "go" and "early data" in trick and not result.violations:
            continue  # it ends the connection at the first hello, which is right but for that offer
        refused = [each for each in result.violations if why in each.why]
        assert [each.target for each in refused] == [f"web.test:{server.port}"], result.violations


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [2, 3], ids=["TLS 1.2", "TLS 1.3"])
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after the answer"])
def test_no_server_obeys_a_hello_after_its_own(
    net: Net, tls: ModuleType, tls_yard: Yard, kind: str, version: int, *, waits: bool
) -> None:
    """After that the screen looks at a hello only if it is the next thing that the client says. No walls here."""
    server, name = tls_yard.servers[kind], f"{net.mark()}.evil.test"
    first = tls.send(tls.records(tls.message(f"first.{name}", version=version), version=b"\3\3"))
    second = tls.send(tls.records(tls.message(f"second.{name}", version=version), version=b"\3\3"))
    ends, _ = tls_yard.play(server, [first, *([tls.HEAR] if waits else []), second])
    assert server.names(name) == [f"first.{name}"]
    assert (22 in ends["itself"].heard, ends["itself"].end) == (True, "ended")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [2, 3], ids=["TLS 1.2", "TLS 1.3"])
def test_a_hello_after_the_servers_own_is_judged_all_the_same(
    net: Net, tls: ModuleType, tls_yard: Yard, sandbox: BlockingSandbox, kind: str, version: int
) -> None:
    """None of these servers obeys it. OpenSSL before 1.1 does, in TLS 1.2, and is not at hand."""
    server, name = tls_yard.servers[kind], f"{net.mark()}.evil.test"
    first, second = (tls.message(each, version=version) for each in ("web.test", name))
    steps = [tls.send(tls.records(first)), tls.HEAR, tls.send(tls.records(second), 50)]
    for way in WAYS:
        ends, result = tls_yard.play(server, steps, ways=(way,), sandbox=sandbox)
        assert (server.names(name), 22 in ends[way].heard, ends[way].end) == ([], True, "ended")
        assert [each.target for each in result.violations] == [f"web.test:{server.port}"]
        assert "its second TLS hello names another server" in result.violations[0].why


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [2, 3], ids=["TLS 1.2", "TLS 1.3"])
def test_the_allowed_name_is_answered(
    tls: ModuleType, tls_yard: Yard, sandbox: BlockingSandbox, kind: str, version: int
) -> None:
    """A retry too, with the change of cipher before the second hello; in whatever pieces."""
    for size in (3, 1 << 20):
        hello = tls.message("web.test", version=version)
        steps = [tls.send(tls.records(hello, 40), size), tls.HEAR, ["end"]]
        if version == 3:
            first = tls.send(tls.records(tls.message("web.test", share=False)), size)
            again = tls.send(tls.records(b"\1", kind=20) + tls.records(hello, 40), size)
            steps = [first, tls.HEAR, again, tls.HEAR, ["end"]]
        ends, result = tls_yard.play(tls_yard.servers[kind], steps, ways=WAYS, sandbox=sandbox)
        assert result.violations == ()
        assert [each.heard.count(22) >= (2 if version == 3 else 4) for each in ends.values()] == [True] * 3, ends
