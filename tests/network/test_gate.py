from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from stockade.errors import UnavailableError
from stockade.network.gate import Answer, Ask, AskingLimits, Choice, Gate
from stockade.policy.decision import NetworkDecision, Reason, Verdict
from stockade.policy.destination import Destination
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Coroutine

ONCE, SESSION, DENY = Answer(Choice.ONCE), Answer(Choice.SESSION), Answer(Choice.DENY, "not today")
USER = Origin(Layer.USER, "~/.stockade/settings.json")
QUICK = AskingLimits(seconds=0.01)


def rule(text: str) -> Sourced[DomainPattern]:
    return Sourced(DomainPattern.parse(text, deny=True), USER)


def rules(allowed: str = "", denied: str = "") -> NetworkRules:
    return NetworkRules(tuple(map(rule, allowed.split())), tuple(map(rule, denied.split())))


class Person:
    """Answers questions in order, when told to, and remembers them."""

    def __init__(self, *answers: Answer, waits: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int, str]] = []
        self.ready = asyncio.Event()
        if not waits:
            self.ready.set()

    async def __call__(self, host: str, port: int, command: str) -> Answer:
        self.asked.append((host, port, command))
        await self.ready.wait()
        return self.answers.pop(0)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def run(scene: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 10))


@pytest.mark.parametrize(
    ("given_rules", "host", "reason"),
    [
        pytest.param(rules("a.com"), "A.com.", Reason.ALLOWED, id="allowed"),
        pytest.param(rules("a.com", "a.com"), "a.com", Reason.DENIED, id="denied"),
        pytest.param(rules(), "a.com", Reason.NOBODY_TO_ASK, id="not listed"),
        pytest.param(rules(), "a b", Reason.MALFORMED_HOST, id="malformed"),
    ],
)
def test_rules_settle_it_without_a_question(given_rules: NetworkRules, host: str, reason: Reason) -> None:
    async def scene() -> None:
        assert (await Gate(given_rules).caller("c1").decide(host, 443)).reason is reason

    run(scene())


@pytest.mark.parametrize(
    ("answer", "reason", "detail"),
    [(ONCE, Reason.ANSWERED_YES, ""), (SESSION, Reason.ANSWERED_YES, ""), (DENY, Reason.ANSWERED_NO, "not today")],
)
def test_an_answer_becomes_a_decision(answer: Answer, reason: Reason, detail: str) -> None:
    async def scene() -> None:
        person = Person(answer)
        decision = await Gate(rules(), person).caller("c1").decide("A.com", 22)
        assert (decision.reason, decision.detail, str(decision.destination)) == (reason, detail, "a.com:22")
        assert person.asked == [("a.com", 22, "c1")]

    run(scene())


@pytest.mark.parametrize(
    ("given_rules", "target", "reason"),
    [
        pytest.param(rules(), "127.0.0.1", Reason.FORBIDDEN_ADDRESS, id="not to be asked about"),
        pytest.param(rules(), "0x7f.1", Reason.FORBIDDEN_ADDRESS, id="in any spelling"),
        pytest.param(rules("127.0.0.1"), "127.0.0.1", Reason.ALLOWED, id="opened"),
        pytest.param(rules(), "8.8.8.8", Reason.ANSWERED_YES, id="an ordinary address"),
        pytest.param(rules(), "localhost", Reason.ANSWERED_YES, id="a name is judged later"),
        pytest.param(rules("", "127.0.0.1"), "127.0.0.1", Reason.DENIED, id="denied by a rule"),
        pytest.param(rules(), "a b", Reason.MALFORMED_HOST, id="malformed"),
    ],
)
def test_an_address_is_judged_before_anybody_is_asked(given_rules: NetworkRules, target: str, reason: Reason) -> None:
    async def scene() -> None:
        person = Person(ONCE)
        decision = await Gate(given_rules, person).caller("c1").decide(target, 80)
        assert (decision.reason, len(person.asked)) == (reason, reason is Reason.ANSWERED_YES)

    run(scene())


