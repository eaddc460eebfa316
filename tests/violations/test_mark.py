from __future__ import annotations

import html
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.annotation import annotate, entries, neutralise, strip
from stockade.violations.mark import LENGTH, LETTERS, PLAIN, Mark, tags
from stockade.violations.violation import Occasion, Operation, Violation

MARK = Mark("k7m2q9xw4tbz")
OTHER = Mark("bcdfghjkmnpq")
WRITE = Violation.refused(Operation.WRITE, "/a", Occasion(0.0, "c"), why="w", remedy="r")
PIECES = (
    *(
        MARK.id,
        MARK.id.upper(),
        MARK.opening,
        MARK.closing,
        PLAIN.opening,
        OTHER.opening,
        MARK.line("x"),
        "k7m2q9",
        "xw4tbz",
    ),
    *(
        "\n",
        " ",
        "\b",
        "\r",
        "\x1b[D",
        "\x1b[6D",
        "\x1b[m",
        "&#107;",
        "\u200b",
        "<",
        ">",
        "id=",
        '"',
        "7",
        "k",
        "\uff4b",
    ),
)
OUTPUT = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def test_a_fresh_one_is_random_and_long_enough() -> None:
    ids = {Mark.fresh().id for _ in range(200)}
    assert len(ids) == 200
    assert {len(each) for each in ids} == {LENGTH}
    assert set("".join(ids)) == set(LETTERS)
    assert len(LETTERS) ** LENGTH >= 2**48


def test_it_is_not_shown() -> None:
    assert (repr(MARK), repr(PLAIN)) == ("Mark(...)", "Mark()")


@pytest.mark.parametrize("text", ["short", "k7m2q9xw4tba!", "k7m2q9xw4t z", 'k7m2q9xw4tb">'])
def test_an_id_that_could_be_misread_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="the id of a mark"):
        Mark(text)


def test_its_words() -> None:
    assert MARK.opening == '<sandbox_violations id="k7m2q9xw4tbz">'
    assert MARK.closing == '</sandbox_violations id="k7m2q9xw4tbz">'
    assert MARK.line("exit status 1") == "[stockade k7m2q9xw4tbz: exit status 1]"
    assert (PLAIN.opening, PLAIN.closing) == ("<sandbox_violations>", "</sandbox_violations>")
    assert PLAIN.line("exit status 1") == "[exit status 1]"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        pytest.param("a k7m2q9xw4tbz b", "a (id) b", id="as it is"),
        pytest.param("k7m2q9xw4tbzk7m2q9xw4tbz", "(id)(id)", id="twice"),
        pytest.param("kk7m2q9xw4tbz7m2q9xw4tbz", "k(id)7m2q9xw4tbz", id="within itself"),
        pytest.param("K7M2Q9XW4TBZ", "(id)", id="capitals"),
        pytest.param("k7m2 q9xw-4tbz", "(id)", id="in groups"),
        pytest.param("k7m2\u200bq9xw\n4tbz", "(id)", id="with what nobody sees"),
        pytest.param("\uff4b\uff17m2q9xw4tbz", "(id)", id="full width"),
        pytest.param("\U0001d55c7m2q9xw4tbz", "(id)", id="a mathematical letter"),
        pytest.param("k\u03017m2q9xw4tbz", "(id)", id="an accent"),
        pytest.param("&#107;7m2q9xw4tbz", "\\x26#107;7m2q9xw4tbz", id="an entity"),
        pytest.param(f"&#{'0' * 5000}107;", f"\\x26#{'0' * 5000}107;", id="a number that Python does not read"),
        pytest.param("&amp;#x6b;7m2q9xw4tbz", "\\x26amp;#x6b;7m2q9xw4tbz", id="an entity of an entity"),
        pytest.param("k7m2q9xX\bw4tbz", "k7m2q9xX\\x08w4tbz", id="overstruck"),
        pytest.param(" 7m2q9xw4tbz\rk", " 7m2q9xw4tbz\\x0dk", id="written over"),
        pytest.param("k7m2\x1b[31mq9xw4tbz", "k7m2\\x1b[31mq9xw4tbz", id="in two colours"),
    ],
)
def test_the_id_is_hidden_in_any_disguise(text: str, hidden: str) -> None:
    assert MARK.hide(text) == hidden
    assert neutralise(text, MARK) == hidden
    assert PLAIN.hide(text) == text


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (Mark("2fqfn5xtxbys"), "2fqfn5xtxbys"),
        (Mark("k7mx9bq9xw4t"), "k7m\x9bq9xw4t k7m\x9b\x9bDq9xw4t"),
        (Mark("k7mx26q9xw4t"), "k7m&q9xw4t k7m&&#113;9xw4t k7mx26&#113;9xw4t"),
        (Mark("bcdfghjkmnpq"), "\U0001d68bcdfghjkmnpq"),
    ],
)
def test_no_escape_spells_it(mark: Mark, text: str) -> None:
    for each in (text, f"{text}{mark.id}", f"{mark.id}\x1b[D{text}", f"{mark.id[:5]}{mark.id}{mark.id[5:]}"):
        safe = neutralise(each, mark)
        assert mark.id not in "".join(filter(str.isalnum, html.unescape(safe).lower()))


