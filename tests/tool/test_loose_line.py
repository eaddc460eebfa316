from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.loose_line import read_loosely
from stockade.tool.word_reader import UnclearError


def read(line: str) -> list[str]:
    """Read the commands of a line, each as its words are spelled."""
    found = read_loosely(line, Effort())
    return [" ".join(word.spelling for word in command.words) for command in found if command.words]


READ = {
    "nothing": (" \n # a\n", []),
    "operators": ("a && b || c; d & e | f |& g\nh", list("abcdefgh")),
    "redirections anywhere": ("<i 2>&1 a >o b 2>>e c <<<x >|p <>q", ["a b c"]),
    "both streams": ("a b &>o; c &>>p", ["a b", "c"]),
    "a closed stream": ("a <&- 2>&-", ["a"]),
    "assignments": ("A=1 b+=2 c[0]=3 d x=1; E=$(f)", ["d x=1", "f"]),
    "an array": ("a=(b $(c)\n# d\n'e f') g", ["c", "g"]),
    "an array of export": ("export a=(b c)", ["export a="]),
    "a subshell": ("(a; b) >o | c", ["a", "b", "c"]),
    "a group": ("{ a; b; } && c", ["a", "b", "c"]),
    "not": ("! a", ["a"]),
    "time": ("time -p -- a; time b; time", ["a", "b"]),
    "time of a group": ("time (a)", ["a"]),
    "a condition": ("if a; then b\nelif c; then d; else e; fi >o", list("abcde")),
    "a loop": ("while a; do b; done < f", ["a", "b"]),
    "a loop until": ("until a\ndo b\ndone", ["a", "b"]),
    "a loop over words": ("for f in a $(b) *; do c $f; done", ["b", "c $f"]),
    "a loop over arguments": ("for f; do a; done", ["a"]),
    "a loop over arguments, on lines": ("for f\ndo a; done", ["a"]),
    "a loop that counts": ("for ((i=0; i<3; i++)); do a; done", ["i=0", "i", "3", "i++", "a"]),
    "arithmetic, which is a subshell elsewhere": ("((a b)) && c", ["a b", "c"]),
    "a test": ("[[ $a == b && -n $c || ( x =~ ^(y|z)$ ) ]] && d", ["-n $c", "x =~ ^", "y", "z", "]]", "d"]),
    "a function": ("f() { a; }; f b", ["a", "f b"]),
    "a function of another form": ("function f { a; }; function g-h () {\nb\n}; f c", ["a", "b", "f c"]),
    "a function on lines": ("f ()\n{\na\n}", ["a"]),
    "a here-document": ("a <<E b\n$(c) `d` ${x:-$(e)} 'it\nE\nf", ["a b", "c", "d", "e", "f"]),
    "a quoted here-document": ("a <<'E'\n$(c) `\nE\nf", ["a", "f"]),
    "an indented here-document": ('a <<-"E" | b\n\tc\n\tE\nd', ["a", "b", "d"]),
    "two here-documents": ("a <<A <<\\B\nx\nA\n$(y)\nB\nc", ["a", "c"]),
    "a comment": ("a # it's; b\nc", ["a", "c"]),
    "continued": ("a \\\n  b", ["a b"]),
    "a bracket": ('[ -f "$x" ] && a', ['[ -f "$x" ]', "a"]),
}


@pytest.mark.parametrize(("line", "commands"), READ.values(), ids=READ)
def test_commands(line: str, commands: list[str]) -> None:
    assert sorted(read(line)) == sorted(commands)


def test_every_substitution_is_read() -> None:
    found = read('a $(b) "$(c "$(d)")" `e \\`f\\`` ${x:-$(g)} <(h) > >(i)')
    assert {command.split()[0] for command in found} == set("abcdefghi")
    assert "b" in read("a \"$(b <<'E'\nit's\nE\n)\"")


UNCLEAR = {
    "case": "case a in b) c;; esac",
    "a coprocess": "coproc a",
    "a function of no name": "function { a; }",
    "a function of more names": "function f g { a; }",
    "a function without a brace": "function f a",
    "repeat of zsh": "repeat 2 a",
    "a prefix of zsh": "nocorrect a",
    "a dash of zsh": "- a",
    "a loop of zsh": "for i (a b) c",
    "two variables of zsh": "for i j in a b; do c; done",
    "a block after a condition": "if (a) b",
    "a brace among words": "{ a }",
    "what always runs": "{ a; } always { b; }",
    "words after a group": "{ a; } b",
    "a function without a name": "() { a; } b",
    "a function of two names": "f g () { a; }",
    "an end of a case": "a;; b",
    "a job that is let go": "a &! b",
    "a job that is let go by a bar": "a &| b",
    "a file that is overwritten in zsh": ">! a b",
    "a pattern of numbers": "a<1-2>b",
    "a word after both streams": "a &>o b",
    "a subscript with blanks": "a[1 + 1]=2 b",
    "a keyword behind an assignment": "A=1 if a; then b; fi",
    "a keyword behind a redirection": ">o { a; }",
    "an alias in a table": "BASH_ALIASES[a]=b",
    "a function in a table": "functions[a]=b",
    "an array among arguments": "a b=(c)",
    "arithmetic with a variable": "(($a))",
    "an option of time": "time -f x a",
    "a here-document without an end": "a <<E\nb",
    "an end that only begins so": "a <<E\nEx\nE",
    "an end that is continued": "a <<E\nb\\\nE\nE",
    "an end that is made": "a <<END\nEN\\\nD\nEND",
    "an end that is unknown": "a <<$x\n$x",
    "a here-document around a substitution": "a <<E $(b\nE\n)\nE",
    "a here-document that ends with its substitution": "a $(b <<E)",
    "a substitution that is not closed": "a $(b",
    "a parenthesis too many": "a)",
    "a comment with a backslash": "a # b\\\nc",
    "a comment in a substitution": "a $(b # it's\n)",
    "a comment after a continued line": "a \\\n# b",
}


@pytest.mark.parametrize("line", UNCLEAR.values(), ids=UNCLEAR)
def test_what_is_given_up(line: str) -> None:
    with pytest.raises(UnclearError):
        read(line)


@pytest.mark.parametrize("line", ["[[ a ]]", "((a))", "function f { a; }"])
def test_what_another_shell_may_not_know_is_given_up_for_it(line: str) -> None:
    assert read(line)
    with pytest.raises(UnclearError):
        read_loosely(line, Effort(), strict=True)


@pytest.mark.parametrize("text", ["a ", "a;", "\n", "a\n", ">a ", "{ ", "if ", "# a\n", "a=b ", "for x in a;", "a<<E "])
def test_every_word_and_line_is_paid_for(text: str) -> None:
    with pytest.raises(TooMuchError):
        read_loosely(text * 500 + "a", Effort(300))


PIECES = st.lists(
    st.sampled_from(["a", " ", "'", '"', "$(", ")", "`", "{", "}", ";", "\n", "<<E", "\nE\n", "if", "[[", "#"])
)


@given(PIECES.map("".join) | st.text())
def test_no_line_breaks_it(line: str) -> None:
    try:
        read_loosely(line, Effort())
    except (UnclearError, TooMuchError):
        return
