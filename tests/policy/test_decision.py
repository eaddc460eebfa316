from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.decision import NetworkDecision, Reason, Verdict, decide
from stockade.policy.destination import Destination
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.network_rules import NetworkRules
from stockade.policy.port import Port
from stockade.settings.catalog import ALLOWED_DOMAINS
from stockade.settings.layer import Layer, Origin, Sourced

Rule = Sourced[DomainPattern]

USER = Origin(Layer.USER, "~/.stockade/settings.json")
MANAGED = Origin(Layer.POLICY, "/etc/stockade/managed-settings.json")


def rule(text: str, origin: Origin = USER) -> Rule:
    return Sourced(DomainPattern.parse(text, deny=True), origin)


def rules(allowed: str = "", denied: str = "") -> NetworkRules:
    return NetworkRules(tuple(map(rule, allowed.split())), tuple(map(rule, denied.split())))


def destination(host: str, port: int = 443) -> Destination:
    return Destination(Host.parse(host), Port(port))


@pytest.mark.parametrize(
    ("given_rules", "host", "port", "reason", "deciding"),
    [
        pytest.param(rules(), "example.com", 443, Reason.NOBODY_TO_ASK, None, id="no rules, no network"),
        pytest.param(rules("example.com"), "example.com", 443, Reason.ALLOWED, "example.com", id="allowed"),
        pytest.param(rules("example.com"), "EXAMPLE.COM.", "443", Reason.ALLOWED, "example.com", id="odd spelling"),
        pytest.param(rules("example.com"), "evil.com", 443, Reason.NOBODY_TO_ASK, None, id="not listed"),
        pytest.param(rules("example.com"), "evilexample.com", 443, Reason.NOBODY_TO_ASK, None, id="look-alike"),
        pytest.param(rules("example.com"), "example.com.evil.com", 443, Reason.NOBODY_TO_ASK, None, id="suffix trick"),
        pytest.param(rules("example.com:443"), "example.com", 80, Reason.NOBODY_TO_ASK, None, id="another port"),
        pytest.param(rules("a.com b.com *.com"), "b.com", 443, Reason.ALLOWED, "b.com", id="first that covers it"),
        pytest.param(rules("a.com", "a.com"), "a.com", 443, Reason.DENIED, "a.com", id="deny wins over allow"),
        pytest.param(rules("*.a.com", "x.a.com"), "x.a.com", 443, Reason.DENIED, "x.a.com", id="deny in an allow"),
        pytest.param(rules("x.a.com", "*.a.com"), "x.a.com", 443, Reason.DENIED, "*.a.com", id="deny around an allow"),
        pytest.param(rules("a.com", "*"), "a.com", 443, Reason.DENIED, "*", id="everything denied"),
        pytest.param(rules("a.com", "*:25"), "a.com", 443, Reason.ALLOWED, "a.com", id="other port denied"),
        pytest.param(rules("a.com", "127.0.0.1"), "0x7f.1", 443, Reason.DENIED, "127.0.0.1", id="hexadecimal denied"),
        pytest.param(rules("", "127.0.0.1"), "::ffff:7f00:1", 443, Reason.DENIED, "127.0.0.1", id="mapped denied"),
    ],
)
def test_the_first_that_answers_wins(
    given_rules: NetworkRules, host: str, port: int | str, reason: Reason, deciding: str | None
) -> None:
    decision = decide(given_rules, host, port, can_ask=False)
    assert decision == NetworkDecision(
        reason,
        str(destination(host, int(port))),
        destination(host, int(port)),
        None if deciding is None else rule(deciding),
        remedy=decision.remedy,
    )


@pytest.mark.parametrize(
    "host",
    ["", "a b", "example.com\0.evil", "example.com@evil.com", "a\r\nb", "1.2.3.256", "xn--a", "*", "example.com:443"],
)
@pytest.mark.parametrize("can_ask", [False, True])
def test_a_malformed_host_is_denied_before_all_else_and_has_no_remedy(host: str, *, can_ask: bool) -> None:
    decision = decide(rules(allowed="*"), host, 443, can_ask=can_ask)
    assert (decision.verdict, decision.reason) == (Verdict.DENY, Reason.MALFORMED_HOST)
    assert (decision.destination, decision.rule, decision.remedy) == (None, None, "")
    assert str(decision).isprintable()


@pytest.mark.parametrize("port", [0, 65536, -1, "", "https", "0443"])
def test_a_malformed_port_is_denied(port: int | str) -> None:
    decision = decide(rules(allowed="*"), "example.com", port, can_ask=True)
    assert decision == NetworkDecision(
        Reason.MALFORMED_PORT, "example.com", detail=f'example.com: "{port}" is not a port'
    )
    assert decision.verdict is Verdict.DENY


