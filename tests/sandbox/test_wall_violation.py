"""What the walls refused, in the words of the policy."""

from __future__ import annotations

import pytest

from stockade.platforms.backend import Report
from stockade.policy.compile import compile_policy
from stockade.sandbox.record import Record
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

HIDING = {"sandbox.filesystem.denyRead": ("/secret",)}
HIDDEN = compile_policy(merge([Document(Layer.USER, "settings.json", HIDING)]), cwd="/p", home="/h")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        pytest.param(
            Report(4, "read", "/secret/key", 3),
            (
                "one",
                "make one",
                (
                    'read "/secret/key" (3 times): reading is denied by "/secret" of settings.json (user)'
                    ' at $.sandbox.filesystem.denyRead[0]; add "/secret/key" to sandbox.filesystem.allowRead'
                ),
            ),
            id="by a rule",
        ),
        pytest.param(
            Report(0, "read", "/secret/<key>"),
            (
                "",
                "",
                (
                    'read "/secret/\\x3ckey\\x3e": reading is denied by "/secret" of settings.json (user)'
                    ' at $.sandbox.filesystem.denyRead[0]; add "/secret/\\u003ckey\\u003e" to '
                    "sandbox.filesystem.allowRead"
                ),
            ),
            id="nobody's",
        ),
        pytest.param(
            Report(4, "read", "/open"),
            ("one", "make one", 'read "/open": reading was denied when the command started; run it again'),
            id="allowed meanwhile",
        ),
        pytest.param(
            Report(4, "read", "", 9),
            (
                "one",
                "make one",
                (
                    'read "other places" (9 times): more places were refused to this command than are told apart;'
                    " see those that are named"
                ),
            ),
            id="too many",
        ),
    ],
)
def test_words_of_the_walls_become_a_violation(report: Report, words: tuple[str, str, str]) -> None:
    record = Record()
    record.know("one", "make one")
    record.note(report, "one" if report.ticket else "", HIDDEN)
    ((entry,),) = [tuple(record.violations)]
    assert (entry.command, entry.line, entry.text()) == words