def test_once_is_for_one_connection_as_long_as_it_lasts() -> None:
    async def scene() -> None:
        person = Person(ONCE, DENY)
        gate = Gate(rules(), person)
        first, second = gate.caller("c1"), gate.caller("c2")
        assert (await first.decide("a.com", 80)).verdict is Verdict.ALLOW
        assert (await first.decide("a.com", 80)).verdict is Verdict.ALLOW
        assert (await second.decide("a.com", 80)).verdict is Verdict.DENY
        assert person.asked == [("a.com", 80, "c1"), ("a.com", 80, "c2")]
        gate.update(rules(denied="a.com"))
        assert (await first.decide("a.com", 80)).reason is Reason.DENIED

    run(scene())


@pytest.mark.parametrize(("answer", "verdict"), [(SESSION, Verdict.ALLOW), (DENY, Verdict.DENY)])
def test_an_answer_for_the_session_is_not_asked_for_again(answer: Answer, verdict: Verdict) -> None:
    async def scene() -> None:
        person = Person(answer, DENY)
        gate = Gate(rules(), person)
        first = await gate.caller("c1").decide("a.com", 80)
        assert await gate.caller("c2").decide("a.com", 80) == first
        assert first.verdict is verdict
        assert len(person.asked) == 1
        await gate.caller("c3").decide("a.com", 81)
        assert person.asked[1:] == [("a.com", 81, "c3")]

    run(scene())


def test_rules_that_come_later_count_more_than_an_answer() -> None:
    async def scene() -> None:
        gate = Gate(rules(), Person(SESSION, DENY))
        assert (await gate.caller().decide("yes.com", 80)).verdict is Verdict.ALLOW
        assert (await gate.caller().decide("no.com", 80)).verdict is Verdict.DENY
        gate.update(rules("no.com", "yes.com"))
        assert (await gate.caller().decide("yes.com", 80)).reason is Reason.DENIED
        assert (await gate.caller().decide("no.com", 80)).reason is Reason.ALLOWED

    run(scene())


def test_answers_can_be_forgotten() -> None:
    async def scene() -> None:
        gate = Gate(rules(), Person(SESSION, DENY))
        assert (await gate.caller().decide("a.com", 80)).verdict is Verdict.ALLOW
        gate.forget()
        assert (await gate.caller().decide("a.com", 80)).verdict is Verdict.DENY

    run(scene())


def test_a_flood_of_one_command_to_one_destination_is_one_question() -> None:
    async def scene() -> None:
        person = Person(ONCE, waits=True)
        gate = Gate(rules(), person)
        waiting = [asyncio.create_task(gate.caller("c0").decide("a.com", 443)) for _ in range(100)]
        await settle()
        assert gate.open_questions == {Destination.parse("a.com:443")}
        person.ready.set()
        decisions = await asyncio.gather(*waiting)
        assert {decision.reason for decision in decisions} == {Reason.ANSWERED_YES}
        assert person.asked == [("a.com", 443, "c0")]
        assert gate.open_questions == frozenset()

    run(scene())


def test_once_is_for_the_command_that_the_question_named() -> None:
    async def scene() -> None:
        person = Person(ONCE, DENY, waits=True)
        gate = Gate(rules(), person)
        first, second, again = gate.caller("c1"), gate.caller("c2"), gate.caller("c1")
        waiting = [asyncio.create_task(caller.decide("a.com", 443)) for caller in (first, second, again)]
        await settle()
        assert person.asked == [("a.com", 443, "c1")]
        person.ready.set()
        decisions = await asyncio.gather(*waiting)
        assert [decision.reason for decision in decisions] == [
            Reason.ANSWERED_YES,
            Reason.ANSWERED_NO,
            Reason.ANSWERED_YES,
        ]
        assert person.asked == [("a.com", 443, "c1"), ("a.com", 443, "c2")]
        assert (await second.decide("a.com", 443)).reason is Reason.ANSWERED_NO

    run(scene())