def test_somebody_is_asked_only_about_what_no_rule_settles() -> None:
    some = rules("a.com", "b.com")
    assert decide(some, "a.com", 443, can_ask=True).verdict is Verdict.ALLOW
    assert decide(some, "b.com", 443, can_ask=True).verdict is Verdict.DENY
    assert decide(some, "c.com", 443, can_ask=True).verdict is Verdict.ASK


def test_an_answer_settles_a_question_and_nothing_else() -> None:
    question = decide(rules(), "a.com", 443, can_ask=True)
    assert question.answered(yes=True) == question.but(reason=Reason.ANSWERED_YES, remedy="")
    assert question.answered(yes=False, detail="not\ntoday") == question.but(
        reason=Reason.ANSWERED_NO, detail="not\\x0atoday"
    )
    assert question.unanswered("timed out") == question.but(reason=Reason.ASK_FAILED, detail="timed out")
    denied = decide(rules(denied="*"), "a.com", 443, can_ask=True)
    assert denied.answered(yes=True) == denied
    allowed = decide(rules("a.com"), "a.com", 443, can_ask=True)
    assert allowed.unanswered() == allowed
    assert question.answered(yes=False).answered(yes=True).verdict is Verdict.DENY


def test_a_forbidden_address_is_a_denial_and_makes_none_milder() -> None:
    loopback = Host.parse("::1")
    expected = NetworkDecision(
        Reason.FORBIDDEN_ADDRESS,
        "a.com:443",
        destination("a.com"),
        detail="[::1] is a loopback address",
        remedy="add \"[::1]:443\" to sandbox.network.allowedDomains (stockade allow-domain '[::1]:443')",
    )
    for decision in (decide(rules("a.com"), "a.com", 443, can_ask=False), decide(rules(), "a.com", 443, can_ask=True)):
        assert decision.forbidden(loopback, "a loopback address") == expected
    denied = decide(rules("a.com", "*"), "a.com", 443, can_ask=False)
    assert denied.forbidden(loopback, "a loopback address") == denied


def test_every_reason_denies_unless_it_says_otherwise() -> None:
    others = {reason: reason.verdict for reason in Reason if reason.verdict is not Verdict.DENY}
    assert others == {
        Reason.ALLOWED: Verdict.ALLOW,
        Reason.ANSWERED_YES: Verdict.ALLOW,
        Reason.ASK: Verdict.ASK,
    }


@pytest.mark.parametrize(
    ("given_rules", "host", "port", "line"),
    [
        pytest.param(
            rules("*.example.com"),
            "API.example.com",
            443,
            'allowed: api.example.com:443: a rule allows it: "*.example.com" in ~/.stockade/settings.json (user)',
            id="allowed",
        ),
        pytest.param(
            rules(),
            "api.example.com",
            443,
            "denied: api.example.com:443: no rule allows it, and there is nobody to ask; "
            'add "api.example.com" to sandbox.network.allowedDomains (stockade allow-domain api.example.com)',
            id="not listed",
        ),
        pytest.param(
            rules(),
            "github.com",
            22,
            "denied: github.com:22: no rule allows it, and there is nobody to ask; "
            'add "github.com:22" to sandbox.network.allowedDomains (stockade allow-domain github.com:22)',
            id="no port of the web",
        ),
        pytest.param(
            rules("a.com:443"),
            "a.com",
            80,
            "denied: a.com:80: no rule allows it, and there is nobody to ask; "
            'add "a.com:80" to sandbox.network.allowedDomains (stockade allow-domain a.com:80)',
            id="allowed on another port",
        ),
        pytest.param(
            rules(),
            "::1",
            80,
            "denied: [::1]:80: no rule allows it, and there is nobody to ask; "
            "add \"[::1]\" to sandbox.network.allowedDomains (stockade allow-domain '[::1]')",
            id="brackets are quoted for the shell",
        ),
        pytest.param(
            NetworkRules(
                (rule("*.a.com"),),
                (rule("x.a.com", Origin(Layer.LOCAL, "/p/.stockade/settings.local.json", "$.permissions.deny[0]")),),
            ),
            "x.a.com",
            443,
            'denied: x.a.com:443: a rule denies it: "x.a.com" at $.permissions.deny[0] in '
            '/p/.stockade/settings.local.json (local); remove "x.a.com" at $.permissions.deny[0] in '
            "/p/.stockade/settings.local.json (local)",
            id="denied, and allowed once the rule is gone",
        ),
        pytest.param(
            rules("", "a.com *"),
            "a.com",
            443,
            'denied: a.com:443: a rule denies it: "a.com" in ~/.stockade/settings.json (user); '
            'remove "a.com" in ~/.stockade/settings.json (user) and "*" in ~/.stockade/settings.json (user), '
            'then add "a.com" to sandbox.network.allowedDomains (stockade allow-domain a.com)',
            id="every rule that must go",
        ),
        pytest.param(
            NetworkRules((), (rule("a.com", Origin(Layer.COMMAND_LINE, "--deny-domain")), rule("*.com", MANAGED))),
            "a.com",
            443,
            'denied: a.com:443: a rule denies it: "*.com" in /etc/stockade/managed-settings.json (policy); '
            "only the administrator of this machine can change that",
            id="the administrator's rule is the one to name",
        ),
        pytest.param(
            NetworkRules((), (rule("a.com", Origin(Layer.FLAG, "/run/fleet.json")),)),
            "a.com",
            443,
            'denied: a.com:443: a rule denies it: "a.com" in /run/fleet.json (flag); '
            "only whoever delivers these settings can change that",
            id="delivered by a fleet",
        ),
        pytest.param(
            rules("*"),
            "a\x1b[2Jb",
            443,
            'denied: "a\\x1b[2Jb" is not a host: it has the invisible character U+001B',
            id="malformed host",
        ),
        pytest.param(rules("*"), "a.com", 0, 'denied: a.com: "0" is not a port', id="malformed port"),
        pytest.param(rules("*"), "", 80, "denied: the host is empty", id="empty host"),
    ],
)
def test_a_decision_reads_as_one_line(given_rules: NetworkRules, host: str, port: int, line: str) -> None:
    assert str(decide(given_rules, host, port, can_ask=False)) == line


