from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.macos.sexpr import Form, Quoted, bytes_of, quoted, read, show, text_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("/Users/ann", '"/Users/ann"', id="plain"),
        pytest.param('a"b', r'"a\"b"', id="quote"),
        pytest.param("a\\", r'"a\\"', id="backslash-at-the-end"),
        pytest.param("a\\n", r'"a\\n"', id="backslash-and-letter"),
        pytest.param("a\nb\tc\rd", r'"a\nb\tc\rd"', id="line-ends"),
        pytest.param("\x1b[0m\x7f", r'"\x1b[0m\x7f"', id="control-characters"),
        pytest.param("caf\u00e9", '"caf\u00e9"', id="accents"),
        pytest.param("\U0001f600", '"\U0001f600"', id="beyond-the-basic-plane"),
        pytest.param("\udcff\udc80", r'"\xff\x80"', id="bytes-that-are-no-utf-8"),
        pytest.param(';)("', r'";)(\""', id="what-a-profile-is-made-of"),
        pytest.param("", '""', id="empty"),
    ],
)
def test_texts_are_quoted_and_read(text: str, shown: str) -> None:
    assert quoted(text) == shown
    assert read(shown) == (Quoted(text),)


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("; only a comment", (), id="comment"),
        pytest.param("(version 1)", (("version", "1"),), id="rule"),
        pytest.param("(a (b) ())(c)", (("a", ("b",), ()), ("c",)), id="nested"),
        pytest.param("(a ; (b\n c)", (("a", "c"),), id="comment-inside"),
        pytest.param('(a "; no comment")', (("a", Quoted("; no comment")),), id="semicolon-in-a-text"),
        pytest.param(r'(regex #"^/a\.b$")', (("regex", Quoted(r"^/a\.b$")),), id="raw"),
        pytest.param(r'#"a\"b"', (Quoted('a"b'),), id="quote-in-raw"),
        pytest.param(r'"\xc3\xa9"', (Quoted("\u00e9"),), id="bytes-that-amount-to-a-character"),
        pytest.param(r'"\q"', (Quoted("q"),), id="any-other-escape"),
        pytest.param('"a\nb"', (Quoted("a\nb"),), id="a-line-end-as-it-is"),
        pytest.param("a#b", ("a#b",), id="hash-in-a-word"),
    ],
)
def test_reading(text: str, forms: tuple[Form, ...]) -> None:
    assert read(text) == forms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("(a", "line 1 of the profile opens a parenthesis that is never closed", id="open"),
        pytest.param("a\n)", "line 2 of the profile closes a parenthesis that was never opened", id="closed"),
        pytest.param('(\n"a', "line 2 of the profile opens a text that is never closed", id="text"),
        pytest.param('#"a', "line 1 of the profile opens a text that is never closed", id="raw-text"),
        pytest.param(r'"\xg0"', r"line 1 of the profile has \x without two hexadecimal digits", id="digits"),
        pytest.param(r'"\x1"', r"line 1 of the profile has \x without two hexadecimal digits", id="one-digit"),
        pytest.param('"\\n\ud800"', "line 1 of the profile holds half a surrogate pair", id="surrogate"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        read(text)
    assert caught.value.message == message
    assert caught.value.hint


def test_long_forms_are_broken() -> None:
    form: Form = ("deny", "file-read*", "file-write*", ("subpath", Quoted("/a" * 30)), ("subpath", Quoted("/b" * 30)))
    assert show(form) == (f'(deny file-read* file-write*\n  (subpath "{"/a" * 30}")\n  (subpath "{"/b" * 30}"))')
    assert read(show(form)) == (form,)
    words: Form = ("a" * 60, "b" * 60)
    assert show(words) == f"({'a' * 60} {'b' * 60})"


words = st.text("abc*-1", min_size=1)
forms = st.recursive(
    words | st.binary().map(text_of).map(Quoted), lambda inner: st.lists(inner, max_size=5).map(tuple), max_leaves=30
)


@given(forms)
def test_all_forms_survive(form: Form) -> None:
    assert read(show(form)) == (form,)


@given(st.binary())
def test_all_bytes_survive(data: bytes) -> None:
    assert bytes_of(text_of(data)) == data


@given(st.text() | st.text('();"#\\x0a \n'))
def test_nothing_else_is_raised(text: str) -> None:
    with suppress(InvalidTextError):
        read(text)
