from __future__ import annotations

from stockade.tool.loose_word import UNKNOWN, LooseWord, plain
from stockade.tool.possibility import ANYTHING, Possibility


def test_a_possibility_is_written_as_it_is_spelled_from_its_name_on() -> None:
    assert str(Possibility((plain("env"), LooseWord("'a'", "a"), plain("b")), 1)) == "'a' b"


def test_anything_is_words_of_which_nothing_is_known() -> None:
    assert ANYTHING.words == (UNKNOWN,)
    assert ANYTHING.words[0].may_be("rm", is_name=True)
