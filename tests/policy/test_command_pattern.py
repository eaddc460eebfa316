from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import SimpleCommand, Word, parse


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        pytest.param("npm run test", CommandPattern("npm run test", ("npm", "run", "test", "*")), id="words"),
        pytest.param("npm:*", CommandPattern("npm:*", ("npm", "*")), id="prefix"),
        pytest.param("docker *", CommandPattern("docker *", ("docker", "*")), id="wildcard at the end"),
        pytest.param("git * main", CommandPattern("git * main", ("git", "*", "main")), id="wildcard in the middle"),
        pytest.param("docker*", CommandPattern("docker*", ("docker*", "*")), id="wildcard in a word"),
        pytest.param("A=1 npm ci", CommandPattern("A=1 npm ci", ("npm", "ci", "*"), ("A=1",)), id="assignment"),
        pytest.param("*", CommandPattern("*", ("*",)), id="everything"),
    ],
)
def test_parses(text: str, pattern: CommandPattern) -> None:
    assert CommandPattern.parse(text) == pattern
    assert str(pattern) == text


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        pytest.param("npm run test", "npm run test", True, id="exact"),
        pytest.param("npm run test", "npm run test --x", True, id="word prefix"),
        pytest.param("npm run test", "npm run tests", False, id="longer word"),
        pytest.param("npm run test", "npm run", False, id="fewer words"),
        pytest.param("npm run test", "npm 'run test'", False, id="two words imitated by one"),
        pytest.param("npm run test", "npm --x run test", False, id="words in between"),
        pytest.param("npm run test", "NPM run test", False, id="case matters"),
        pytest.param("npm:*", "npm", True, id="prefix alone"),
        pytest.param("npm:*", "npm ci", True, id="prefix and more"),
        pytest.param("npm:*", "npmx ci", False, id="prefix inside a word"),
        pytest.param("npm:*", "npm:x", False, id="colon is no part of it"),
        pytest.param("git commit:*", "git commit -m x", True, id="prefix of two words"),
        pytest.param("git commit:*", "git commit-tree x", False, id="prefix inside the second word"),
        pytest.param("docker *", "docker", True, id="no word for the wildcard"),
        pytest.param("docker *", "docker ps -a", True, id="words for the wildcard"),
        pytest.param("docker *", "docker-compose up", False, id="wildcard begins a new word"),
        pytest.param("docker *", "'docker ps'", False, id="command with a blank in its name"),
        pytest.param("docker *", "./docker ps", False, id="another path"),
        pytest.param("docker*", "docker-compose up", True, id="star in the name"),
        pytest.param("docker*", "docker/../evil.sh", False, id="star in the name is no slash"),
        pytest.param("docker*", "dockerd/x", False, id="star in the name leads to no directory"),
        pytest.param("*", "/tmp/evil", True, id="everything is everything"),
        pytest.param("* --version", "/tmp/evil --version", False, id="a free name is no path"),
        pytest.param("* --version", "node --version", True, id="a free name"),
        pytest.param("./bin/*", "./bin/x y", True, id="star in a path"),
        pytest.param("./bin/*", "./bin/x/y", False, id="star in a path is one name"),
        pytest.param("./bin/*", "./bin/..", False, id="star in a path leads not up"),
        pytest.param("./*/x", ".//x", False, id="star in a path is a name"),
        pytest.param("../*", "../x", True, id="a way up that is spelled"),
        pytest.param("docker *", "sudo docker ps", False, id="behind another command"),
        pytest.param("docker *", "env A=1 docker ps", False, id="behind env"),
        pytest.param("docker *", "A=1 docker ps", False, id="assignment not spelled"),
        pytest.param("docker *", "A=1", False, id="assignment alone"),
        pytest.param("docker *", "dock''er \"ps\"", True, id="quoting is decoded"),
        pytest.param("docker *", "docker $x *.c", True, id="unsure words in a free place"),
        pytest.param("docker ps", "docker $x", False, id="unsure word for a fixed one"),
        pytest.param("docker ps", "docker p*", False, id="glob for a fixed word"),
        pytest.param("docker p*", "docker p$x", False, id="unsure word for a wildcard in a word"),
        pytest.param("docker ps", "docker ps $x", True, id="unsure word after the fixed ones"),
        pytest.param("* --version", "docker --version", True, id="leading wildcard"),
        pytest.param("* --version", "docker --version -x", False, id="end is fixed"),
        pytest.param("* --version", "docker '-x --version'", False, id="end imitated inside a word"),
        pytest.param("* --version", "$x --version", False, id="unsure command"),
        pytest.param("* --version", "A=1 docker --version", False, id="wildcard stands for no assignment"),
        pytest.param("git * main", "git push origin main", True, id="middle wildcard"),
        pytest.param("git * main", "git push main main x main", True, id="middle wildcard goes back"),
        pytest.param("git * main", "git push main -f", False, id="middle wildcard, other end"),
        pytest.param("docker*", "docker-compose up", True, id="wildcard in a word, then free"),
        pytest.param("docker*", "docker ps", True, id="wildcard in a word may be empty"),
        pytest.param("npm run t*t x", "npm run tests x", False, id="word wildcard fixes its end"),
        pytest.param("npm run t*t x", "npm run test x", True, id="word wildcard in the middle"),
        pytest.param("npm run t*t", "npm run t x t", False, id="word wildcard stays in its word"),
        pytest.param("A=1 docker *", "A=1 docker ps", True, id="assignment spelled"),
        pytest.param("A=* docker *", "A=2 docker ps", True, id="assignment with a wildcard"),
        pytest.param("A=* docker *", "A=$x docker ps", False, id="assignment of something unsure"),
        pytest.param("A=1 docker *", "A=2 docker ps", False, id="other assignment"),
        pytest.param("A=1 docker *", "docker ps", False, id="assignment missing"),
        pytest.param("A=1 docker *", "A=1 LD_PRELOAD=x docker ps", False, id="one assignment more"),
        pytest.param("*", "a b", True, id="everything matches"),
        pytest.param("*", "$x b", False, id="everything but an unsure command"),
        pytest.param("docker [a]", "docker '[a]'", True, id="brackets are plain"),
        pytest.param("docker ?", "docker a", False, id="question mark is plain"),
        pytest.param("docker a", "docker '*'", False, id="a star in the command is no wildcard"),
    ],
)
def test_matches(text: str, line: str, expected: object) -> None:
    (command,) = parse(line)
    assert CommandPattern.parse(text).matches(command) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "the command pattern '' names no command", id="empty"),
        pytest.param(":*", "the command pattern ':*' names no command", id="empty prefix"),
        pytest.param("A=1", "the command pattern 'A=1' names no command", id="assignment alone"),
        pytest.param(" docker", "the command pattern ' docker' begins or ends with a blank", id="blank before"),
        pytest.param("docker\t", "the command pattern 'docker\\t' begins or ends with a blank", id="tab after"),
        pytest.param("a\nb", "the command pattern 'a\\nb' holds a character that cannot be printed", id="newline"),
        pytest.param("a\0", "the command pattern 'a\\x00' holds a character that cannot be printed", id="NUL"),
        pytest.param("a\xa0b", "the command pattern 'a\\xa0b' holds a character that cannot be printed", id="nbsp"),
        pytest.param("docker ps && curl", "the command pattern 'docker ps && curl' holds a &", id="and"),
        pytest.param("a; b", "the command pattern 'a; b' holds a ;", id="semicolon"),
        pytest.param("a | b", "the command pattern 'a | b' holds a |", id="pipe"),
        pytest.param("a > b", "the command pattern 'a > b' holds a >", id="redirection"),
        pytest.param("a $x", "the command pattern 'a $x' holds a $", id="variable"),
        pytest.param("a 'b'", "the command pattern \"a 'b'\" holds a '", id="quotes"),
        pytest.param("Bash(a)", "the command pattern 'Bash(a)' holds a (", id="rule"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        CommandPattern.parse(text)
    assert caught.value.message == message
    assert "one command" in caught.value.hint


@pytest.mark.parametrize("text", ["*", "**", "* *", "*:*", "* **"])
def test_universal(text: str) -> None:
    assert CommandPattern.parse(text).is_universal


@pytest.mark.parametrize("text", ["docker *", "* a", "A=1 *", "A=* *", "*a*"])
def test_not_universal(text: str) -> None:
    assert not CommandPattern.parse(text).is_universal


@given(st.text())
def test_no_text_raises_anything_but_our_own_error(text: str) -> None:
    try:
        pattern = CommandPattern.parse(text)
    except InvalidTextError:
        return
    assert pattern.words


@example(["*", "a"], ["", "a"])
@given(st.lists(st.text("ab*"), min_size=1), st.lists(st.text("ab"), min_size=1))
def test_a_pattern_of_stars_matches_as_the_slow_definition_says(pattern: list[str], words: list[str]) -> None:
    def word_matches(pattern: str, word: str) -> bool:
        if not pattern:
            return not word
        if pattern[0] == "*":
            return any(word_matches(pattern[1:], word[at:]) for at in range(len(word) + 1))
        return bool(word) and word[0] == pattern[0] and word_matches(pattern[1:], word[1:])

    def matches(patterns: list[str], words: list[str]) -> bool:
        if not patterns:
            return not words
        if patterns[0] == "*":
            return any(matches(patterns[1:], words[at:]) for at in range(len(words) + 1))
        return bool(words) and word_matches(patterns[0], words[0]) and matches(patterns[1:], words[1:])

    pattern, words = [word[:6] for word in pattern[:4]], [word[:6] for word in words[:5]]
    command = SimpleCommand(tuple(Word(word) for word in words))
    # No star in the name of a command stands for an empty name, unless the pattern matches everything.
    nameless = not words[0] and "*" in pattern[0] and bool("".join(pattern).strip("*"))
    assert CommandPattern("", tuple(pattern)).matches(command) is (not nameless and matches(pattern, words))