def test_commands_that_wait_are_asked_about_one_after_another() -> None:
    async def scene() -> None:
        person = Person(*[ONCE] * 5)
        most = 0
        open_now = 0

        async def ask(host: str, port: int, command: str) -> Answer:
            nonlocal most, open_now
            open_now += 1
            most = max(most, open_now)
            await settle()
            open_now -= 1
            return await person(host, port, command)

        gate = Gate(rules(), ask)
        waiting = [asyncio.create_task(gate.caller(f"c{n}").decide("a.com", 443)) for n in range(5)]
        decisions = await asyncio.gather(*waiting)
        assert {decision.reason for decision in decisions} == {Reason.ANSWERED_YES}
        assert (most, person.asked) == (1, [("a.com", 443, f"c{n}") for n in range(5)])

    run(scene())


@pytest.mark.parametrize(("answer", "reason"), [(SESSION, Reason.ANSWERED_YES), (DENY, Reason.ANSWERED_NO)])
def test_an_answer_for_the_session_settles_it_for_every_command_that_waits(answer: Answer, reason: Reason) -> None:
    async def scene() -> None:
        person = Person(ONCE, answer, waits=True)
        gate = Gate(rules(), person)
        waiting = [asyncio.create_task(gate.caller(f"c{n}").decide("a.com", 443)) for n in range(9)]
        await settle()
        person.ready.set()
        decisions = await asyncio.gather(*waiting)
        assert [decision.reason for decision in decisions] == [Reason.ANSWERED_YES] + [reason] * 8
        assert person.asked == [("a.com", 443, "c0"), ("a.com", 443, "c1")]

    run(scene())


def test_a_flood_of_commands_is_limited_by_the_minute() -> None:
    async def scene() -> None:
        person = Person(*[ONCE] * 9)
        gate = Gate(rules(), person, limits=AskingLimits(per_minute=3))
        waiting = [asyncio.create_task(gate.caller(f"c{n}").decide("a.com", 443)) for n in range(50)]
        reasons = [decision.reason for decision in await asyncio.gather(*waiting)]
        assert reasons == [Reason.ANSWERED_YES] * 3 + [Reason.ASK_FAILED] * 47
        assert len(person.asked) == 3

    run(scene())


def test_silence_about_one_command_denies_all_that_wait() -> None:
    async def scene() -> None:
        gate = Gate(rules(), never, limits=QUICK)
        waiting = [asyncio.create_task(gate.caller(f"c{n}").decide("a.com", 443)) for n in range(9)]
        assert {decision.reason for decision in await asyncio.gather(*waiting)} == {Reason.ASK_FAILED}

    run(scene())


def test_once_is_for_one_connection_if_nobody_knows_whose_it_is() -> None:
    async def scene() -> None:
        person = Person(ONCE, DENY, waits=True)
        gate = Gate(rules(), person)
        waiting = [asyncio.create_task(gate.caller(command).decide("a.com", 443)) for command in ("", "", "c1")]
        await settle()
        person.ready.set()
        reasons = [decision.reason for decision in await asyncio.gather(*waiting)]
        assert reasons == [Reason.ANSWERED_YES, Reason.ANSWERED_NO, Reason.ANSWERED_NO]

    run(scene())


def test_a_rule_that_comes_while_somebody_thinks_about_one_command_holds_for_the_next() -> None:
    async def scene() -> None:
        person = Person(ONCE, waits=True)
        gate = Gate(rules(), person)
        waiting = [asyncio.create_task(gate.caller(command).decide("a.com", 443)) for command in ("c1", "c2")]
        await settle()
        gate.update(rules(denied="a.com"))
        person.ready.set()
        assert [decision.reason for decision in await asyncio.gather(*waiting)] == [Reason.DENIED] * 2
        assert len(person.asked) == 1

    run(scene())


