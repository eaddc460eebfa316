from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.tool.loose_word import ANY, ONE, UNKNOWN, LooseWord, fits, plain

FITTING = [
    ("rm", "rm", True),
    ("rm", "rmx", False),
    ("rm", f"r{ONE}", True),
    ("rm", f"r{ONE}{ONE}", False),
    ("rm", ANY, True),
    ("rm", f"{ANY}.txt", False),
    ("rm", f"r{ANY}m", True),
    ("*", "x", True),
    ("r*", "rmdir", True),
    ("r*m", f"{ONE}x{ONE}", True),
    ("r*m", f"x{ANY}", False),
    ("a*b*c", "a b b c", True),
    ("a*b*c", "acb", False),
    ("ab*ba", "aba", False),
    ("*a*", "bbb", False),
    ("r[m]", "rm", False),
    ("rm", ANY + "x" * 300, True),
    ("rm*", "x" * 300, False),
]


@pytest.mark.parametrize(("pattern", "shape", "expected"), FITTING)
def test_fits(pattern: str, shape: str, *, expected: bool) -> None:
    assert fits(pattern, shape) is expected


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_a_text_fits_as_an_expression_says(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern.replace("*", ".*"), text) is not None
    assert fits(pattern, text) is expected


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8), st.data())
def test_a_wider_shape_fits_all_that_a_text_does(pattern: str, text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, len(text)))
    if fits(pattern, text):
        assert fits(pattern, text[:at] + ANY + text[end:])
        assert fits(pattern, text[:at] + ONE * (end - at) + text[end:])


def test_a_command_is_known_by_the_last_part_of_its_path_too() -> None:
    assert plain("/bin/rm").may_be("rm", is_name=True)
    assert not plain("/bin/rm").may_be("rm")
    assert LooseWord("$x/rm", f"{ANY}/rm").may_be("rm", is_name=True)
    assert not LooseWord("$x/ls", f"{ANY}/ls").may_be("rm", is_name=True)


def test_what_is_split_may_be_anything() -> None:
    assert UNKNOWN.may_be("rm")
    assert not UNKNOWN.literal
    assert LooseWord("a$x", f"a{ANY}", is_split=True).may_be("rm")
    assert plain("a").literal
