from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.forged_tag import ForgedTag, forged_tags

NAME = "sandboxviolation"
#: How a letter can be written. A hexadecimal reference needs its end, or it goes on with the letters that follow.
DISGUISES = (
    *("{0}", "&#{1};", "&#{1}", "&#000{1};", "&#x{1:X};", "&amp;#x00{1:x};", "&AMP;amp;#{1};", "&{0}scr;"),
    *("\u017f", "\u0130"),
)
GAPS = ("", "", "", " ", "\n", "&nbsp;", "&#8203;", "&#x200d;", "&amp;shy;", "&#45;", "\x1b[1m", "\u0301", "_")
BRACKETS = ("<", "&lt;", "&LT", "&#60;", "&#060", "&#x3C;", "&amp;lt;", "&amp;amp;#60;", "\u2039")
AHEAD = ("", "/", "&sol;", "&#47;", "&amp;#x2f;", " / ", "&nbsp;", "ns:", "\x1b]0;t\x07")

SIGNS = st.tuples(st.sampled_from(GAPS), st.sampled_from(DISGUISES))
NAMES = st.tuples(*(SIGNS for _ in NAME)).map(
    lambda signs: "".join(
        gap * bool(at) + sign.format(letter, ord(letter))
        for at, (letter, (gap, sign)) in enumerate(zip(NAME, signs, strict=True))
    )
)


def _plain_letters(name: str) -> int:
    return len(NAME) - name.count("\u017f") - name.count("\u0130")


@given(st.sampled_from(BRACKETS), st.sampled_from(AHEAD), NAMES)
def test_a_name_in_any_disguise_is_found(bracket: str, ahead: str, name: str) -> None:
    text = f"before {bracket}{ahead}{name}s after"
    start = len("before ")
    expected = ForgedTag(start, start + len(bracket + ahead), start + len(bracket + ahead + name))
    if _plain_letters(name) >= len(NAME) // 2:
        assert list(forged_tags(text)) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("&lt;sandbox_violations", id="the bracket alone is an entity"),
        pytest.param("<&#115;&#97;&#110;&#100;&#98;&#111;&#120;_violations", id="one word of decimal references"),
        pytest.param("<&#x73;&#x61;&#x6e;&#x64;&#x62;&#x6f;&#x78;_violations", id="one word of hexadecimal ones"),
        pytest.param("<sand&#98;ox&lowbar;violations", id="a letter and the joint"),
        pytest.param("<sandbox&nbsp;&shy;&zwnj;violations", id="unseen ones between the words"),
        pytest.param("<&sol;sandbox_violations", id="the slash"),
        pytest.param("&amp;amp;lt;&amp;sol;&amp;#115;andbox_violations", id="entities of entities"),
        pytest.param("<&nbsp;x:&nbsp;sandbox_violations", id="around a namespace"),
        pytest.param("<sandbox_violations:" + "\u00e9" * len(NAME), id="as a namespace of foreign letters"),
        pytest.param("<s\u0130ndbox_violations", id="a letter whose small letter is ASCII"),
    ],
)
def test_entities_hide_nothing(text: str) -> None:
    """Python before 3.11.5 let these pass while the search had possessive quantifiers."""
    assert [tag.start for tag in forged_tags(f"& {text}>")] == [2]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<sandbox&copy;violations", id="an entity that is read as no letter of the name"),
        pytest.param("<&#0;sandbox_violations", id="no character"),
        pytest.param("<&amp;sandbox_violations", id="an ampersand"),
        pytest.param("<&#x73andbox_violations", id="a reference that goes on"),
        pytest.param("&amp;gt;sandbox_violations", id="the other bracket"),
        pytest.param("&l;sandbox_violations", id="no bracket"),
        pytest.param("<1sandbox_violations", id="a digit first"),
    ],
)
def test_what_cannot_be_read_as_the_tag(text: str) -> None:
    assert list(forged_tags(text)) == []