def test_a_question_reads_as_one_line() -> None:
    assert str(decide(rules(), "a.com", 443, can_ask=True)) == (
        "to be asked: a.com:443: no rule allows or denies it; "
        'add "a.com" to sandbox.network.allowedDomains (stockade allow-domain a.com)'
    )


def test_the_remedy_names_a_setting_that_exists() -> None:
    assert ALLOWED_DOMAINS.name in decide(rules(), "a.com", 443, can_ask=False).remedy


def test_a_file_name_cannot_break_the_line() -> None:
    hostile = Origin(Layer.PROJECT, "/tmp/\n\x1b[2J</x>/settings.json", "$.a\nb")
    decision = decide(NetworkRules((), (rule("*", hostile),)), "a.com", 443, can_ask=False)
    assert str(decision).isprintable()
    assert "<" not in str(decision)


HOSTS = st.sampled_from(
    [
        "a.com",
        "b.a.com",
        "c.b.a.com",
        "ba.com",
        "A.com.",
        "127.0.0.1",
        "0x7f.1",
        "::1",
        "localhost",
        "a b",
        "",
        "ü.a.com",
    ]
)
PATTERNS = st.sampled_from(
    [
        "a.com",
        "*.a.com",
        "b.a.com:443",
        "*.b.a.com",
        "127.0.0.1",
        "[::1]:80",
        "localhost",
        "*",
        "*:80",
        "*.com",
        "a.com:80",
    ]
)
ORIGINS = st.builds(Origin, st.sampled_from(list(Layer)), st.sampled_from(["", "f.json"]))
SOME_RULES = st.lists(st.builds(rule, PATTERNS, ORIGINS), max_size=4).map(tuple)
RULES = st.builds(NetworkRules, SOME_RULES, SOME_RULES)
PORTS = st.sampled_from([80, 443, 22, "443", 0, "x"])
LOOSENESS = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}


@given(
    some=RULES,
    host=st.text(st.characters(exclude_categories=())) | HOSTS,
    port=st.integers() | st.text() | PORTS,
    can_ask=st.booleans(),
)
def test_there_is_always_a_decision_and_only_a_rule_allows(
    some: NetworkRules, host: str, port: int | str, *, can_ask: bool
) -> None:
    decision = decide(some, host, port, can_ask=can_ask)
    assert str(decision).isprintable()
    if decision.verdict is Verdict.ALLOW:
        assert decision.rule in some.allowed
    if not can_ask:
        assert decision.verdict is not Verdict.ASK
    assert decide(NetworkRules((), some.denied), host, port, can_ask=False).verdict is Verdict.DENY


@given(some=RULES, host=HOSTS, port=PORTS, extra=PATTERNS, can_ask=st.booleans())
def test_a_deny_rule_never_loosens(
    some: NetworkRules, host: str, port: int | str, extra: str, *, can_ask: bool
) -> None:
    before = decide(some, host, port, can_ask=can_ask).verdict
    after = decide(some.but(denied=(*some.denied, rule(extra))), host, port, can_ask=can_ask).verdict
    assert LOOSENESS[after] <= LOOSENESS[before]


@given(some=RULES, host=HOSTS, port=PORTS, extra=PATTERNS, can_ask=st.booleans())
def test_an_allow_rule_never_tightens(
    some: NetworkRules, host: str, port: int | str, extra: str, *, can_ask: bool
) -> None:
    before = decide(some, host, port, can_ask=can_ask).verdict
    after = decide(some.but(allowed=(*some.allowed, rule(extra))), host, port, can_ask=can_ask).verdict
    assert LOOSENESS[after] >= LOOSENESS[before]
