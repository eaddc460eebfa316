from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network import dial as module
from stockade.network.dial import Pace, dial, failure_of, interleave
from stockade.network.failure import ConnectError, Failure
from stockade.policy.host import Host
from stockade.policy.port import Port

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

QUICK = Pace(stagger=0.01, seconds=5)


def hosts(texts: str) -> tuple[Host, ...]:
    return tuple(map(Host.parse, texts.split()))


def run(scene: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 10))


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def port_of(server: socket.socket) -> Port:
    return Port(server.getsockname()[1])


@pytest.fixture
def closed_port() -> Port:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return port_of(server)


@pytest.mark.parametrize(
    ("given_order", "expected"),
    [
        ("", ""),
        ("1.1.1.1", "1.1.1.1"),
        ("2a00::1 2a00::2 1.1.1.1 1.1.1.2", "2a00::1 1.1.1.1 2a00::2 1.1.1.2"),
        ("1.1.1.1 1.1.1.2 1.1.1.3 2a00::1", "1.1.1.1 2a00::1 1.1.1.2 1.1.1.3"),
        ("1.1.1.1 1.1.1.1", "1.1.1.1"),
    ],
)
def test_the_families_take_turns(given_order: str, expected: str) -> None:
    assert interleave(hosts(given_order)) == hosts(expected)


@given(st.lists(st.ip_addresses().map(str).map(Host.parse), max_size=12))
def test_no_address_is_lost_or_comes_twice(addresses: list[Host]) -> None:
    order = interleave(addresses)
    assert sorted(order, key=str) == sorted(set(addresses), key=str)
    assert order[:1] == tuple(addresses[:1])


def test_a_connection_is_made_and_does_not_block(listening: socket.socket) -> None:
    async def scene() -> None:
        with await dial(hosts("127.0.0.1"), port_of(listening), QUICK) as connection:
            assert connection.getpeername() == listening.getsockname()
            assert not connection.getblocking()
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    run(scene())


def test_the_next_address_is_tried_when_one_fails(listening: socket.socket) -> None:
    async def scene() -> None:
        pace = Pace(stagger=60, seconds=5)
        with await dial(hosts("127.0.0.2 127.0.0.3 127.0.0.1"), port_of(listening), pace) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"

    run(scene())


class Network:
    """Stands for `_attempt`: addresses in ``silent`` never answer, others give what ``outcomes`` says."""

    def __init__(self, outcomes: dict[str, Failure]) -> None:
        self.outcomes = outcomes
        self.tried: list[str] = []
        self.ended: list[str] = []
        self.sockets: list[socket.socket] = []

    async def attempt(self, address: Host, _port: Port) -> socket.socket | Failure:
        self.tried.append(address.text)
        if address.text in self.outcomes:
            return self.outcomes[address.text]
        if address.text.startswith("9."):
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.append(address.text)
        self.sockets.append(socket.socket())
        return self.sockets[-1]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    stub = Network({})
    monkeypatch.setattr(module, "_attempt", stub.attempt)
    return stub


def test_a_silent_address_holds_the_next_one_up_only_shortly_and_is_given_up(network: Network) -> None:
    async def scene() -> None:
        with await dial(hosts("9.0.0.1 1.1.1.1 1.1.1.2"), Port(80), QUICK) as connection:
            assert connection in network.sockets
        assert network.tried == ["9.0.0.1", "1.1.1.1"]
        assert network.ended == ["9.0.0.1"]

    run(scene())


def test_only_one_connection_is_left_when_several_win_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    both = asyncio.Event()

    async def attempt(_address: Host, _port: Port) -> socket.socket:
        made.append(socket.socket())
        mine = made[-1]
        if len(made) == 2:
            both.set()
        await both.wait()
        return mine

    monkeypatch.setattr(module, "_attempt", attempt)

    async def scene() -> None:
        with await dial(hosts("1.1.1.1 1.1.1.2"), Port(80), QUICK) as winner:
            assert [connection.fileno() for connection in made if connection.fileno() != -1] == [winner.fileno()]

    run(scene())


