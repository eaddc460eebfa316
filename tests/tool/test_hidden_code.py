from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.hidden_code import hidden_in_text, hidden_in_value, hidden_in_word, hidden_in_words
from stockade.tool.loose_line import read_loosely
from stockade.tool.loose_word import ANY, LooseWord, plain
from stockade.tool.possibility import ANYTHING, Text


def words(line: str) -> tuple[LooseWord, ...]:
    return read_loosely(line, Effort())[-1].words


@pytest.mark.parametrize(
    "text",
    [
        *(
            "'a[$(b)]'",
            "'a[`b`]'",
            "x='$(b)'",
            "x+='$(b)'",
            "PS4=x",
            "PS4+=x",
            "'P'S4",
            "BASH_ENV=x",
            "BASH_FUNC_f%%=x",
        ),
        *("NULLCMD", "READNULLCMD=x", "histchars=x", "'BASH_CMDS[x]=y'", "'functions[f]=y'", "functions'[f]'=y"),
        *("${functions[f]::=y}", '"${BASH_CMDS[a]:=b}"', "ENV=/dev/stdin", 'ENV="$x"', "GIT_CONFIG_VALUE_0=x"),
        *("GIT_CONFIG_GLOBAL=/dev/fd/3", "'\\44(x)'", "$'\\x24(x)'", 'GIT_PAGER="$x"', "'x${ a; }[0]'", "x='a[0]b[$'"),
    ],
)
def test_words_that_may_run_anything(text: str) -> None:
    (_, word) = words(f"a {text}")
    assert tuple(hidden_in_word(word)) == (ANYTHING,)


@pytest.mark.parametrize(
    "text",
    [
        *("x", "a=b", "'a b'", "'$(b)'", "'a[0]'", "$PS4", "APS4", "functions", "ENV=prod", "'\\440'"),
        *("GIT_CONFIG_GLOBAL=/dev/null", '"${options[0]}"', "ENVIRONMENT=$x", "--options=x"),
    ],
)
def test_words_that_run_nothing(text: str) -> None:
    (_, word) = words(f"a {text}")
    assert tuple(hidden_in_word(word)) == ()


def test_where_no_shell_runs_a_file_for_it_may_be_unknown() -> None:
    (_, word) = words('a ENV="$x"')
    assert tuple(hidden_in_word(word, for_shells=False)) == ()
    assert tuple(hidden_in_word(plain("ENV=/dev/stdin"), for_shells=False)) == (ANYTHING,)


def test_what_programs_run() -> None:
    assert tuple(hidden_in_word(plain("GIT_PAGER=a b"))) == (Text("a b"),)
    assert tuple(hidden_in_word(plain("alias.x=!a b"))) == (Text("a b"),)


def test_values() -> None:
    assert tuple(hidden_in_value(plain("$(a)"))) == (ANYTHING,)
    assert tuple(hidden_in_value(plain("PS4"))) == (ANYTHING,)
    assert tuple(hidden_in_value(LooseWord("$'\\44(a)'", ANY))) == (ANYTHING,)
    assert tuple(hidden_in_value(plain("a $b"))) == ()


@pytest.mark.parametrize("text", ["a[$(b)]", "a[`b`]", "x\na[b[0] + $(c)]", "a[b[0]]a[\n$(c)]", "a[${ b; }]"])
def test_texts_with_a_substitution_in_a_subscript(text: str) -> None:
    assert tuple(hidden_in_text(text)) == (ANYTHING,)


@pytest.mark.parametrize("text", ["a[0] $(b)", '[ "$(b)" ]', "if [[ $(b) ]]", "`a` b[0]", "a]b $(c)", ""])
def test_texts_without(text: str) -> None:
    assert tuple(hidden_in_text(text)) == ()


@pytest.mark.parametrize(
    "line", ["set -A functions f x", "read aliases", "typeset 'functions[f]=x'", "printf -v commands x"]
)
def test_commands_that_set_a_table(line: str) -> None:
    assert tuple(hidden_in_words(words(line), 0, Effort())) == (ANYTHING,)


@pytest.mark.parametrize("line", ["read x", "echo functions", "printf functions x", "printf", "set -- a"])
def test_commands_that_set_no_table(line: str) -> None:
    assert tuple(hidden_in_words(words(line), 0, Effort())) == ()


def test_the_words_of_a_command_that_sets_are_paid_for() -> None:
    with pytest.raises(TooMuchError):
        tuple(hidden_in_words((plain("read"),) * 100, 0, Effort(50)))
