from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.loose_line import read_loosely
from stockade.tool.loose_word import ANY, ONE, LooseWord
from stockade.tool.word_reader import UnclearError


def word(text: str) -> LooseWord:
    """Read one word, as the argument of a command."""
    commands = read_loosely(f"a {text}", Effort())
    (found,) = commands[-1].words[1:]
    return found


SHAPES = {
    "plain": ("x.c", "x.c"),
    "single quotes": ("'a $b'", "a $b"),
    "double quotes": ('"a b"', "a b"),
    "quotes inside": ("a'b'\"c\"", "abc"),
    "a backslash": ("a\\ b\\$", "a b$"),
    "a backslash in quotes": ('"\\$x \\n"', "$x \\n"),
    "continued in quotes": ('"a\\\nb"', "ab"),
    "ANSI quotes": ("$'a\\nb'", "a\nb"),
    "ANSI quotes with a code": ("$'\\x72m'", ANY),
    "a variable in quotes": ('"a$x"', f"a{ANY}"),
    "a pattern": ("a*b?", f"a{ANY}b{ONE}"),
    "brackets": ("r[l-n]", f"r{ANY}"),
    "home": ("~/x", f"{ANY}/x"),
    "a path of zsh": ("=ls", f"{ANY}ls"),
    "an assignment": ("--a=b", "--a=b"),
    "empty braces": ("{}", "{}"),
    "a process": ("<(ls)", ANY),
    "arithmetic": ('"$((1 + (2)))"', ANY),
    "an expansion": ('"${x:-b c}"', ANY),
    "nothing": ("''", ""),
}


@pytest.mark.parametrize(("text", "shape"), SHAPES.values(), ids=SHAPES)
def test_shapes(text: str, shape: str) -> None:
    found = word(text)
    assert (found.spelling, found.shape, found.is_split) == (text, shape, False)


@pytest.mark.parametrize("text", ["$x", "a$x", "${x}", "$(ls)", "`ls`", '"$@"', '"${a[@]}"', "{a,b}", '"$x[1]"', "$1"])
def test_what_may_be_many_words(text: str) -> None:
    assert word(text).is_split


UNCLEAR = {
    "a quote that is not closed": "'a",
    "a double quote that is not closed": '"a',
    "two quotes in a row": "'a''b'",
    "a brace without another": "a}",
    "a brace that is not closed": "{a",
    "old arithmetic": "$[1]",
    "a subshell in a substitution": "$((a); (b))",
    "quotes in arithmetic": "$((1 + '2'))",
    "an expansion that is not closed": "${x",
    "a value that runs": "${x@P}",
    "a flag of zsh": "${(e)x}",
    "an escaped quote in ANSI quotes": "$'a\\'b'",
    "beyond ASCII": "é",
    "continued": "a\\\nb",
    "a dollar sign before a continued line": '"$\\\n(a)"',
    "a control character": "a\x01",
    "a backslash at the end": "a\\",
    "a group of a pattern": "@(a)",
    "nested too deep": "$(" * 20 + "a" + ")" * 20,
    "expansions nested too deep": "${x:-" * 5000,
    "arithmetic nested too deep": "$((" * 5000,
}


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR)
def test_what_is_given_up(text: str) -> None:
    with pytest.raises(UnclearError):
        word(text)


@pytest.mark.parametrize(
    "text", ["a*" * 500, "\\a" * 500, "''\\a" * 300, '"$x' + "$y" * 500 + '"', '"' + "\\a" * 500 + '"']
)
def test_every_piece_of_a_word_is_paid_for(text: str) -> None:
    with pytest.raises(TooMuchError):
        read_loosely(f"a {text}", Effort(300))
