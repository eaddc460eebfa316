from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.loose_word import ANY, ONE, UNKNOWN, LooseWord
from stockade.tool.rough_line import rough_commands


def read(line: str) -> list[list[str]]:
    return [[word.shape for word in words] for words in rough_commands(line, Effort())]


LINES = {
    "words": ("a b; c", [["a", "b"], ["c"]]),
    "quotes mean nothing": ("r'm' \"x;y\"", [["rm", "x"], ["y"]]),
    "backslashes mean nothing": ("r\\m a\\\nb", [["rm", "ab"]]),
    "every operator": ("a|b&c<d>e\n(f)", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
    "a pattern": ("/bin/r? *.c", [[f"/bin/r{ONE}", f"{ANY}.c"]]),
    "brackets": ("r[m] a] [b", [[f"r{ANY}", ANY, ANY]]),
    "what may be many words": ("$x r{m,} }", [[ANY, ANY, ANY]]),
    "a path of zsh": ("=rm ~x", [[ANY, ANY], ["rm", ANY]]),
    "backquotes touch words": ("r`x`m", [[ANY], [ANY], [ANY]]),
    "a value": ("f[k]=rm x", [[f"f{ANY}=rm", "x"], ["rm", "x"]]),
    "beyond ASCII": ("aérm", [["aérm"], ["a", "rm"]]),
    "nothing": (" ;; ", []),
}


@pytest.mark.parametrize(("line", "expected"), LINES.values(), ids=LINES)
def test_runs_of_words(line: str, expected: list[list[str]]) -> None:
    assert read(line) == expected


@pytest.mark.parametrize("line", ["/bin/(r)m", "env (r)m", "/bin/@(rm)", "/bin/r(m|n)"])
def test_a_parenthesis_that_touches_a_word_may_make_anything(line: str) -> None:
    assert next(iter(rough_commands(line, Effort()))) == (UNKNOWN,)


@pytest.mark.parametrize("line", ["(a)", "f() { a; }", "$(a)", "<(a)", "( a ) && b"])
def test_a_parenthesis_alone_makes_nothing(line: str) -> None:
    assert (UNKNOWN,) not in tuple(rough_commands(line, Effort()))


def test_what_may_be_many_words_is_marked() -> None:
    (words,) = rough_commands("$x {} a*", Effort())
    assert words == (
        LooseWord("$x", ANY, is_split=True),
        LooseWord("{}", "{}"),
        LooseWord("a*", f"a{ANY}", is_glob=True),
    )


def test_words_are_paid_for() -> None:
    with pytest.raises(TooMuchError):
        tuple(rough_commands("a " * 100, Effort(100)))
    with pytest.raises(TooMuchError):
        tuple(rough_commands("a=b " * 50, Effort(500)))