def test_a_flood_of_destinations_opens_few_questions() -> None:
    async def scene() -> None:
        person = Person(SESSION, SESSION, SESSION, waits=True)
        gate = Gate(rules(), person, limits=AskingLimits(open=2))
        waiting = [asyncio.create_task(gate.caller().decide(f"{n}.com", 443)) for n in range(50)]
        await settle()
        person.ready.set()
        decisions = await asyncio.gather(*waiting)
        assert [decision.reason for decision in decisions] == [Reason.ANSWERED_YES] * 2 + [Reason.ASK_FAILED] * 48
        assert decisions[-1].detail == "2 questions are open already"
        assert (await gate.caller().decide("49.com", 443)).reason is Reason.ANSWERED_YES  # and can be asked later

    run(scene())


def test_questions_one_after_another_are_limited_by_the_minute() -> None:
    async def scene() -> None:
        now = [0.0]
        person = Person(*[DENY] * 9)
        gate = Gate(rules(), person, limits=AskingLimits(per_minute=3), clock=lambda: now[0])
        reasons = [(await gate.caller().decide(f"{n}.com", 443)).reason for n in range(4)]
        assert reasons == [Reason.ANSWERED_NO] * 3 + [Reason.ASK_FAILED]
        now[0] = 60.0
        assert (await gate.caller().decide("3.com", 443)).reason is Reason.ANSWERED_NO

    run(scene())


async def never(_host: str, _port: int, _command: str) -> Answer:
    await asyncio.Event().wait()
    return SESSION


async def broken(_host: str, _port: int, _command: str) -> Answer:
    message = "the password is 1234"
    raise ValueError(message)


async def cancelled(_host: str, _port: int, _command: str) -> Answer:
    raise asyncio.CancelledError


async def late(_host: str, _port: int, _command: str) -> Answer:
    raise TimeoutError


async def true(_host: str, _port: int, _command: str) -> bool:
    return True


def not_asynchronous(_host: str, _port: int, _command: str) -> Answer:
    return SESSION


@pytest.mark.parametrize(
    ("ask", "detail"),
    [
        pytest.param(never, "there was no answer in time", id="silence"),
        pytest.param(late, "there was no answer in time", id="its own time limit"),
        pytest.param(broken, "the question failed (ValueError)", id="error, of which nothing is told inside"),
        pytest.param(cancelled, "the question was withdrawn", id="cancelled"),
        pytest.param(true, "the answer was none of the possible ones", id="an answer that is none"),
        pytest.param(not_asynchronous, "the question failed (TypeError)", id="not asynchronous"),
    ],
)
def test_no_answer_is_no_and_is_not_remembered(ask: Ask, detail: str) -> None:
    async def scene() -> None:
        gate = Gate(rules(), ask, limits=QUICK)
        decision = await gate.caller().decide("a.com", 443)
        assert (decision.reason, decision.detail) == (Reason.ASK_FAILED, detail)
        assert gate.open_questions == frozenset()
        assert gate._remembered == {}

    run(scene())


def test_a_client_that_goes_away_takes_nobody_elses_answer_with_it() -> None:
    async def scene() -> None:
        person = Person(ONCE, waits=True)
        gate = Gate(rules(), person)
        gone = asyncio.create_task(gate.caller("c1").decide("a.com", 443))
        await settle()
        stays = asyncio.create_task(gate.caller("c1").decide("a.com", 443))
        await settle()
        gone.cancel()
        await settle()
        person.ready.set()
        assert (await stays).verdict is Verdict.ALLOW
        assert len(person.asked) == 1

    run(scene())


@pytest.mark.parametrize(
    ("later", "reason"),
    [(rules("a.com"), Reason.ALLOWED), (rules("", "*"), Reason.DENIED)],
)
def test_a_rule_that_comes_while_somebody_thinks_decides_at_once(later: NetworkRules, reason: Reason) -> None:
    async def scene() -> None:
        person = Person(SESSION, waits=True)
        gate = Gate(rules(), person)
        waiting = asyncio.create_task(gate.caller().decide("a.com", 443))
        await settle()
        gate.update(later)
        assert (await waiting).reason is reason
        assert gate.open_questions == frozenset()

    run(scene())


