from __future__ import annotations

import re
import sys
import unicodedata
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.forged_tag import BRACKETS as ALL_BRACKETS
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


#: What Unicode's list of confusables has for "<" and "/" (UTS 39, confusables.txt), less what is no such sign at all.
CONFUSABLE = ("\u02c2\u1438\u16b2\u2039\u276e\U0001d236", "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\U0001d23a")
#: What the name of a character says that looks like a bracket.
LOOKS = re.compile(
    r"(?<!NOR )(?<!OR )(?<!ABOVE )\bLESS-THAN\b|^(MUCH|VERY MUCH) LESS"
    r"|\bLEFT(-POINTING)? (DOUBLE )?(CURVED )?ANGLE (BRACKET|QUOT)|^PRECEDES"
    r"|MODIFIER LETTER (LOW )?LEFT ARROWHEAD|LEFT-POINTING (SMALL )?(TRIANGLE|POINTER)$"
)


def _named(pattern: re.Pattern[str]) -> list[str]:
    every = (chr(code) for code in range(0x80, sys.maxunicode + 1))
    return [char for char in every if pattern.search(unicodedata.name(char, "")) and not char >= "\U000e0000"]


def test_every_confusable_is_known() -> None:
    brackets, slashes = CONFUSABLE
    tags = [f"{bracket}{NAME}s" for bracket in brackets] + [f"<{slash}{NAME}s" for slash in slashes]
    assert [tag for tag in tags if not [*forged_tags(tag)]] == []


def test_every_character_named_for_such_a_bracket_is_known() -> None:
    named = _named(LOOKS)
    assert len(named) > 40
    assert [f"{ord(char):x}" for char in named if not [*forged_tags(f"{char}{NAME}s")]] == []


def test_every_combining_mark_makes_no_difference() -> None:
    marks = _named(re.compile("^COMBINING "))
    assert [f"{ord(mark):x}" for mark in marks if not [*forged_tags(f"<{mark}san{mark}dboxviolations")]] == []


def test_every_entity_of_a_bracket_is_known() -> None:
    bracket = re.compile(f"[{ALL_BRACKETS}]")
    names = {name for name, char in html5.items() if bracket.fullmatch(char) and name.endswith(";")}
    assert len(names) > 100
    assert [name for name in names if not [*forged_tags(f"&{name}{NAME}s")]] == []
    for text in (f"&lt{NAME}", f"&lt{NAME};", f"&LAQUO/{NAME};", f"&ltri;{NAME};", f"&amplt{NAME};"):
        assert [tag.start for tag in forged_tags(text)] == [0]
    codes = [code for code in range(0x80, sys.maxunicode + 1) if bracket.match(chr(code))]
    forms = ("&#{}/", "&#0{};", "&#x{:x};", "&#X00{:X};", "&amp;#{};")
    tags = [f"{form.format(code)}{NAME}" for code in codes for form in forms]
    assert [tag for tag in tags if not [*forged_tags(tag)]] == []


@pytest.mark.parametrize(
    "text", [f"&copy;{NAME}s", f"&quot;{NAME}s&quot;", f"&#34;{NAME}s", f"&amp;{NAME}s", f"&nosuch;{NAME}"]
)
def test_other_entities_are_no_brackets(text: str) -> None:
    assert [*forged_tags(text)] == []
