from __future__ import annotations

import pytest

from stockade.network.proxy_process import Refused
from stockade.policy.compile import compile_policy
from stockade.sandbox.record import Record, network_violation
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import EMPTY, merge
from stockade.violations.violation import Occasion, Operation, Violation

POLICY = compile_policy(EMPTY, cwd="/p", home="/h")
OCCASION = Occasion(1.0, "c", "curl evil.test", 2)


@pytest.mark.parametrize(
    ("refused", "violation"),
    [
        pytest.param(
            Refused("evil.test:443", "NOBODY_TO_ASK", "evil.test", 443, remedy="add it", command="c"),
            Violation(
                *(1.0, "c", "curl evil.test", Operation.CONNECT, "evil.test:443", "", ""),
                *("no rule allows it, and there is nobody to ask", "add it", 2),
            ),
            id="a connection",
        ),
        pytest.param(
            Refused("evil.test", "DENIED", "evil.test", 0, "*.test", "settings.json", remedy="remove it"),
            Violation(
                *(1.0, "c", "curl evil.test", Operation.RESOLVE, "evil.test", "*.test", "settings.json"),
                *("a rule denies it", "remove it", 2),
            ),
            id="a name, by a rule",
        ),
        pytest.param(
            Refused("..", "MALFORMED_HOST", detail="no label is empty", remedy=""),
            Violation(
                *(1.0, "c", "curl evil.test", Operation.CONNECT, "..", "", ""),
                *("the host is malformed: no label is empty", "cannot be allowed: no setting opens it", 2),
            ),
            id="nonsense",
        ),
    ],
)
def test_words_of_the_proxy_become_a_violation(refused: Refused, violation: Violation) -> None:
    assert network_violation(refused, OCCASION) == violation


def test_the_line_of_a_command_is_known_by_its_id() -> None:
    record = Record()
    record.know("one", "make one")
    record.take(Refused("a.test:1", "NOBODY_TO_ASK", "a.test", 1, command="one", times=3), POLICY)
    record.take(Refused("a.test:1", "NOBODY_TO_ASK", "a.test", 1, command="other"), POLICY)
    assert [(entry.line, entry.times) for entry in record.violations] == [("make one", 3), ("", 1)]


def test_what_the_policy_ignores_is_not_kept() -> None:
    ignoring = {"sandbox.ignoreViolations": {"*": ("telemetry",)}}
    policy = compile_policy(merge([Document(Layer.USER, "settings.json", ignoring)]), cwd="/p", home="/h")
    record = Record()
    record.take(Refused("telemetry.test:443", "NOBODY_TO_ASK", "telemetry.test", 443), policy)
    record.take(Refused("other.test:443", "NOBODY_TO_ASK", "other.test", 443), policy)
    assert [entry.target for entry in record.violations] == ["other.test:443"]


def test_many_commands_are_not_remembered_for_ever() -> None:
    record = Record()
    for number in range(1200):
        record.know(str(number), "line")
    record.take(Refused("a.test:1", "NOBODY_TO_ASK", "a.test", 1, command="0"), POLICY)
    record.take(Refused("a.test:1", "NOBODY_TO_ASK", "a.test", 1, command="1199"), POLICY)
    assert [entry.line for entry in record.violations] == ["", "line"]