@pytest.mark.parametrize(
    "text", ["", "plain", "k7m2q9xw4tb", "bcdfghjkmnpq", "\x1b[31mred\x1b[0m\r\n", "50%\r100%\n", "R&D"]
)
def test_other_output_stays_as_it_is(text: str) -> None:
    assert neutralise(text, MARK) == text


@given(OUTPUT)
def test_the_id_is_never_read_in_an_output(text: str) -> None:
    safe = neutralise(text, MARK)
    assert MARK.id not in "".join(filter(str.isalnum, html.unescape(safe).lower()))
    assert neutralise(safe, MARK) == safe


@given(OUTPUT, st.lists(st.just(WRITE), max_size=2))
def test_exactly_our_block_is_marked(text: str, violations: list[Violation]) -> None:
    told = annotate(text, violations, mark=MARK)
    assert told.count(MARK.opening) == told.count(MARK.closing) == told.count(MARK.id) / 2 == bool(violations)
    assert entries(told) == tuple(each.text() for each in violations)
    assert strip(told) == neutralise(text, MARK)


def test_a_block_is_closed_by_its_own_mark_alone() -> None:
    for closing in (PLAIN.closing, OTHER.closing):
        text = f"{MARK.opening}\nx\n{closing}\n"
        assert (strip(text), entries(text)) == (text, ())
    text = f"{PLAIN.opening}\nx\n{MARK.closing}\n"
    assert strip(text) == text


def test_blocks_of_every_mark_are_stripped() -> None:
    text = annotate("one\n", [WRITE]) + annotate("two\n", [WRITE], mark=MARK) + annotate("three", [WRITE], mark=OTHER)
    assert strip(text) == "one\ntwo\nthree"
    assert [mark.id for _, _, mark in tags(text)] == ["", MARK.id, OTHER.id]


@pytest.mark.parametrize(
    "opening",
    [
        '<sandbox_violations id="">',
        '<sandbox_violations id="short">',
        "<sandbox_violations id=k7m2q9xw4tbz>",
        '<sandbox_violations  id="k7m2q9xw4tbz">',
        '<sandbox_violations id="k7m2q9xw4tbz" x="">',
        "<sandbox_violations k7m2q9xw4tbz>",
        "<sandbox_violationsk7m2q9xw4tbz>",
    ],
)
def test_what_is_no_tag_of_ours(opening: str) -> None:
    assert list(tags(f"{opening}\nx\n")) == []


def test_base64_is_no_disguise() -> None:
    """Nobody reads it as it stands; it would have to be taken for a command's words anyway."""
    text = b64encode(MARK.id.encode()).decode()
    assert MARK.hide(text) == text
