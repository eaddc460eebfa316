"""The list of rules itself; what the filter made of them does is in ``test_seccomp`` and ``test_seccomp_kernel``."""

from __future__ import annotations

import pytest

from stockade.errors import InvalidTextError
from stockade.platforms.linux.confinement import Features, UnixSockets, rules
from stockade.platforms.linux.syscalls import ARCHITECTURES

MOST = Features("stream", tracing=False, notify=frozenset({"connect", "openat", "open"}))


def told(features: Features, *names: str) -> list[str]:
    return [str(rule) for rule in rules(features) if rule.name in names]


@pytest.mark.parametrize("features", [Features(), MOST, Features("all")], ids=["default", "most", "unix sockets"])
def test_every_rule_names_a_call_and_a_reason(features: Features) -> None:
    known = {name for arch in ARCHITECTURES for name in arch.numbers()}
    assert [rule for rule in rules(features) if rule.name not in known or not rule.reason] == []


@pytest.mark.parametrize("features", [Features(), MOST, Features("all")], ids=["default", "most", "unix sockets"])
def test_no_rule_hides_a_later_one(features: Features) -> None:
    """A rule without conditions ends the list of its name: one after it would never be tried."""
    ended: set[str] = set()
    for rule in rules(features):
        assert rule.name not in ended, rule
        if not rule.when:
            ended.add(rule.name)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("none", ["unix sockets are not allowed"], id="none"),
        pytest.param("stream", ["a unix datagram goes to any path without connecting"], id="stream"),
        pytest.param("all", [], id="all"),
    ],
)
def test_unix_sockets_are_none_connected_or_all(mode: UnixSockets, expected: list[str]) -> None:
    common = {rule.reason for rule in rules(Features("all")) if rule.name == "socket"}
    assert [r.reason for r in rules(Features(mode)) if r.name == "socket" and r.reason not in common] == expected


def test_debuggers_work_unless_the_session_says_no() -> None:
    assert told(Features(), "ptrace", "kcmp") == []
    assert told(Features(tracing=False), "ptrace", "kcmp") == [
        "ptrace: EPERM (sees processes of others)",
        "kcmp: EPERM (sees processes of others)",
    ]


def test_a_supervisor_is_asked_last_and_of_opening_only_to_write() -> None:
    asked = [str(rule) for rule in rules(MOST)][-3:]
    assert asked == [
        "connect: notify (the supervisor is asked)",
        "open if (arg1 & 0x243) not in {0x0}: notify (the supervisor is asked)",
        "openat if (arg2 & 0x243) not in {0x0}: notify (the supervisor is asked)",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"unix_sockets": "some"}, "unix_sockets cannot be 'some'", id="no such mode"),
        pytest.param({"notify": frozenset({"opennat"})}, "no such system call: opennat", id="misspelt call"),
    ],
)
def test_what_would_silently_filter_nothing_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Features(**fields)  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.message == message
