from __future__ import annotations

import os
import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.shell_line import (
    DEEPEST_SUBSTITUTION,
    LONGEST_LINE,
    MOST_WORDS,
    SimpleCommand,
    Word,
    parse,
)

if TYPE_CHECKING:
    from pathlib import Path


def lit(*texts: str) -> tuple[Word, ...]:
    return tuple(Word(text) for text in texts)


def unsure(text: str) -> Word:
    return Word(text, literal=False)


def run(*texts: str) -> SimpleCommand:
    return SimpleCommand(lit(*texts))


A, B, D = run("a"), run("b"), run("docker", "ps")


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        pytest.param("", (), id="empty"),
        pytest.param(" \t\n\n", (), id="blank"),
        pytest.param("# only a comment; b", (), id="comment alone"),
        pytest.param("docker ps", (D,), id="one command"),
        pytest.param("  docker\t ps  ", (D,), id="blanks around"),
        pytest.param("docker ps && b", (D, B), id="and"),
        pytest.param("docker ps&&b", (D, B), id="and without blanks"),
        pytest.param("docker ps || b", (D, B), id="or"),
        pytest.param("docker ps; b", (D, B), id="semicolon"),
        pytest.param("docker ps | b", (D, B), id="pipe"),
        pytest.param("docker ps & b", (D, B), id="background"),
        pytest.param("docker ps\nb", (D, B), id="newline"),
        pytest.param("docker ps;", (D,), id="semicolon at the end"),
        pytest.param("docker ps &", (D,), id="background at the end"),
        pytest.param("docker ps &&\n\n b", (D, B), id="newlines after and"),
        pytest.param("docker ps | # why\n b", (D, B), id="comment after pipe"),
        pytest.param("docker ps # ; c\nb", (D, B), id="comment ends with its line"),
        pytest.param("docker ps \\\n  -q", (run("docker", "ps", "-q"),), id="continued line"),
        pytest.param("docker ps \\\n&& b", (D, B), id="operator on the continued line"),
        pytest.param("dock''er 'ps'", (D,), id="quotes inside a word"),
        pytest.param(r"d\ocker p\s", (D,), id="backslashes inside a word"),
        pytest.param("a 'b; c' \"d && e\"", (run("a", "b; c", "d && e"),), id="operators in quotes"),
        pytest.param(r'a "\$x \"y\" \\ \n \`"', (run("a", '$x "y" \\ \\n `'),), id="escapes in double quotes"),
        pytest.param(r"a 'x\' \; \ ", (run("a", "x\\", ";", " "),), id="escapes outside quotes"),
        pytest.param("a \"x\ny\" 'x\ny'", (run("a", "x\ny", "x\ny"),), id="newline in quotes"),
        pytest.param('a "x \\\ny"', (run("a", "x y"),), id="continued line in quotes"),
        pytest.param("a '' \"\"", (run("a", "", ""),), id="empty words"),
        pytest.param("a 'é' \"日本\"", (run("a", "é", "日本"),), id="beyond ASCII in quotes"),
        pytest.param("a --b=c x:y 1% a@b", (run("a", "--b=c", "x:y", "1%", "a@b"),), id="plain characters"),
        pytest.param("a $x", (SimpleCommand((Word("a"), unsure("$x"))),), id="variable"),
        pytest.param('a "${x} y"', (SimpleCommand((Word("a"), unsure('"${x} y"'))),), id="variable in quotes"),
        pytest.param('a "$x:/y"', (SimpleCommand((Word("a"), unsure('"$x:/y"'))),), id="variable before a path"),
        pytest.param("a *.c", (SimpleCommand((Word("a"), unsure("*.c"))),), id="glob"),
        pytest.param("a ~/c", (SimpleCommand((Word("a"), unsure("~/c"))),), id="tilde"),
        pytest.param("a =b", (SimpleCommand((Word("a"), unsure("=b"))),), id="path of a command in zsh"),
        pytest.param("a b#c", (SimpleCommand((Word("a"), unsure("b#c"))),), id="hash in a word"),
        pytest.param("$x ps", (SimpleCommand((unsure("$x"), Word("ps"))),), id="variable as command"),
        pytest.param("$(a)", (A, SimpleCommand((unsure("$(a)"),))), id="substitution as command"),
        pytest.param("b $(a)", (A, SimpleCommand((Word("b"), unsure("$(a)")))), id="substitution"),
        pytest.param('b "$(a; b)"', (A, B, SimpleCommand((Word("b"), unsure('"$(a; b)"')))), id="list in quotes"),
        pytest.param(
            "b $(a $(b))",
            (B, SimpleCommand((Word("a"), unsure("$(b)"))), SimpleCommand((Word("b"), unsure("$(a $(b))")))),
            id="substitution in a substitution",
        ),
        pytest.param(
            'b "$(a ")")"',
            (run("a", ")"), SimpleCommand((Word("b"), unsure('"$(a ")")"')))),
            id="parenthesis in nested quotes",
        ),
        pytest.param("X=1 docker ps", (SimpleCommand(lit("docker", "ps"), lit("X=1")),), id="assignment before"),
        pytest.param("X=1", (SimpleCommand((), lit("X=1")),), id="assignment alone"),
        pytest.param("X=$(a)", (A, SimpleCommand((), (unsure("X=$(a)"),))), id="substitution in an assignment"),
        pytest.param("env X=1 a", (run("env", "X=1", "a"),), id="assignment as argument"),
        pytest.param("docker ps 2>&1", (D,), id="duplicated descriptor"),
        pytest.param("docker ps >/dev/null 2>/dev/null </dev/null", (D,), id="null device"),
        pytest.param("docker ps > f", (SimpleCommand(lit("docker", "ps"), (), lit("f")),), id="written file"),
        pytest.param("docker ps 2>>f", (SimpleCommand(lit("docker", "ps"), (), lit("f")),), id="appended file"),
        pytest.param("docker ps < f", (SimpleCommand(lit("docker", "ps"), (), lit("f")),), id="read file"),
        pytest.param("docker > f ps", (SimpleCommand(lit("docker", "ps"), (), lit("f")),), id="file in between"),
        pytest.param("a > $x", (SimpleCommand(lit("a"), (), (unsure("$x"),)),), id="unknown file"),
        pytest.param("a >/dev/nul''l", (A,), id="quotes in the null device"),
    ],
)
def test_reads(line: str, commands: tuple[SimpleCommand, ...]) -> None:
    assert parse(line) == commands


