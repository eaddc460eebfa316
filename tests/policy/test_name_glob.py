from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import StockadeError
from stockade.policy.name_glob import Chars, Glob, elements_of, escaped


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        pytest.param("a*", ("a", None), id="star"),
        pytest.param("***", (None,), id="stars-in-a-row-are-one"),
        pytest.param("?", (Chars(True, ()),), id="any"),
        pytest.param("[a-cx]", (Chars(False, (("a", "c"), ("x", "x"))),), id="set"),
        pytest.param("[!-a]", (Chars(True, (("-", "-"), ("a", "a"))),), id="negated-set"),
        pytest.param(r"\*\a", ("*", "a"), id="escapes"),
    ],
)
def test_elements_of_a_name(text: str, elements: tuple[object, ...]) -> None:
    assert elements_of(text, text) == elements


@given(st.text(), st.text())
def test_an_escaped_name_matches_itself_alone(name: str, other: str) -> None:
    glob = Glob("", elements_of(escaped(name), name))
    assert glob.matches(name)
    assert glob.matches(other) == (name == other)


@given(st.text("ab*?[]!-\\"), st.text("ab"))
def test_a_star_before_and_after_only_widens(text: str, name: str) -> None:
    try:
        elements = elements_of(text, text)
    except StockadeError:
        return
    if Glob(text, elements).matches(name):
        assert Glob(text, (None, *elements, None)).matches(f"x{name}y")
