from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.refusal import (
    Cause,
    Refusal,
    bad_request,
    bad_response,
    by_address,
    by_policy,
    no_other_proxy,
    overloaded,
    unauthenticated,
    unreachable,
)
from stockade.policy.decision import NetworkDecision, Reason, decide
from stockade.policy.destination import Destination
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

USER = Origin(Layer.USER, "~/.stockade/settings.json", "$.sandbox.network.deniedDomains[0]")
RULES = NetworkRules(denied=(Sourced(DomainPattern.parse("*.evil.com", deny=True), USER),))
POLICY = "This is the sandbox's policy, not a fault of the network: trying again will not help."
SERVER = Destination.parse("example.com:443")


def test_a_host_that_no_rule_allows() -> None:
    refusal = by_policy(decide(RULES, "Example.COM.", 443, can_ask=False))
    assert refusal.render().decode() == (
        "HTTP/1.1 403 Blocked by Stockade: example.com:443: no rule allows it, and there is nobody to ask\r\n"
        "X-Proxy-Error: blocked-by-allowlist\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Length: 290\r\n"
        "Connection: close\r\n"
        "\r\n"
        "Stockade refused the connection to example.com:443.\n"
        "Why: no rule allows it, and there is nobody to ask\n"
        'To allow it: add "example.com" to sandbox.network.allowedDomains (stockade allow-domain example.com)\n'
        f"{POLICY}\n"
    )


def test_a_host_that_a_rule_denies_names_rule_file_and_remedy() -> None:
    decision = decide(RULES, "x.evil.com", 443, can_ask=True)
    assert by_policy(decision) == Refusal(
        403,
        Cause.DENIED,
        "Blocked by Stockade: x.evil.com:443: a rule denies it",
        (
            "Stockade refused the connection to x.evil.com:443.",
            "Why: a rule denies it",
            'Rule: "*.evil.com" in ~/.stockade/settings.json (user), $.sandbox.network.deniedDomains[0]',
            f"To allow it: {decision.remedy}",
            POLICY,
        ),
    )


ASKED = decide(NetworkRules(), "a.com", 443, can_ask=True)


@pytest.mark.parametrize(
    ("decision", "cause", "why"),
    [
        pytest.param(ASKED, Cause.NOT_ALLOWED, "no rule allows or denies it", id="not asked yet"),
        pytest.param(
            ASKED.answered(yes=False, detail="not today"), Cause.DENIED, "denied when asked: not today", id="no"
        ),
        pytest.param(
            ASKED.unanswered("too late"),
            Cause.ASK_FAILED,
            "no rule allows it, and asking failed: too late",
            id="no answer",
        ),
        pytest.param(
            decide(NetworkRules(), "a b", 443, can_ask=True),
            Cause.MALFORMED_DESTINATION,
            '"a b" is not a host: it has a space',
            id="malformed host",
        ),
        pytest.param(
            decide(NetworkRules(), "a.com", "x", can_ask=True),
            Cause.MALFORMED_DESTINATION,
            'a.com: "x" is not a port',
            id="malformed port",
        ),
    ],
)
def test_every_reason_has_its_code_and_words(decision: NetworkDecision, cause: Cause, why: str) -> None:
    refusal = by_policy(decision)
    assert (refusal.status, refusal.cause, refusal.lines[1]) == (403, cause, f"Why: {why}")


def test_what_is_allowed_is_no_refusal() -> None:
    with pytest.raises(ValueError, match="is no refusal"):
        by_policy(ASKED.answered(yes=True))


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        pytest.param(by_address(SERVER, "it is this host", "allow it"), 403, "blocked-address", id="address"),
        pytest.param(by_address(SERVER, "it is this host"), 403, "blocked-address", id="address without a remedy"),
        pytest.param(unauthenticated(), 407, "authentication-required", id="credentials"),
        pytest.param(bad_request("it is odd", "Write it so."), 400, "bad-request", id="request"),
        pytest.param(unreachable(SERVER, "connection refused"), 502, "unreachable", id="unreachable"),
        pytest.param(unreachable(SERVER, "no answer", timed_out=True), 504, "timed-out", id="time"),
        pytest.param(bad_response(SERVER, "two lengths"), 502, "bad-response", id="response"),
        pytest.param(overloaded("1000 connections are open"), 503, "too-many-connections", id="overload"),
        pytest.param(no_other_proxy("127.0.0.1", 8080), 502, "unreachable", id="another proxy"),
    ],
)
def test_other_refusals(refusal: Refusal, status: int, code: str) -> None:
    head, _, body = refusal.render().decode().partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert f"\r\nX-Proxy-Error: {code}\r\n" in head
    assert body.splitlines() == list(refusal.lines)
    assert ("Proxy-Authenticate" in head) is (status == 407)


def test_the_answer_to_head_has_no_body_but_its_length() -> None:
    whole = unauthenticated().render()
    assert unauthenticated().render(with_body=False) == whole[: whole.index(b"\r\n\r\n") + 4]


def test_what_is_cut_short_announces_one_byte_more() -> None:
    whole, cut = overloaded("x").render(), overloaded("x").render(cut_short=True)
    length = len(whole) - whole.index(b"\r\n\r\n") - 4
    assert cut == whole.replace(b"Content-Length: %d" % length, b"Content-Length: %d" % (length + 1))


@given(st.text(), st.text(max_size=5))
def test_no_text_forges_a_line(text: str, port: str) -> None:
    refusals = [bad_request(text, text), by_address(SERVER, text, text), unauthenticated(text), overloaded(text)]
    decision = decide(NetworkRules(), text, port, can_ask=False)
    if decision.reason is not Reason.ALLOWED:
        refusals.append(by_policy(decision))
    for refusal in refusals:
        head, _, body = refusal.render().partition(b"\r\n\r\n")
        assert head.isascii()
        assert all(char >= 0x20 or char in b"\r\n" for char in head)
        assert head.count(b"\n") == head.count(b"\r\n") == 4 + (refusal.status == 407)
        assert body.decode().count("\n") == len(refusal.lines)
        assert f"Content-Length: {len(body)}\r\n".encode() in head
