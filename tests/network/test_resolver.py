from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.failure import ConnectError, Failure
from stockade.network.gate import Gate
from stockade.network.resolver import Resolver, ResolverLimits, system_lookup
from stockade.policy.decision import Reason
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Coroutine

NAME = Host.parse("a.example")


def hosts(*texts: str) -> tuple[Host, ...]:
    return tuple(map(Host.parse, texts))


def run(scene: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 10))


class Names:
    """A name server whose answers are set, one after another; it counts."""

    def __init__(self, *answers: list[str] | OSError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


def failing(resolver: Resolver, host: Host = NAME) -> Failure:
    async def scene() -> Failure:
        with pytest.raises(ConnectError) as caught:
            await resolver.resolve(host)
        return caught.value.failure

    return asyncio.run(scene())


def test_the_addresses_are_canonical_and_each_comes_once_in_order() -> None:
    async def scene() -> None:
        names = Names(["2A00::1", "::ffff:8.8.8.8", "8.8.8.8", "fe80::1%eth0", "1.1.1.1"])
        assert await Resolver(names).resolve(NAME) == hosts("2a00::1", "8.8.8.8", "1.1.1.1")
        assert names.asked == ["a.example"]

    run(scene())


@pytest.mark.parametrize("text", ["127.0.0.1", "::1"])
def test_an_address_is_its_own_and_nobody_is_asked(text: str) -> None:
    async def scene() -> None:
        assert await Resolver(Names()).resolve(Host.parse(text)) == hosts(text)

    run(scene())


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        pytest.param(socket.gaierror(socket.EAI_NONAME, "unknown"), Failure.NO_SUCH_NAME, id="no such name"),
        pytest.param(socket.gaierror(socket.EAI_AGAIN, "later"), Failure.NAME_FAILED, id="no name server"),
        pytest.param(OSError("?"), Failure.NAME_FAILED, id="another error"),
        pytest.param([], Failure.NO_SUCH_NAME, id="no address"),
        pytest.param(["b.example", "fe80::1%1", "x y"], Failure.NO_SUCH_NAME, id="nothing that is an address"),
    ],
)
def test_what_goes_wrong_has_its_failure(answer: list[str] | OSError, failure: Failure) -> None:
    assert failing(Resolver(Names(answer))) is failure


def test_a_resolver_that_breaks_is_a_failure_and_the_thread_lives_on() -> None:
    async def scene() -> None:
        names = Names()
        resolver = Resolver(names, limits=ResolverLimits(threads=1))
        with pytest.raises(ConnectError):
            await resolver.resolve(NAME)
        names.answers.append(["1.1.1.1"])
        assert await resolver.resolve(NAME) == hosts("1.1.1.1")

    run(scene())


def test_answers_are_kept_for_a_while_and_failures_are_not() -> None:
    async def scene() -> None:
        now = [0.0]
        names = Names(OSError(), ["1.1.1.1"], ["2.2.2.2"])
        resolver = Resolver(names, limits=ResolverLimits(kept_seconds=5), clock=lambda: now[0])
        with pytest.raises(ConnectError):
            await resolver.resolve(NAME)
        assert await resolver.resolve(NAME) == hosts("1.1.1.1")
        now[0] = 4.9
        assert await resolver.resolve(NAME) == hosts("1.1.1.1")
        now[0] = 5.0
        assert await resolver.resolve(NAME) == hosts("2.2.2.2")

    run(scene())


def test_few_answers_are_kept() -> None:
    async def scene() -> None:
        resolver = Resolver(lambda _name: ["1.1.1.1"], limits=ResolverLimits(kept=3))
        for number in range(10):
            await resolver.resolve(Host.parse(f"{number}.example"))
        assert [host.text for host in resolver._kept] == ["7.example", "8.example", "9.example"]

    run(scene())