def test_silence_everywhere_ends_at_the_time_limit(network: Network) -> None:
    async def scene() -> None:
        with pytest.raises(ConnectError) as caught:
            await dial(hosts("9.0.0.1 9.0.0.2"), Port(80), Pace(stagger=0.001, seconds=0.05))
        assert caught.value.failure is Failure.TIMED_OUT
        assert sorted(network.ended) == ["9.0.0.1", "9.0.0.2"]

    run(scene())


def test_a_cancelled_dial_leaves_nothing(network: Network) -> None:
    async def scene() -> None:
        dialling = asyncio.create_task(dial(hosts("9.0.0.1 9.0.0.2"), Port(80), QUICK))
        await asyncio.sleep(0.05)
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        assert sorted(network.ended) == ["9.0.0.1", "9.0.0.2"]

    run(scene())


@pytest.mark.parametrize(
    ("failures", "told"),
    [
        ([Failure.UNREACHABLE, Failure.REFUSED], Failure.REFUSED),
        ([Failure.REFUSED, Failure.UNREACHABLE], Failure.REFUSED),
        ([Failure.UNREACHABLE, Failure.TIMED_OUT], Failure.TIMED_OUT),
        ([Failure.OTHER, Failure.OTHER], Failure.OTHER),
    ],
)
def test_of_several_failures_the_most_telling_is_told(network: Network, failures: list[Failure], told: Failure) -> None:
    network.outcomes = dict(zip(("1.1.1.1", "2a00::1"), failures, strict=True))

    async def scene() -> None:
        with pytest.raises(ConnectError) as caught:
            await dial(hosts("1.1.1.1 2a00::1"), Port(80), QUICK)
        assert (caught.value.failure, caught.value.message) == (told, f"1.1.1.1:80: {told.value}")

    run(scene())


def test_only_so_many_addresses_are_tried(network: Network) -> None:
    addresses = tuple(Host.parse(f"1.1.1.{n}") for n in range(1, 20))
    network.outcomes = {address.text: Failure.REFUSED for address in addresses}

    async def scene() -> None:
        with pytest.raises(ConnectError):
            await dial(addresses, Port(80), Pace(most=4))
        assert len(network.tried) == 4

    run(scene())


@pytest.mark.parametrize("addresses", ["127.0.0.1", "127.0.0.1 127.0.0.2"])
def test_a_closed_port_refuses(closed_port: Port, addresses: str) -> None:
    async def scene() -> None:
        with pytest.raises(ConnectError) as caught:
            await dial(hosts(addresses), closed_port, QUICK)
        assert caught.value.failure is Failure.REFUSED

    run(scene())


def test_no_address_at_all_is_a_failure() -> None:
    async def scene() -> None:
        with pytest.raises(ConnectError) as caught:
            await dial((), Port(80), QUICK)
        assert caught.value.failure is Failure.OTHER

    run(scene())


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (errno.ECONNREFUSED, Failure.REFUSED),
        (errno.ETIMEDOUT, Failure.TIMED_OUT),
        (errno.ENETUNREACH, Failure.UNREACHABLE),
        (errno.EHOSTUNREACH, Failure.UNREACHABLE),
        (errno.EAFNOSUPPORT, Failure.UNREACHABLE),
        (errno.EMFILE, Failure.BUSY),
        (errno.EINVAL, Failure.OTHER),
        (None, Failure.OTHER),
    ],
)
def test_errors_of_the_system_are_few_kinds_of_failure(code: int | None, failure: Failure) -> None:
    assert failure_of(OSError() if code is None else OSError(code, "x")) is failure


def test_dialling_resolves_nothing(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        def asked(*_args: object, **_options: object) -> None:
            pytest.fail("a name was resolved")

        monkeypatch.setattr(socket, "getaddrinfo", asked)
        (await dial(hosts("127.0.0.1"), port_of(listening), QUICK)).close()

    run(scene())