REFUSED = {
    "subshell": "(a)",
    "group": "{ a; }",
    "negation": "! a",
    "if": "if a; then b; fi",
    "for": "for x in a; do b; done",
    "while": "while a; do b; done",
    "case": "case a in a) b;; esac",
    "repeat of zsh": "repeat 2 a",
    "time": "time a",
    "dash of zsh": "- a",
    "coproc": "coproc a",
    "quoted reserved word": "'if' a",
    "function with parentheses": "a() { b; }",
    "function with keyword": "function a { b; }",
    "double brackets": "[[ a ]]",
    "bracket": "[ a ]",
    "arithmetic command": "((a))",
    "arithmetic": "a $((1+1))",
    "old arithmetic": "a $[1+1]",
    "backquotes": "a `b`",
    "backquotes in quotes": 'a "`b`"',
    "escape quotes": "$'a' b",
    "translated quotes": '$"a" b',
    "process substitution": "a <(b)",
    "process substitution of zsh": "a =(b)",
    "here-document": "a <<E\n$(b)\nE",
    "here-string": "a <<< b",
    "array": "x=(a b)",
    "subscript": "x[1;b]=2 a",
    "appended assignment": "x+=1 a",
    "assignment to a number": "1=x a",
    "quoted assignment": "'x=1' a",
    "declaration": "export x[1]=a",
    "braces as command": "{a,b} c",
    "braces as argument": "a {b,c}",
    "default value": "a ${x:-$(b)}",
    "flags of zsh": "a ${(e)x}",
    "subscript of zsh": "a $x[1]",
    "subscript in quotes": 'a "$x[1]"',
    "modifier of zsh": "a $x:h",
    "special parameter": "a $?",
    "lone dollar": "a $",
    "glob qualifier": "a *(e:b:)",
    "extended glob": "a @(b)",
    "bang in double quotes": 'a "b!"',
    "bang": "a !b",
    "case separator": "a;;b",
    "pipe with errors": "a |& b",
    "zsh background": "a &! b",
    "zsh background with pipe": "a &| b",
    "output and errors": "a &> f",
    "output and errors to a file": "a >& f",
    "closed descriptor": "a 2>&-",
    "two digits": "a 10>f",
    "overwriting": "a >| f",
    "overwriting of zsh": "a >! f",
    "read and write": "a <> f",
    "number range of zsh": "a <1-5>",
    "redirection alone": "> f",
    "redirection first": "</dev/null a",
    "redirection that touches": "a>f",
    "descriptor that touches": "a 2>&1b",
    "file missing": "a >",
    "empty command": "a; ; b",
    "operator first": "&& a",
    "operator last": "a &&",
    "pipe last": "a |",
    "empty substitution": "a $()",
    "file substitution": "a $(<f)",
    "comment in substitution": "a $(b # c\n)",
    "open substitution": "a $(b",
    "open single quote": "a 'b",
    "open double quote": 'a "b',
    "stray parenthesis": "a )",
    "backslash at the end": "a \\",
    "word continued": "a b\\\nc",
    "operator continued": "a &\\\n& b",
    "comment after continuation": "a \\\n#b\nc",
    "comment that seems continued": "a # b\\\nc",
    "comment without a blank": "a;#b",
    "doubled single quotes": "a 'b''c'",
    "NUL": "a\0b",
    "carriage return": "a\rb",
    "carriage return in quotes": "a '\r'",
    "vertical tab": "a\vb",
    "escape": "a '\x1b'",
    "C1 control": "a '\x85'",
    "surrogate": "a '\udc80'",
    "no-break space": "a\xa0b",
    "ideographic space": "a\u3000b",
    "backslash after a wide character": 'a "é\\"',
    "too long": "a " + "b" * LONGEST_LINE,
    "too deep": "a " + "$(a " * (DEEPEST_SUBSTITUTION + 1) + ")" * (DEEPEST_SUBSTITUTION + 1),
}