def test_rules_about_other_hosts_leave_a_question_open() -> None:
    async def scene() -> None:
        person = Person(ONCE, waits=True)
        gate = Gate(rules(), person)
        waiting = asyncio.create_task(gate.caller().decide("a.com", 443))
        await settle()
        gate.update(rules("b.com"))
        person.ready.set()
        assert (await waiting).reason is Reason.ANSWERED_YES

    run(scene())


def test_who_waits_when_the_gate_closes_is_denied() -> None:
    async def scene() -> None:
        gate = Gate(rules(), never)
        waiting = asyncio.create_task(gate.caller().decide("a.com", 443))
        await settle()
        gate.close()
        assert (await waiting).reason is Reason.ASK_FAILED
        assert (await gate.caller().decide("a.com", 443)).reason is Reason.NOBODY_TO_ASK

    run(scene())


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "::1", "169.254.169.254", "10.9.9.9"])
def test_nobody_is_asked_about_a_forbidden_address(host: str) -> None:
    async def scene() -> None:
        person = Person(SESSION)
        gate = Gate(rules(), person, own=lambda: frozenset({Host.parse("10.9.9.9")}))
        decision = await gate.caller().decide(host, 80)
        assert decision.reason is Reason.FORBIDDEN_ADDRESS
        assert person.asked == []

    run(scene())


def test_where_a_name_leads_is_judged_by_the_rules_that_hold_then() -> None:
    async def scene() -> None:
        gate = Gate(rules("a.com"))
        decision = await gate.caller().decide("a.com", 80)
        loopback = [Host.parse("127.0.0.1")]
        assert gate.check(decision, loopback).addresses == ()
        gate.update(rules("a.com 127.0.0.1:80"))
        assert gate.check(decision, loopback).addresses == tuple(loopback)

    run(scene())


def test_what_cannot_be_judged_is_denied() -> None:
    def unreadable() -> frozenset[Host]:
        message = "no netlink"
        raise UnavailableError(message, "allow it")

    async def scene() -> None:
        gate = Gate(rules("a.com 10.0.0.1", "10.0.0.2"), own=unreadable)
        decision = await gate.caller().decide("a.com", 80)
        assert decision.verdict is Verdict.ALLOW
        denied = gate.check(decision, [Host.parse("8.8.8.8")])
        assert denied.addresses == ()
        assert denied.decision == decision.but(
            reason=Reason.FORBIDDEN_ADDRESS, rule=None, detail="no netlink", remedy="allow it"
        )
        assert (await gate.caller().decide("10.0.0.1", 80)).reason is Reason.FORBIDDEN_ADDRESS
        assert (await gate.caller().decide("10.0.0.2", 80)).reason is Reason.DENIED

    run(scene())


def test_nobody_is_asked_about_an_address_that_a_route_makes_ours() -> None:
    async def scene() -> None:
        person = Person(SESSION)
        gate = Gate(rules("a.com"), person, leads_here=lambda target: str(target) == "198.51.100.7:80")
        assert (await gate.caller().decide("198.51.100.7", 80)).reason is Reason.FORBIDDEN_ADDRESS
        assert person.asked == []
        decision = await gate.caller().decide("a.com", 80)
        assert gate.check(decision, [Host.parse("198.51.100.7")]).addresses == ()
        assert gate.check(decision, [Host.parse("198.51.100.8")]).addresses == (Host.parse("198.51.100.8"),)

    run(scene())


