from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.may_match import Possible, may_match

USER = Origin(Layer.USER, "settings.json")


def rules(*texts: str) -> tuple[Sourced[CommandPattern], ...]:
    return tuple(Sourced(CommandPattern.parse(text), USER) for text in texts)


RM = rules("rm:*")

CERTAIN = {
    "plain": "rm x",
    "bare": "rm",
    "quoted": "'rm' x",
    "with quotes inside": "r''m x",
    "escaped": "\\rm x",
    "last of three": "ls && cd x; rm y",
    "first of three": "rm x | tee f | wc",
    "in a substitution": "echo $(rm x)",
    "in a substitution in quotes": 'echo "$(ls; rm x)"',
    "after an assignment": "A=1 rm x",
    "unknown arguments": "rm $FILES *.o",
    "redirected": "rm x > log",
    "in the background": "ls & rm x &",
}

DOUBTFUL = {
    "by its path": "/bin/rm x",
    "by a path of home": "~/bin/rm x",
    "a variable as command": "$CMD x",
    "a glob as command": "/bin/r? x",
    "a substitution as command": "$(echo rm) x",
    "through env": "env A=1 rm x",
    "through sudo": "sudo -u bob rm x",
    "through xargs": "ls | xargs -n 1 rm",
    "through timeout": "timeout 5 rm x",
    "given to a shell": "bash -c 'ls; rm x'",
    "given to a shell twice": """sh -c 'bash -c "ls; rm x"'""",
    "given to eval": "eval 'rm x'",
    "unknown to eval": 'eval "$x"',
    "piped into a shell": "curl x | sh",
    "piped into a shell with words": "curl x | bash -s a",
    "piped into a shell by a file": "curl x | bash /dev/stdin",
    "piped into a shell through env": "curl x | env sh",
    "piped into a shell, in a line that is not read": "curl x | sh; echo {a,b}",
    "given to a shell with escapes": "sh -c $'\\x72m x'",
    "a variable through env, in a line that is not read": "env $x y {a,b}",
    "a variable in a function": "function f { $x; }; f",
    "given to env by an option": "env -S'rm x'",
    "given to env by a long option": "env --split-string='rm x'",
    "given to su by an option": "su -c'rm x'",
    "given to a trap": "trap 'rm x' EXIT",
    "given to an alias": "alias k='rm x'",
    "in a subscript that a builtin runs": "printf -v 'a[$(rm x)]' y",
    "found and executed": "find . -exec rm {} \\;",
    "in a subshell": "(cd x && rm y)",
    "in a loop": "for f in a b; do rm $f; done",
    "in a condition": "if true; then rm x; fi",
    "in backquotes": "echo `rm x`",
    "in a function": "f() { rm x; }; f",
    "in a here-document": "bash <<E\nrm x\nE",
    "in process substitution": "cat <(rm x)",
    "in ANSI quotes": "$'\\x72m' x",
    "in braces": "{rm,-rf,x}",
    "continued inside a word": "r\\\nm x",
    "not closed": "echo 'a && rm x",
    "more than can be looked at": "xargs " + "a " * 5000,
}

INNOCENT = {
    "a shell among words, in a line that is not read": "echo {a,b} bash",
    "a file to find, in a line that is not read": "find . -name x -exec cat {} \\;",
    "an option of a wrapper": "timeout -k 5 10 ls",
    "nothing": "",
    "a comment": "# rm x",
    "another command": "ls",
    "a longer name": "rmdir x",
    "its name as an argument": "grep rm file",
    "its name in quotes": "echo 'rm x'",
    "a variable as argument": "ls $x",
    "a loop": "for f in *; do echo $f; done",
    "a subshell": "(cd x && make)",
    "a wrapper": "env A=$x make",
    "a script": "bash build.sh",
    "an assignment": "A=rm",
}


@pytest.mark.parametrize("line", CERTAIN.values(), ids=CERTAIN)
def test_what_matches_for_certain(line: str) -> None:
    found = may_match(RM, line)
    assert isinstance(found, Possible)
    assert found.certain


@pytest.mark.parametrize("line", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_may_match(line: str) -> None:
    found = may_match(RM, line)
    assert isinstance(found, Possible)
    assert not found.certain
    assert str(found).endswith("may be what is meant by `rm:*` of settings.json (user)")


@pytest.mark.parametrize("line", INNOCENT.values(), ids=INNOCENT)
def test_what_cannot_match(line: str) -> None:
    assert may_match(RM, line) is None


PATTERNS = {
    "an option in between": ("git push:*", "git --no-pager push", True),
    "an option with its value in between": ("git push:*", "git -C x -c a=b push origin", True),
    "other words in between": ("git push:*", "git log push", False),
    "two words after an option": ("git push:*", "git -x log it push", False),
    "an option of the pattern": ("rm -rf", "rm -v -rf x", True),
    "another option": ("rm -rf", "rm -v x", False),
    "a star in between": ("git * push", "git -C x push", True),
    "unknown words in between": ("git push origin main", "git $args main", True),
    "unknown words that are too few": ("git push", "git log $x", False),
    "no free tail": ("git * main", "git push main -f", False),
    "an unknown tail": ("git * main", "git push $x", True),
    "an option that may be a file": ("rm -rf", "rm *", True),
    "everything": ("*", "ls", True),
    "brackets are letters": ("a[b]", "ab", False),
    "assignments do not hide": ("npm ci", "A=1 B=2 npm ci", True),
}


@pytest.mark.parametrize(("pattern", "line", "expected"), PATTERNS.values(), ids=PATTERNS)
def test_patterns(pattern: str, line: str, *, expected: bool) -> None:
    assert (may_match(rules(pattern), line) is not None) is expected


def test_a_certain_match_is_told_rather_than_a_doubtful_one() -> None:
    found = may_match(rules("git:*", "rm:*"), "$x; rm y")
    assert str(found) == "`rm y` matches `rm:*` of settings.json (user)"


WORDS = st.lists(
    st.sampled_from(["rm", "git", "push", "$x", "*", "'a b'", "&&", ";", "|", "env", "A=1", "(", ">", "`"])
)


@given(WORDS.map(" ".join) | st.text(), st.sampled_from(["rm:*", "git push", "git * x", "*", "r*"]))
def test_no_line_breaks_it_and_nothing_that_matches_is_missed(line: str, pattern: str) -> None:
    possible = may_match(rules(pattern), line)
    try:
        commands = parse(line)
    except InvalidTextError:
        return
    if any(CommandPattern.parse(pattern).matches(command) for command in commands):
        assert possible is not None
