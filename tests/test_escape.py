from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.escape import escape, legible, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("api.example.com", "api.example.com", id="plain"),
        pytest.param("a b", "a b", id="space stays"),
        pytest.param("bücher/日本", "bücher/日本", id="letters of any script stay"),
        pytest.param("a\nb\r\tc", "a\\x0ab\\x0d\\x09c", id="line breaks and tabs"),
        pytest.param("\x1b[2J\x9b1m", "\\x1b[2J\\x9b1m", id="terminal sequences, 7 and 8 bit"),
        pytest.param("a\0b\x7f", "a\\x00b\\x7f", id="NUL and DEL"),
        pytest.param("a\u202eb\u2066", "a\\u202eb\\u2066", id="bidi overrides"),
        pytest.param("a\u2028b\u2029\x85", "a\\u2028b\\u2029\\x85", id="unicode line breaks"),
        pytest.param("a\u00a0b\u3000", "a\\xa0b\\u3000", id="odd spaces"),
        pytest.param("a\u200bb\ufeff\u00ad", "a\\u200bb\\ufeff\\xad", id="zero-width and soft hyphen"),
        pytest.param("\u3164\u2800\ufe0f\u034f", "\\u3164\\u2800\\ufe0f\\u034f", id="fillers that count as letters"),
        pytest.param("\udcff", "\\udcff", id="surrogate of an undecodable byte"),
        pytest.param("\U000e0041", "\\U000e0041", id="tag character"),
        pytest.param("</sandbox_violations>", "\\x3c/sandbox_violations\\x3e", id="a closing tag"),
        pytest.param('say "x"', 'say \\"x\\"', id="quotes"),
        pytest.param("\\x1b", "\\\\x1b", id="a literal backslash is told from an escape"),
    ],
)
def test_what_breaks_a_line_is_made_visible(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        pytest.param("abcdefghij", 10, "abcdefghij", id="just fits"),
        pytest.param("abcdefghijk", 10, "abcd...ijk", id="the middle goes"),
        pytest.param("\n\n\n", 10, "\\x0a...", id="an escape is never cut in two"),
        pytest.param("a" * 10_000_000, 9, "aaa...aaa", id="huge"),
        pytest.param("abcd", 3, "...", id="room for the gap alone"),
        pytest.param("abcd", 1, ".", id="room for one"),
        pytest.param("abcd", 0, "", id="no room"),
    ],
)
def test_a_long_text_keeps_both_ends(text: str, limit: int, shown: str) -> None:
    assert escape(text, limit) == shown


@given(st.text(st.characters(exclude_categories=())), st.integers(0, 60))
def test_the_result_is_one_bounded_printable_line(text: str, limit: int) -> None:
    shown = escape(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    assert all(map(visible, shown))
    assert not set(shown) & set("<>")
    assert len(shown.splitlines()) <= 1


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_an_uncut_result_stands_for_one_text(text: str) -> None:
    shown = escape(text, 1000)
    ascii_only = shown.encode("latin-1", "backslashreplace")
    assert ascii_only.decode("unicode_escape") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param('plain "quoted" <x> \\x1b', 'plain "quoted" <x> \\x1b', id="what can be seen stays"),
        pytest.param("a\n\x1b[2J\u202e", "a\\x0a\\x1b[2J\\u202e", id="what cannot is escaped"),
    ],
)
def test_a_line_of_safe_pieces_is_made_legible(text: str, shown: str) -> None:
    assert legible(text) == shown