def test_a_route_is_asked_for_again_when_the_addresses_are() -> None:
    async def scene() -> None:
        asked: list[Destination] = []

        def leads_here(target: Destination) -> bool:
            asked.append(target)
            return False

        sets = [frozenset({Host.parse("10.9.9.9")}), frozenset({Host.parse("10.9.9.9")})]
        own = [sets[0]]
        gate = Gate(rules("a.com"), own=lambda: own[0], leads_here=leads_here)
        decision = await gate.caller().decide("a.com", 80)
        for _ in range(3):
            assert gate.check(decision, [Host.parse("8.8.8.8")]).addresses
        assert len(asked) == 1
        own[0] = sets[1]
        assert gate.check(decision, [Host.parse("8.8.8.8")]).addresses
        assert len(asked) == 2

    run(scene())


@pytest.mark.parametrize(
    ("given_rules", "host", "asks", "reason"),
    [
        pytest.param(rules("a.com"), "a.com", False, Reason.ALLOWED, id="on any port"),
        pytest.param(rules("a.com:22"), "a.com", False, Reason.ALLOWED, id="on one port"),
        pytest.param(
            rules("a.com:22", "*:443"), "a.com", False, Reason.ALLOWED, id="on one port, though not the web's"
        ),
        pytest.param(rules("a.com:22", "a.com"), "a.com", False, Reason.DENIED, id="denied"),
        pytest.param(rules(), "a.com", False, Reason.NOBODY_TO_ASK, id="not listed"),
        pytest.param(rules(), "a.com", True, Reason.ASK, id="somebody could be asked"),
        pytest.param(rules("", "*"), "a.com", True, Reason.DENIED, id="nobody is asked about what is denied"),
        pytest.param(rules("", "*:443 *:1"), "a.com", True, Reason.ASK, id="asked on another port"),
        pytest.param(rules(), "a b", True, Reason.MALFORMED_HOST, id="malformed"),
    ],
)
def test_a_name_may_be_resolved_if_some_port_of_it_might_be_reached(
    given_rules: NetworkRules, host: str, *, asks: bool, reason: Reason
) -> None:
    gate = Gate(given_rules, never if asks else None)
    assert gate.decide_name(host).reason is reason


def test_an_answer_must_be_one_of_the_choices() -> None:
    with pytest.raises(TypeError):
        Answer(cast("Choice", True))


def test_a_reason_cannot_forge_a_line() -> None:
    async def scene() -> None:
        decision: NetworkDecision = (
            await Gate(rules(), Person(Answer(Choice.DENY, "a\nb<c>"))).caller().decide("a.com", 1)
        )
        assert decision.detail == "a\\x0ab\\x3cc\\x3e"

    run(scene())


def test_what_was_judged_once_is_judged_anew_when_anything_changes() -> None:
    async def scene() -> None:
        address, other = Host.parse("192.0.2.7"), Host.parse("10.0.0.1")
        own: list[frozenset[Host]] = [frozenset()]
        gate = Gate(rules("a.com 192.0.2.8"), own=lambda: own[0])
        caller = gate.caller()
        first = await caller.decide("a.com", 443)
        assert await caller.decide("a.com", 443) is first
        checked = gate.check(first, (address,))
        assert gate.check(first, (address,)) is checked
        assert gate.check(first, (address, other)).addresses == (address, other)
        own[0] = frozenset({address})
        assert gate.check(first, (address, other)).addresses == (other,)
        assert gate.check(first, (address,)).decision.reason is Reason.FORBIDDEN_ADDRESS
        gate.update(rules("", "a.com 10.0.0.1"))
        assert (await caller.decide("a.com", 443)).reason is Reason.DENIED
        assert gate.check(first, (other,)).decision.reason is Reason.DENIED

    run(scene())


def test_a_flood_of_destinations_is_not_kept() -> None:
    async def scene() -> None:
        gate = Gate(rules())
        for number in range(2000):
            await gate.caller().decide(f"host-{number}.test", 443)
            await gate.caller().decide(f"{number}.0.0.1", "443")
        await gate.caller().decide("x" * 60_000, 443)
        assert len(gate._decided) <= 512
        assert len(gate._checked) <= 512
        assert max(len(key[0]) for key in gate._decided) < 256

    run(scene())