class Slow:
    """A name server that answers when it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked: list[str] = []

    def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        self.go.wait(10)
        return ["1.1.1.1"]


def test_one_name_is_looked_up_once_however_many_wait() -> None:
    async def scene() -> None:
        slow = Slow()
        resolver = Resolver(slow)
        waiting = [asyncio.create_task(resolver.resolve(NAME)) for _ in range(50)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        slow.go.set()
        answers = await asyncio.gather(*waiting[1:])
        assert set(answers) == {hosts("1.1.1.1")}
        assert slow.asked == ["a.example"]

    run(scene())


def test_who_waits_too_long_is_let_go_and_the_loop_never_stands_still() -> None:
    async def scene() -> None:
        slow = Slow()
        resolver = Resolver(slow, limits=ResolverLimits(seconds=0.01))
        with pytest.raises(ConnectError) as caught:
            await resolver.resolve(NAME)
        assert caught.value.failure is Failure.NAME_FAILED
        slow.go.set()

    run(scene())


def test_more_than_may_wait_are_refused_at_once() -> None:
    async def scene() -> None:
        slow = Slow()
        resolver = Resolver(slow, limits=ResolverLimits(threads=1, waiting=3))
        waiting = [asyncio.create_task(resolver.resolve(Host.parse(f"{n}.example"))) for n in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ConnectError) as caught:
            await resolver.resolve(NAME)
        assert caught.value.failure is Failure.BUSY
        slow.go.set()
        assert await asyncio.gather(*waiting) == [hosts("1.1.1.1")] * 3
        assert await resolver.resolve(NAME) == hosts("1.1.1.1")

    run(scene())


def test_threads_are_few_and_end_when_closed() -> None:
    def resolving() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "stockade-resolver"]

    before = set(resolving())

    async def scene() -> None:
        slow = Slow()
        resolver = Resolver(slow, limits=ResolverLimits(threads=2))
        waiting = [asyncio.create_task(resolver.resolve(Host.parse(f"{n}.example"))) for n in range(9)]
        await asyncio.sleep(0)
        mine = set(resolving()) - before
        assert len(mine) == 2
        assert all(thread.daemon for thread in mine)
        slow.go.set()
        await asyncio.gather(*waiting)
        resolver.close()
        for thread in mine:
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()

    run(scene())


def test_a_loop_that_ended_meanwhile_is_no_error() -> None:
    slow = Slow()
    resolver = Resolver(slow, limits=ResolverLimits(seconds=0.01, threads=1))
    assert failing(resolver) is Failure.NAME_FAILED
    slow.go.set()
    resolver.close()


def test_rebinding_is_of_no_use_because_the_checked_answer_is_the_one_that_is_used() -> None:
    async def scene() -> None:
        names = Names(["8.8.8.8"], ["127.0.0.1"])
        resolver = Resolver(names, limits=ResolverLimits(kept_seconds=0))
        rules = NetworkRules((Sourced(DomainPattern.parse("a.example"), Origin(Layer.USER)),))
        gate = Gate(rules)
        decision = await gate.caller().decide("a.example", 80)
        first = gate.check(decision, await resolver.resolve(NAME))
        assert first.addresses == hosts("8.8.8.8")
        assert names.asked == ["a.example"]
        second = gate.check(decision, await resolver.resolve(NAME))
        assert (second.addresses, second.decision.reason) == ((), Reason.FORBIDDEN_ADDRESS)

    run(scene())


@given(st.lists(st.text(max_size=40) | st.ip_addresses().map(str), max_size=8))
def test_no_answer_breaks_it(answer: list[str]) -> None:
    async def scene() -> None:
        resolver = Resolver(lambda _name: answer)
        try:
            assert await resolver.resolve(NAME)
        except ConnectError as error:
            assert error.failure is Failure.NO_SUCH_NAME  # noqa: PT017 - either outcome is right
        finally:
            resolver.close()

    run(scene())


def test_the_system_knows_localhost() -> None:
    assert set(system_lookup("localhost")) & {"127.0.0.1", "::1"}
