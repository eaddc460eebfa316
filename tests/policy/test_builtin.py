from __future__ import annotations

import shutil
import subprocess

import pytest

from stockade.policy.builtin import BUILTINS, has_subscript, is_builtin, why_not_plain
from stockade.policy.shell_line import Word, parse

PLAIN = {
    "a program": "docker ps 'a[$(x)]' $y",
    "a program by its path": "/bin/test -v x",
    "nothing": ":",
    "words for echo": "echo done $x '[ok]' *.txt",
    "a directory": 'cd "$dir"',
    "a way back": "cd -",
    "where": "pwd -P",
    "a signal": "kill -9 $pid",
    "what is it": "type -a python",
    "leave": "exit",
    "leave with a number": "exit 12",
    "wait for all": "wait",
    "a file test": "test -f x",
    "two tests": "test -d x -a '!' -L y",
    "strings": "test x '=' y",
    "numbers": "test 3 -gt 2",
    "a format": r"printf '%s: %-10.3s\n' a $b",
    "a percent sign": "printf '100%%'",
}

WITH_A_PLAIN_FORM = frozenset(
    (":", "true", "false", "echo", "pwd", "cd", "kill", "times", "type", "which", "whence", "where", "test", "printf")
)
#: No line with these in the place of a command is read with certainty.
IN_NO_LINE = frozenset(("declare", "export", "float", "integer", "local", "readonly", "typeset", "-", "nocorrect", "["))
NOT_PLAIN = {
    # What was reported.
    "a subscript by a variable": "test -v 'c[$'\"$Z\"'(CMD)]'",
    "the same by printf": "printf -v 'c[$'\"$Z\"'(CMD)]' x",
    "an assignment by printf": "printf -v PATH /evil",
    "an element that names a program": "printf -v 'BASH_CMDS[ls]' /evil",
    "a subscript that follows a variable": "printf -v 'a[b]' x",
    "bash 5.3 in a subscript": "echo 'a[${ CMD; }]'",
    "read": "read PATH",
    "getopts": "getopts a PATH",
    "a variable": "test -v x",
    "an unknown operand": 'test "$x"',
    "an unknown operator": "test $a x",
    # What zsh evaluates.
    "arithmetic by test": "test x -eq 1",
    "arithmetic on a terminal": "test -t x",
    "a number by printf": "printf %d x",
    "the last word, as a number": "printf %d _",
    "a width by printf": "printf '%*s' x y",
    "a time by printf": "printf '%(%Y)T' x",
    "a position by printf": "printf '%1$d' x",
    "an escape that becomes a percent sign": r"printf '\x25d' x",
    "an octal one": r"printf '\045d' x",
    "an unknown format": "printf $x y",
    "a format from a pattern": "printf * y",
    "options of printf": "printf -- %s x",
    "leave with a word": "exit x",
    "leave with a variable": "exit $x",
    # All others.
    **{f"`{name}`": f"{name} x" for name in sorted(BUILTINS - WITH_A_PLAIN_FORM - IN_NO_LINE)},
    "a job": "%1",
    "wait for one": "wait -p x 1",
}


@pytest.mark.parametrize("line", PLAIN.values(), ids=PLAIN)
def test_plain(line: str) -> None:
    (command,) = parse(line)
    assert not why_not_plain(command)


@pytest.mark.parametrize("line", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_not_plain(line: str) -> None:
    (command,) = parse(line)
    assert f"`{command.words[0].text}`" in why_not_plain(command)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (Word("a[1]"), True),
        (Word("x=a[1]"), True),
        (Word("a[1][2]"), True),
        (Word("[ok]"), False),
        (Word("see [1]"), False),
        (Word("a"), False),
        (Word("$x'[1]'", literal=False), True),
        (Word("[a-z]*", literal=False), True),
        (Word("$x", literal=False), False),
    ],
)
def test_a_subscript_stands_behind_a_name(word: Word, *, expected: bool) -> None:
    assert has_subscript(word) is expected


def test_what_is_not_known_by_name_is_a_program() -> None:
    assert not is_builtin("docker")
    assert not is_builtin("/bin/[")


@pytest.mark.parametrize(
    "words",
    [
        ("bash", "--norc", "-c", "compgen -b"),
        ("zsh", "-fc", "print -l -- ${(k)builtins}"),
    ],
    ids=["bash", "zsh"],
)
def test_every_builtin_of_the_installed_shells_is_known(words: tuple[str, ...]) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}")
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert listed
    assert set(listed) <= BUILTINS
