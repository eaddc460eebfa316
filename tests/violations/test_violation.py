from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.escape import visible
from stockade.policy import file_remedy
from stockade.policy.decision import decide
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.files import Access, FileVerdict, Reason
from stockade.policy.network_rules import NetworkRules
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.violations.violation import LONGEST_LINE, Occasion, Operation, Violation

WHEN = Occasion(12.5, "c1", "make all")
USER = Origin(Layer.USER, "/h/s.json", "$.sandbox.network.deniedDomains[0]")
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def outside(path: str, place: str = "") -> FileVerdict:
    real = place or path
    return FileVerdict(
        False, Access.WRITE, path, real, Reason.OUTSIDE_WRITABLE, remedy=file_remedy.for_outside(real, None)
    )


def test_of_a_write_outside() -> None:
    assert Violation.of_file(outside("/etc/hosts"), WHEN) == Violation(
        time=12.5,
        command="c1",
        line="make all",
        operation=Operation.WRITE,
        target="/etc/hosts",
        rule="",
        source="",
        why="outside every writable place",
        remedy='add "/etc/hosts" to sandbox.filesystem.allowWrite, or run: stockade allow /etc/hosts',
        times=1,
    )


def test_of_a_denied_read_through_a_link() -> None:
    rule = Sourced(PathPattern.parse("~/.ssh", cwd="/w", home="/h"), Origin(Layer.USER, "/h/s.json", "$.x[1]"))
    verdict = FileVerdict(False, Access.READ, "/w/k", "/h/.ssh/k", Reason.DENIED_READ, rule, remedy="remove it")
    violation = Violation.of_file(verdict, WHEN.but(times=3))
    assert (violation.rule, violation.source, violation.times) == ("~/.ssh", "/h/s.json (user) at $.x[1]", 3)
    assert violation.text() == (
        'read "/w/k" (3 times): reading is denied (it is "/h/.ssh/k")'
        ' by "~/.ssh" of /h/s.json (user) at $.x[1]; remove it'
    )


def test_of_a_protected_name() -> None:
    verdict = outside("/w/.bashrc").but(
        reason=Reason.PROTECTED, protected_name=".bashrc", remedy="cannot be allowed: .bashrc is protected because so"
    )
    violation = Violation.of_file(verdict, WHEN, Operation.DELETE)
    assert violation.text() == (
        'delete "/w/.bashrc": always protected from writing by ".bashrc" of the protected names;'
        " cannot be allowed: .bashrc is protected because so"
    )


@pytest.mark.parametrize(
    ("host", "operation", "text"),
    [
        pytest.param(
            "example.com",
            Operation.CONNECT,
            "connect to example.com:443: no rule allows it, and there is nobody to ask;"
            ' add "example.com" to sandbox.network.allowedDomains (stockade allow-domain example.com)',
            id="nothing-allows-it",
        ),
        pytest.param(
            "evil.com",
            Operation.RESOLVE,
            'look up evil.com:443: a rule denies it by "evil.com" of /h/s.json (user) at'
            ' $.sandbox.network.deniedDomains[0]; remove "evil.com" at $.sandbox.network.deniedDomains[0] in'
            ' /h/s.json (user), then add "evil.com" to sandbox.network.allowedDomains (stockade allow-domain evil.com)',
            id="a-rule-denies-it",
        ),
    ],
)
def test_of_a_refused_host(host: str, operation: Operation, text: str) -> None:
    rules = NetworkRules(denied=(Sourced(DomainPattern.parse("evil.com", deny=True), USER),))
    assert Violation.of_network(decide(rules, host, 443, can_ask=False), WHEN, operation).text() == text


def test_of_a_malformed_host_is_escaped_once_and_has_no_remedy() -> None:
    violation = Violation.of_network(decide(NetworkRules(), "a\x1b<b", 443, can_ask=False), WHEN)
    assert violation.target == '"a\\x1b\\x3cb"'
    assert violation.remedy == "cannot be allowed: no setting opens it"


def test_what_is_allowed_is_no_violation() -> None:
    rules = NetworkRules(allowed=(Sourced(DomainPattern.parse("a.com"), USER),))
    with pytest.raises(ValueError, match="no violation"):
        Violation.of_network(decide(rules, "a.com", 443, can_ask=False), WHEN)
    with pytest.raises(ValueError, match="no violation"):  # a question is no answer
        Violation.of_network(decide(rules, "b.com", 443, can_ask=True), WHEN)
    with pytest.raises(ValueError, match="no violation"):
        Violation.of_file(outside("/x").but(allowed=True), WHEN)


def test_each_operation_has_words() -> None:
    shown = {operation: Violation.refused(operation, "x", WHEN, why="y").headline for operation in Operation}
    assert shown == {
        Operation.READ: 'read "x"',
        Operation.WRITE: 'write "x"',
        Operation.CREATE: 'create "x"',
        Operation.DELETE: 'delete "x"',
        Operation.RENAME: 'rename "x"',
        Operation.METADATA: 'change the attributes of "x"',
        Operation.EXECUTE: 'run "x"',
        Operation.CONNECT: "connect to x",
        Operation.RESOLVE: "look up x",
        Operation.UNIX_CONNECT: 'connect to the socket "x"',
        Operation.LEAVE: 'leave behind "x"',
    }


def test_a_remedy_is_whole_or_not_there() -> None:
    long = Violation.of_file(outside("/" + "a" * 4000), WHEN)
    assert long.remedy.endswith("a" * 4000)
    assert long.text().endswith("; the setting that would allow it is too long to be shown here")
    endless = Violation.of_file(outside("/" + "a" * 9000), WHEN)
    assert endless.remedy == "the setting that would allow it is too long to be shown here"


def test_a_closing_tag_in_a_path_gets_into_no_text() -> None:
    violation = Violation.of_file(outside("/x/</sandbox_violations>"), WHEN)
    assert not set("<>") & set("".join(str(value) for value in violation.__dict__.values() if isinstance(value, str)))


def test_for_programs() -> None:
    violation = Violation.refused(Operation.UNIX_CONNECT, "/run/docker.sock", WHEN, why="not listed", remedy="add it")
    assert json.loads(json.dumps(violation.mapping())) == {
        "time": 12.5,
        "command": "c1",
        "line": "make all",
        "operation": "unix-connect",
        "target": "/run/docker.sock",
        "rule": "",
        "source": "",
        "why": "not listed",
        "remedy": "add it",
        "times": 1,
    }


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.sampled_from(list(Operation)))
def test_whatever_comes_from_inside_is_one_bounded_line(target: str, why: str, remedy: str, tried: Operation) -> None:
    line = Violation.refused(tried, target, WHEN, why=why, remedy=remedy).text()
    assert len(line) <= LONGEST_LINE
    assert all(map(visible, line))
    assert not set("<>") & set(line)


@given(st.integers(0, 12_000), st.sampled_from("a<\x1b\U000e0041"))
def test_no_length_makes_a_text_longer(length: int, char: str) -> None:
    violation = Violation.refused(Operation.READ, char * length, WHEN, why=char * length, remedy=char * length)
    assert len(violation.text()) <= LONGEST_LINE
    assert len(violation.target) <= 4096
    assert len(violation.why) <= 300
    assert len(violation.remedy) <= 10_000
