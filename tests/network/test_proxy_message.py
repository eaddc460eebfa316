from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import StockadeError
from stockade.network import proxy_message
from stockade.network.environment import Credential
from stockade.network.link import Message
from stockade.network.proxy_message import Listeners, ProxySettings, Question, Refused, Withdrawn
from stockade.policy.decision import Reason, decide
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable


def rule(text: str, layer: Layer = Layer.USER, file: str = "~/s.json", path: str = "") -> Sourced[DomainPattern]:
    return Sourced(DomainPattern.parse(text, deny=True), Origin(layer, file, path))


RULES = NetworkRules(
    (rule("example.com"), rule("*.example.com:443", Layer.PROJECT, "caf\udce9/\n.json", "network.x"), rule("[::1]:80")),
    (rule("*", Layer.POLICY), rule("*:25", Layer.COMMAND_LINE, ""), rule("xn--mnchen-3ya.de")),
)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ProxySettings(), id="nothing"),
        pytest.param(ProxySettings(RULES, can_ask=True, ask_seconds=0.25), id="rules"),
        pytest.param(ProxySettings(environment={"HTTPS_PROXY": "http://u:p@h:1", "no_proxy": "x"}), id="environment"),
        pytest.param(
            ProxySettings(name_servers=("127.0.0.1:5353", "[::1]"), http_port=1, socks_port=65535), id="ports"
        ),
    ],
)
def test_settings_arrive_as_they_were(settings: ProxySettings) -> None:
    assert ProxySettings.read(settings.message()) == settings


def test_only_what_is_about_proxies_is_told_and_nothing_of_it_shown() -> None:
    settings = ProxySettings(
        environment={"HTTP_PROXY": "http://user:hunter2@proxy", "AWS_SECRET_KEY": "x", "no_proxy": ""}
    )
    assert ProxySettings.read(settings.message()).environment == {"HTTP_PROXY": "http://user:hunter2@proxy"}
    assert "hunter2" not in repr(settings)


def test_rules_arrive_as_they_were() -> None:
    assert proxy_message.read_update(proxy_message.update_message(RULES)) == RULES


def test_other_messages_arrive_as_they_were() -> None:
    credential = Credential("user", "token")
    assert proxy_message.read_add(proxy_message.add_message(credential, "c \u00e9")) == (credential, "c \u00e9")
    assert proxy_message.read_revoke(proxy_message.revoke_message(credential)) == credential
    assert proxy_message.read_answer(proxy_message.answer_message(7, "ONCE", "why\n")) == (7, "ONCE", "why\n")
    assert proxy_message.read_publish(proxy_message.publish_message(4, 8080, 5)) == (4, 8080, 5)


def test_each_listener_is_a_message() -> None:
    listeners = Listeners(4, 5, (6, 7), (8,), (9,), ((10, "127.0.0.1", 5432), (11, "::1", 80)))
    assert [proxy_message.read_listener(message) for message in listeners.messages()] == [
        (proxy_message.HTTP, 4, "", 0),
        (proxy_message.SOCKS, 5, "", 0),
        (proxy_message.TRANSPARENT, 6, "", 0),
        (proxy_message.TRANSPARENT, 7, "", 0),
        (proxy_message.NAME_UDP, 8, "", 0),
        (proxy_message.NAME_TCP, 9, "", 0),
        (proxy_message.HOST, 10, "127.0.0.1", 5432),
        (proxy_message.HOST, 11, "::1", 80),
    ]
    assert list(Listeners().messages()) == []


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        pytest.param(
            "Example.ORG",
            25,
            ("example.org:25", "DENIED", "example.org", 25, "*", "~/s.json (policy)"),
            id="by a rule",
        ),
        pytest.param("a b", 25, ('"a b"', "MALFORMED_HOST", "", 0, "", ""), id="malformed"),
    ],
)
def test_a_refusal_tells_all_of_the_decision(host: str, port: int, expected: tuple[object, ...]) -> None:
    decision = decide(RULES, host, port, can_ask=False)
    refused = Refused.read(Refused.of(decision, "c1", 3).message())
    assert (refused.asked, refused.reason, refused.host, refused.port, refused.rule, refused.origin) == expected
    assert (refused.words, refused.detail, refused.remedy) == (str(decision), decision.detail, decision.remedy)
    assert (refused.command, refused.times) == ("c1", 3)


def test_a_refusal_of_a_name_has_no_port() -> None:
    decision = decide(NetworkRules(), "example.org", 443, can_ask=False).but(asked="example.org")
    assert (Refused.of(decision, "", 1).host, Refused.of(decision, "", 1).port) == ("example.org", 0)


def test_the_text_of_a_stranger_is_one_safe_line() -> None:
    evil = "a\x1b[2J\u202e\n</tag>" + "x" * 5000
    fields = (evil, "DENIED", evil, "1", evil, evil, evil, evil, "c", "1", evil)
    told = Refused.read(Message(proxy_message.REFUSED, tuple(text.encode() for text in fields)))
    safe = told.asked
    assert told == Refused(safe, "DENIED", safe, 1, safe, safe, safe, safe, "c", 1, safe)
    assert safe.startswith("a\\x1b[2J\\u202e\\x0a\\x3c/tag\\x3exxx")
    assert len(safe) < 2100


REFUSED_FIELDS = (b"a", b"DENIED", b"h", b"1", b"", b"", b"", b"", b"", b"1", b"")


@pytest.mark.parametrize(
    ("read", "fields"),
    [
        pytest.param(Refused.read, (), id="no fields"),
        pytest.param(Refused.read, (*REFUSED_FIELDS, b""), id="a field too many"),
        pytest.param(Refused.read, (b"a", b"BOGUS", *REFUSED_FIELDS[2:]), id="unknown reason"),
        pytest.param(Refused.read, (*REFUSED_FIELDS[:3], b"65536", *REFUSED_FIELDS[4:]), id="port too large"),
        pytest.param(Refused.read, (*REFUSED_FIELDS[:3], b"-1", *REFUSED_FIELDS[4:]), id="port below zero"),
        pytest.param(Refused.read, (*REFUSED_FIELDS[:9], b"9" * 5000, b""), id="a number to count forever"),
        pytest.param(Refused.read, (*REFUSED_FIELDS[:8], b"\xff", b"1", b""), id="a command that is no text"),
        pytest.param(Question.read, (b"1", b"not a host", b"1", b""), id="no host"),
        pytest.param(Question.read, (b"x", b"h", b"1", b""), id="no number"),
        pytest.param(Withdrawn.read, (b"",), id="withdrawn without number"),
    ],
)
def test_what_cannot_be_read_is_refused(read: Callable[[Message], object], fields: tuple[bytes, ...]) -> None:
    with pytest.raises((ValueError, StockadeError)):
        read(Message(b"?", fields))


def test_questions_arrive_as_they_were() -> None:
    question = Question(9, "example.org", 443, "c1")
    assert Question.read(question.message()) == question
    assert Withdrawn.read(Withdrawn(9).message()) == Withdrawn(9)


@given(st.lists(st.one_of(st.binary(max_size=8), st.sampled_from([r.name.encode() for r in Reason])), max_size=12))
def test_no_fields_raise_anything_else(fields: list[bytes]) -> None:
    for read in (
        ProxySettings.read,
        Refused.read,
        Question.read,
        Withdrawn.read,
        proxy_message.read_add,
        proxy_message.read_revoke,
        proxy_message.read_update,
        proxy_message.read_answer,
        proxy_message.read_publish,
        proxy_message.read_listener,
    ):
        try:
            read(Message(b"?", tuple(fields)))
        except (ValueError, StockadeError):
            continue
