from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.summary import as_json, full, summary
from stockade.violations.violation import Occasion, Operation, Violation


def violation(target: str, remedy: str = "", times: int = 1, command: str = "c1", line: str = "make") -> Violation:
    occasion = Occasion(1.0, command, line, times)
    return Violation.refused(Operation.WRITE, target, occasion, why="outside", remedy=remedy or f"add {target}")


def test_nothing_refused_is_nothing_said() -> None:
    assert summary([]) == full([]) == ""
    assert as_json([]) == '{"total": 0, "dropped": 0, "violations": []}\n'


def test_one() -> None:
    assert summary([violation("/a")]) == 'stockade: 1 refusal\n  write "/a": outside\n    to allow it: add /a\n'
    assert full([violation("/a")]) == (
        'stockade: 1 refusal\n  write "/a"\n    refused: outside\n    to allow it: add /a\n'
    )


def test_in_short_groups_and_counts_the_rest() -> None:
    told = [
        *(violation(f"/hooks/{number}", "cannot be allowed: protected") for number in range(4)),
        violation("/b", times=5),
        violation("/c"),
        violation("/d", times=2),
        violation("/e"),
    ]
    assert summary(told, dropped=9) == (
        "stockade: 22 refusals\n"
        '  write "/hooks/0" and 3 more like it: outside\n'
        "    cannot be allowed: protected\n"
        '  write "/b" (5 times): outside\n'
        "    to allow it: add /b\n"
        '  write "/c": outside\n'
        "    to allow it: add /c\n"
        "  and 12 more: see them with --violations=full\n"
    )


def test_in_full_names_the_commands_if_there_are_several() -> None:
    told = [
        violation("/a", line="echo \x1b[2J"),
        violation("/b", command="c2", line=""),
        violation("/c", line="echo \x1b[2J"),
    ]
    assert full(told, dropped=3) == (
        "stockade: 6 refusals\n"
        "  $ echo \\x1b[2J\n"
        '  write "/a"\n    refused: outside\n    to allow it: add /a\n'
        '  write "/c"\n    refused: outside\n    to allow it: add /c\n'
        "  command c2\n"
        '  write "/b"\n    refused: outside\n    to allow it: add /b\n'
        "  and 3 more, which were not kept\n"
    )


def test_a_long_remedy_is_left_to_the_full_list() -> None:
    long = violation("/a", "add " + "x" * 1000)
    assert "to allow it: see --violations=full\n" in summary([long])
    assert f"to allow it: {long.remedy}\n" in full([long])


@pytest.mark.parametrize(
    "remedy",
    ["only the administrator can allow it (/etc/p)", "cannot be allowed: this deny is built in"],
)
def test_what_nobody_here_can_do_is_no_advice(remedy: str) -> None:
    assert f"\n    {remedy}\n" in summary([violation("/a", remedy)])


def test_colours_only_when_asked() -> None:
    told = [violation(f"/{number}") for number in range(5)]
    for words in (summary, full):
        painted = words(told, dropped=1, colour=True)
        assert painted.startswith("stockade: \x1b[31m6 refusals\x1b[0m\n")
        assert re.sub("\x1b\\[[0-9]*m", "", painted) == words(told, dropped=1)


def test_for_programs() -> None:
    told = [violation("/a", times=3), violation("/b")]
    text = as_json(told, dropped=5)
    assert text.count("\n") == 1
    assert text.isascii()
    assert json.loads(text) == {"total": 9, "dropped": 5, "violations": [each.mapping() for each in told]}


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=9), st.text(), st.integers(0, 3))
def test_texts_from_inside_make_no_lines(targets: list[str], line: str, dropped: int) -> None:
    told = [violation(target, command=str(at % 2), line=line) for at, target in enumerate(targets)]
    short = summary(told, dropped=dropped)
    assert len(short.splitlines()) <= 8
    for words in (short, full(told, dropped=dropped)):
        assert all(part.isprintable() for part in words.split("\n"))
        assert len(words.splitlines()) == words.count("\n")
