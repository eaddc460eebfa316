from __future__ import annotations

import argparse
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.cli.parser import Parser, UsageError, nearest


def parser() -> Parser:
    made = Parser(prog="stockade x")
    made.add_argument("--json", action="store_true")
    made.add_argument("--mode", choices=("auto", "strict"))
    made.add_argument("rest", nargs="*")
    return made


@given(st.lists(st.text()))
def test_no_command_line_raises_anything_but_usage_errors(words: list[str]) -> None:
    if {"-h", "--help"} & set(words):
        return
    with suppress(UsageError):
        parser().read(words, argparse.Namespace())


def test_choices_are_named() -> None:
    with pytest.raises(UsageError) as caught:
        parser().read(["--mode", "sctrict"], argparse.Namespace())
    assert "auto" in caught.value.message
    assert "strict" in caught.value.message


def test_flags() -> None:
    assert parser().flags() == ("-h", "--help", "--json", "--mode")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("alow", "allow"), ("allow-domian", "allow-domain"), ("qqqq", None), ("", None)],
)
def test_nearest(word: str, expected: str | None) -> None:
    assert nearest(word, ("allow", "allow-domain", "deny")) == expected