def test_refuses_more_words_than_anybody_writes() -> None:
    assert len(parse("a;" * MOST_WORDS)) == MOST_WORDS
    for line in (
        "a;" * (MOST_WORDS + 1),
        "a " * (MOST_WORDS + 1),
        "a >b;" * MOST_WORDS,
        "$(" + "a;" * MOST_WORDS + "b)",
    ):
        with pytest.raises(InvalidTextError, match=f"more than {MOST_WORDS} words"):
            parse(line)


def test_the_same_line_again_gives_the_same() -> None:
    assert parse("a b") is parse("a b")
    assert parse("c") == (run("c"),)
    assert parse("a b") == (run("a", "b"),)
    for _ in range(2):
        with pytest.raises(InvalidTextError, match="touches a word") as caught:
            parse("a (b)")
        assert caught.value.hint
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in REFUSED.items()])
def test_refuses(line: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        parse(line)
    assert caught.value.message.startswith("the shell line is not certain to be read right: ")
    assert caught.value.message.isprintable()
    assert caught.value.hint


def test_the_deepest_substitution_is_still_read() -> None:
    line = "a " + "$(a " * DEEPEST_SUBSTITUTION + ")" * DEEPEST_SUBSTITUTION
    assert len(parse(line)) == DEEPEST_SUBSTITUTION + 1


def test_a_refusal_says_what_and_where() -> None:
    with pytest.raises(InvalidTextError) as caught:
        parse("a && (b)")
    assert caught.value.message == (
        "the shell line is not certain to be read right: a ( that touches a word, at character 6"
    )


def test_a_command_prints_as_people_write_it() -> None:
    (command,) = parse("X=1 docker 'a b' $x '\u202e'")
    assert str(command) == "X=1 docker 'a b' $x '\\u202e'"


# No real command can be spelled with these; "a", "b" and "docker" are stubs.
TOKENS = (
    *(" ", " ", " ", " ", " ", "a", "a", "b", "b", "docker", "x", "1", "2", "A=", "A=b", "-", ",", ":"),
    *("&&", "||", ";", "|", "&", "\n", "\n", "#", " # ", "\\", "\\\n", "'", "'", '"', '"', "''", "$", "$x", "${x}"),
    *(
        "$(",
        "$(",
        ")",
        ")",
        "(",
        "{",
        "}",
        "`",
        "<",
        ">",
        ">>",
        "<<",
        ">&",
        "2>&1",
        " >/dev/null",
        "&>",
        "<<a\n",
        "\na\n",
    ),
    *(
        "!",
        "=",
        "==",
        "~",
        "*",
        "?",
        "[",
        "]",
        "^",
        "%",
        "@",
        "+",
        "\t",
        "é",
        "ā",
        "Ă",
        "\u3000",
        "export ",
        "if ",
        "{a,b}",
    ),
)
ENDS = (
    *("a b", " a", "'a'", '"a"', '"$x"', "$(a)", "$(b", ")", " 'b ", '" $(', '"', "'", "docker a", " 1", "a=b", "x"),
    *(
        " && ",
        " || ",
        "; ",
        " | ",
        " & ",
        "\n",
        " \\\n",
        " # b\n",
        " >/dev/null",
        " 2>&1",
        " > x",
        " < f",
        "A=1 ",
        '"\\$x',
    ),
)


def any_line(source: random.Random) -> str:
    """Return a line that is nasty, or one that is nearly well-formed, so that both sides of the border are met."""
    tokens = source.choice((TOKENS, TOKENS + ENDS * 2, ENDS))
    return source.choice(("", "a ", "docker b ")) + "".join(source.choices(tokens, k=source.randint(1, 9)))


class Shell:
    """Runs lines in a real shell where all commands are stubs that note their words."""

    def __init__(self, name: str, program: str, root: Path) -> None:
        self.name = name
        self.command = [program, *(["--norc", "--noprofile"] if name == "bash" else [])]
        self.log, self.here, self.stubs = root / "log", root / "here", root / "stubs"
        self.stubs.mkdir()
        note = 'printf "%s\\0" "$#" "${A-}" "$@" >>"$NOTES"'
        for stub in ("a", "b", "docker"):
            path = self.stubs / stub
            path.write_text(f'#!/bin/sh\nset -- "${{0##*/}}" "$@"\n{note}\n')
            path.chmod(0o755)
        for handler, file in (("command_not_found_handle", "start.bash"), ("command_not_found_handler", ".zshenv")):
            (root / file).write_text(f"{handler}() {{ {note}; }}\n")
        self.environment = {
            "PATH": str(self.stubs),
            "HOME": str(self.here),
            "ZDOTDIR": str(root),
            "NOTES": str(self.log),
            "BASH_ENV": str(root / "start.bash"),
            "x": "p; b q*",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, line: str) -> tuple[list[tuple[str, ...]], bool, set[str]]:
        """Return the words of each command that ran, whether one saw an assignment, and the files made."""
        shutil.rmtree(self.here, ignore_errors=True)
        self.here.mkdir()
        (self.here / "f").touch()
        self.log.write_bytes(b"")
        alive, inherited = os.pipe()
        try:
            subprocess.run(
                [*self.command, "-c", line],
                env=self.environment,
                cwd=self.here,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[inherited],
                check=False,
                timeout=20,
            )
        finally:
            os.close(inherited)
            # Ends when the last process in the background has closed its copy.
            os.read(alive, 1)
            os.close(alive)
        ran, assigned = self.notes()
        return ran, assigned, {path.name for path in self.here.iterdir()} - {"f"}

    def notes(self) -> tuple[list[tuple[str, ...]], bool]:
        fields = self.log.read_bytes().decode(errors="surrogateescape").split("\0")[:-1]
        ran: list[tuple[str, ...]] = []
        assigned = False
        while fields:
            size, value, words = int(fields[0]), fields[1], fields[2:]
            assigned |= bool(value)
            ran.append(tuple(words[:size]))
            fields = words[size:]
        return ran, assigned


def certainty(command: SimpleCommand) -> tuple[bool, int]:
    """Return whether all words are known, and how many are before the first that is not."""
    sure = next((at for at, word in enumerate(command.words) if not word.literal), len(command.words))
    return sure == len(command.words), sure


def may_be(command: SimpleCommand, words: tuple[str, ...]) -> bool:
    whole, sure = certainty(command)
    expected = tuple(word.text for word in command.words[:sure])
    return bool(command.words) and (words if whole else words[:sure]) == expected


def unexplained(commands: tuple[SimpleCommand, ...], ran: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return what ran although no command that was read says so; each command can run once."""
    # The most certain first, so that a command that could be anything explains only what nothing else does.
    left = sorted(commands, key=certainty, reverse=True)
    strange = []
    for words in ran:
        found = next((command for command in left if may_be(command, words)), None)
        if found is None:
            strange.append(words)
        else:
            left.remove(found)
    return strange


def surprise(shell: Shell, line: str) -> object:
    """Return how the shell differs from what was read; None if it does not, or if the line was refused."""
    try:
        commands = parse(line)
    except InvalidTextError:
        return None
    ran, assigned, made = shell.run(line)
    strange = unexplained(commands, ran)
    if strange:
        return strange
    if assigned and not any(command.assignments for command in commands):
        return "an assignment that was not read"
    if made and not any(command.redirects for command in commands):
        return made
    return None


@pytest.fixture(params=["bash", "dash", "zsh"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    return Shell(request.param, program, tmp_path)


def test_the_stubs_notice_what_runs(shell: Shell) -> None:
    assert shell.run("A=1 docker 'p q' && b > made") == ([("docker", "p q"), ("b",)], True, {"made"})


def test_a_wrong_reading_is_noticed() -> None:
    assert unexplained(parse("docker a"), [("docker", "a"), ("b",)]) == [("b",)]
    assert unexplained(parse("docker 'a b'"), [("docker", "a", "b")]) == [("docker", "a", "b")]
    assert unexplained(parse("docker $x; b"), [("b",), ("docker", "p;", "b")]) == []
    assert unexplained(parse("$x | a $x $x"), [("a", "p"), ("p",)]) == []


def test_shells_run_nothing_that_was_not_read(shell: Shell) -> None:
    source = random.Random(6)  # noqa: S311 -- data for a test, the same each time
    lines: list[str] = []
    while len(lines) < 300:
        line = any_line(source)
        if accepted(line):
            lines.append(line)
    assert {line: what for line in lines if (what := surprise(shell, line)) is not None} == {}


def accepted(line: str) -> bool:
    try:
        return bool(parse(line))
    except InvalidTextError:
        return False


@given(st.text())
@example("a $(")
@example("a 2>")
@example('a "\\')
@example("a ${")
def test_no_text_raises_anything_but_our_own_error(line: str) -> None:
    try:
        commands = parse(line)
    except InvalidTextError:
        return
    assert all(command.words or command.assignments for command in commands)


@given(st.lists(st.sampled_from(TOKENS)).map("".join))
def test_no_shell_line_raises_anything_but_our_own_error(line: str) -> None:
    try:
        commands = parse(line)
    except InvalidTextError:
        return
    assert all(str(command).isprintable() for command in commands)
