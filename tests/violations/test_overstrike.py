from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.overstrike import moves, plain, shown, spelled

ANY = st.text(
    st.sampled_from("ab<\b\r\n\t\x1b\x9b[];0123456789ABCDEFGHJKPXdfsu@`7?\x07\u0301\u200b\u4e2d"), max_size=60
)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        pytest.param("ab\bc", "ac", id="backspace"),
        pytest.param("\b\ba", "a", id="no farther than the beginning"),
        pytest.param("s\bsa\ban\bn", "san", id="bold"),
        pytest.param("_\ba_\bb", "ab", id="underlined"),
        pytest.param(" abc\r<", "<abc", id="carriage return"),
        pytest.param("abc\r\nd", "abc\nd", id="a line end"),
        pytest.param(" bc\x1b[3D<", "<bc", id="to the left"),
        pytest.param(" bc\x9b3D<", "<bc", id="in one byte"),
        pytest.param("bc\x1b[2D\x1b[@<", "<bc", id="inserted"),
        pytest.param("<xx\x1b[2D\x1b[2Pbc", "<bc", id="deleted"),
        pytest.param("<xxbc\x1b[4D\x1b[2P", "<bc", id="deleted in the middle"),
        pytest.param("<bcxx\x1b[2D\x1b[K", "<bc", id="erased to the end"),
        pytest.param("<bcxx\x1b[2D\x1b[X\x1b[C\x1b[X", "<bc", id="erased one by one"),
        pytest.param("xx\x1b[1K\r<bc", "<bc", id="erased to here"),
        pytest.param("x\ny\x1b[2J\x1b[H<bc", "<bc", id="the screen erased"),
        pytest.param("x\x1b[1;3Hc\x1b[1;2Hb\x1b[1;1H<", "<bc", id="by row and column"),
        pytest.param("  c\x1b[2Gb\x1b[1G<", "<bc", id="by column"),
        pytest.param(" bc\n\x1b[A<", "<bc", id="up"),
        pytest.param(" bc\n\x1b[F<", "<bc", id="to the line above"),
        pytest.param("\x1b7 bc\x1b8<", "<bc", id="back to what was saved"),
        pytest.param("\x1b[s bc\x1b[u<", "<bc", id="back to what was saved, otherwise"),
        pytest.param(" bc\n\x1bM\r<", "<bc", id="a line back"),
        pytest.param("a\x1b[31mb\x1b]0;title\x07c", "abc", id="colours and titles show nothing"),
        pytest.param("a\u0301b\u200bc\u202e", "abc", id="marks and unseen ones take no place"),
        pytest.param("a\x1b[5Cb", "a b", id="a gap is one blank"),
        pytest.param("a\x1b", "a", id="a sequence without end"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_what_a_terminal_shows(text: str, seen: str) -> None:
    assert shown(text) == seen


@pytest.mark.parametrize(
    "text", ["plain", "a\r\nb\r\n", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "tab\tand\nline", ""]
)
def test_most_output_does_not_go_back(text: str) -> None:
    assert not moves(text)


@pytest.mark.parametrize("text", ["a\bb", "a\rb", "\r\r\n", "\x1b[A", "\x9b1;1H", "\x1b[2K", "\x1b[99999999D", "\x1bM"])
def test_what_goes_back(text: str) -> None:
    assert moves(text)
    assert not moves(spelled(text))


def test_what_is_spelled_stays_readable() -> None:
    assert spelled("a\bb\rc\x1b[A\x9bK\r\n\n\rd") == "a\\x08b\\x0dc\\x1b[A\\x9bK\r\n\n\\x0dd"


@given(ANY)
def test_nothing_that_is_spelled_moves(text: str) -> None:
    assert not moves(spelled(text))
    assert shown(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 9000 + "\x1b[P\x1b[@" * 50_000, id="shifted again and again"),
        pytest.param("a" * 9000 + "\x1b[K" * 100_000, id="erased again and again"),
        pytest.param("a\n" * 9000 + "\x1b[J" * 100_000, id="all erased again and again"),
    ],
)
@pytest.mark.timeout(20)
def test_what_takes_too_long_cannot_be_told(text: str) -> None:
    assert shown(text) is None


@pytest.mark.timeout(20)
def test_far_places_cost_nothing() -> None:
    assert shown("\x1b[99999999Gx\x1b[99999999B" * 5000) is not None
    assert shown("\x1b[" + "9" * 100_000 + "Gx") is not None


def test_colours_and_titles_go() -> None:
    assert plain("a\x1b[31mb\x1b]0;title\x07c\x9b0md\x1b(Be\x1b") == "abcde"
