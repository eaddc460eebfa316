from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.cli import run
from stockade.cli.options import Options, Reader
from stockade.cli.parser import Parser, UsageError

#: What the command takes, what it does not take, and values that fit some and not others.
WORDS = [
    "-c",
    "-t",
    "--terminal",
    "-C",
    "--directory",
    "-d",
    "--timeout",
    "--memory",
    "--processes",
    "-s",
    "--settings",
    "--sandbox",
    "--no-sandbox",
    "--no-debug",
    "--sandbox-mode",
    "--allow-write",
    "--deny-read",
    "--publish",
    "--violations",
    "-h",
    "--help",
    "--unknown",
    "--sandbox-mode=auto",
    "--timeout=2",
    "--timeout=-2",
    "--debug=1",
    "--processes=",
    "-cx",
    "-dt",
    "-5",
    "-",
    "strict",
    "3",
    "1.5",
    "true",
    "a=b",
]


def _parsed(*words: str) -> dict[str, object] | None:
    """Return what the full parser makes of it, ``None`` where it complains or tells its help."""
    parser, options = Parser(prog="x"), run.Options()
    run.configure(parser)
    try:
        return vars(parser.read(words, options))
    except (UsageError, SystemExit):
        return None


def _read(*words: str) -> dict[str, object] | None:
    reader, options = Reader("x"), run.Options()
    run.configure(reader)  # type: ignore[arg-type] # which takes what a parser is told
    read = reader.read(words, options)
    assert read or vars(options) == {}
    return vars(options) if read else None


@given(st.lists(st.sampled_from(["", *WORDS]) | st.text()))
def test_what_is_read_quickly_is_what_the_parser_reads(words: list[str]) -> None:
    read = _read(*words)
    assert read is None or read == _parsed(*words)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="nothing"),
        pytest.param(("-c", "true"), id="a line"),
        pytest.param(("--settings", "file.json", "-c", "a | b"), id="a settings file"),
        pytest.param(("-C", "there", "-d", "-t"), id="short flags"),
        pytest.param(("--timeout", "1.5", "--processes=3", "--memory", "1G"), id="limits"),
        pytest.param(("--allow-write", "a", "--allow-write", "b", "--deny-read=c"), id="lists"),
        pytest.param(("--no-sandbox", "--sandbox", "--sandbox-mode", "strict"), id="switches"),
        pytest.param(("--publish", "0:1", "--publish=2:3", "--violations", "full"), id="network"),
    ],
)
def test_plain_command_lines_are_read(words: tuple[str, ...]) -> None:
    assert _read(*words) == _parsed(*words) != None  # noqa: E711 - all three are compared


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--help",), id="help"),
        pytest.param(("--unknown",), id="an unknown flag"),
        pytest.param(("true",), id="a stray word"),
        pytest.param(("-c",), id="no value"),
        pytest.param(("-c", ""), id="an empty value"),
        pytest.param(("-c", "-t"), id="a flag for a value"),
        pytest.param(("--debug=yes",), id="a value for none"),
        pytest.param(("--processes", "many"), id="not a number"),
        pytest.param(("--sandbox-mode", "loose"), id="not a choice"),
    ],
)
def test_everything_else_is_left_to_the_parser(words: tuple[str, ...]) -> None:
    assert _read(*words) is None


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        pytest.param(("target",), {}, id="a word without a flag"),
        pytest.param(("--level",), {"nargs": "?"}, id="an optional value"),
        pytest.param(("--level",), {"action": "count"}, id="another action"),
    ],
)
def test_a_command_with_unusual_options_is_left_to_the_parser(flags: tuple[str, ...], options: dict[str, str]) -> None:
    reader = Reader("x")
    reader.add_argument(*flags, **options)
    assert not reader.read((), Options())


@pytest.mark.parametrize(
    ("words", "own", "command"),
    [
        pytest.param("ls -l", "", "ls -l", id="words"),
        pytest.param("-- ls -l", "", "ls -l", id="behind --"),
        pytest.param("-- -weird", "", "-weird", id="a word like an option, behind --"),
        pytest.param("--timeout 5 ls -l", "--timeout 5", "ls -l", id="a value of ours"),
        pytest.param("--timeout=5 ls --timeout 6", "--timeout=5", "ls --timeout 6", id="a value with ="),
        pytest.param("-d -C there -- ls -- x", "-d -C there", "ls -- x", id="only the first -- is ours"),
        pytest.param("ls -- x", "", "ls -- x", id="a -- of the command"),
        pytest.param("-c line --timeout 5", "-c line --timeout 5", "", id="options behind a line"),
        pytest.param("-c line word", "-c line", "word", id="a word behind a line"),
        pytest.param("-dCthere ls", "-dCthere", "ls", id="letters behind one dash, with a value"),
        pytest.param("-dC there ls", "-dC there", "ls", id="letters behind one dash, and a value"),
        pytest.param("-dT ls", "-dT", "ls", id="letters behind one dash"),
        pytest.param("--no-sandbox --sandbox ls", "--no-sandbox --sandbox", "ls", id="switches"),
        pytest.param("--tiemout 5 ls", "--tiemout", "5 ls", id="a slip is ours"),
        pytest.param("-x ls", "-x", "ls", id="an unknown letter is ours"),
        pytest.param("--help ls", "--help", "ls", id="help is ours"),
        pytest.param("--debug=1 ls", "--debug=1", "ls", id="a value for none is ours"),
        pytest.param("- x", "", "- x", id="a single dash is a word"),
        pytest.param("--timeout", "--timeout", "", id="no value"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_where_the_command_begins(words: str, own: str, command: str) -> None:
    reader = Reader("x")
    run.configure(reader)  # type: ignore[arg-type] # which takes what a parser is told
    assert reader.split(words.split()) == (own.split(), command.split())
