from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.tool.excerpt import Excerpt


def fed(*pieces: bytes, shown: int = 20) -> Excerpt:
    excerpt = Excerpt(shown)
    for piece in pieces:
        excerpt.feed(piece)
    return excerpt


TEXTS = {
    "nothing": ((), ""),
    "short": ((b"abc\n",), "abc\n"),
    "in pieces": ((b"ab", b"", b"c"), "abc"),
    "just enough": ((b"0123456789", b"abcdefghij"), "0123456789abcdefghij"),
    "one too many": (
        (b"0123456789", b"abcdefghij", b"k"),
        "0123456789\n[... 1 bytes in the middle are left out; all of it is in /f ...]\nbcdefghijk",
    ),
    "a line end at the cut": (
        (b"012345678\n" + b"x" * 100 + b"abcdefghij",),
        "012345678\n[... 100 bytes in the middle are left out; all of it is in /f ...]\nabcdefghij",
    ),
    "characters cut in two": (
        ("12345678€".encode() + b"x" * 50 + "€bcdefghij".encode(),),
        "12345678\n[... 56 bytes in the middle are left out; all of it is in /f ...]\nbcdefghij",
    ),
    "some bytes that are no text": ((b"plain text \xff here",), "plain text \ufffd here"),
    "binary": ((b"\x7fELF\0\0\0",), "[binary output of 7 bytes; all of it is in /f]\n"),
    "other bytes": ((bytes(range(128, 160)) * 10,), "[binary output of 320 bytes; all of it is in /f]\n"),
}


@pytest.mark.parametrize(("pieces", "text"), TEXTS.values(), ids=TEXTS)
def test_what_is_shown(pieces: tuple[bytes, ...], text: str) -> None:
    assert fed(*pieces).text("/f") == text


def test_without_a_file_none_is_named() -> None:
    assert fed(b"x" * 21).text() == "x" * 10 + "\n[... 1 bytes in the middle are left out ...]\n" + "x" * 10
    assert fed(b"\0").text() == "[binary output of 1 bytes]\n"


@given(st.lists(st.binary(max_size=50)), st.integers(2, 40))
def test_memory_and_text_are_bounded_and_what_is_whole_is_kept(pieces: list[bytes], shown: int) -> None:
    excerpt = fed(*pieces, shown=shown)
    whole = b"".join(pieces)
    assert excerpt.size == len(whole)
    assert len(excerpt._head) + len(excerpt._tail) <= 3 * shown + 50
    if excerpt.is_whole:
        assert excerpt.kept() == whole
    assert len(excerpt.text()) <= shown + 80
    if len(whole) <= shown // 2 * 2 and not excerpt.is_binary:
        assert excerpt.text() == whole.decode("utf-8", "replace")
