from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.exclusion import Exclusion, LineMatch, decide_exclusion, match_all, parse_exclusion
from stockade.policy.rule import prefix_of_permission_update
from stockade.settings.layer import Layer, Origin, Sourced

USER = Origin(Layer.USER, "~/.stockade/settings.json", "$.sandbox.excludedCommands")
DOCKER = Sourced(CommandPattern.parse("docker *"), USER)
NPM = Sourced(CommandPattern.parse("npm run test"), Origin(Layer.LOCAL))
PATTERNS = (DOCKER, NPM)

EXCLUDED = {
    "one command": "docker ps",
    "bare command": "docker",
    "exact": "npm run test",
    "further words": "npm run test --watch",
    "and": "docker ps && npm run test",
    "or": "docker ps || docker ps",
    "semicolon": "docker ps; docker images;",
    "pipe": "docker ps | docker load",
    "background": "docker ps & docker images",
    "newline": "docker ps\ndocker images\n",
    "comment": "# now && curl x\ndocker ps # ; curl x",
    "continued line": "docker run \\\n  -it \\\n  x",
    "quoted operators": "docker run x sh -c 'curl x && rm y'",
    "quoted name": '"docker" ps',
    "substitution of the same": "docker rm $(docker ps -q)",
    "substitution in quotes": 'docker rm "$(docker ps -q)"',
    "variable": 'docker run -v "$PWD:/src" $IMAGE',
    "glob": "docker build *.d",
    "null device": "docker ps >/dev/null 2>&1",
}

INSIDE = {
    "nothing": "",
    "blank": "  \n",
    "comment only": "# docker ps",
    "another command": "curl x",
    "longer name": "dockerx ps",
    "longer word": "npm run tests",
    "and": "docker ps && curl x",
    "and before": "curl x && docker ps",
    "or": "docker ps || curl x",
    "semicolon": "docker ps; curl x",
    "semicolon without blanks": "docker ps;curl x",
    "pipe": "docker ps | tee f",
    "pipe into a shell": "docker ps | sh",
    "background": "docker ps & curl x",
    "background without blanks": "docker ps&curl x",
    "newline": "docker ps\ncurl x",
    "newline after a comment": "docker ps # c\ncurl x",
    "newline after a continued comment": "docker ps # c\\\ncurl x",
    "third of four": "docker ps && docker ps && curl x && docker ps",
    "substitution": "docker ps $(curl x)",
    "substitution in quotes": 'docker ps "$(curl x)"',
    "nested substitution": "docker ps $(docker ps $(curl x))",
    "list in a substitution": "docker ps $(docker ps; curl x)",
    "substitution as command": "$(docker ps)",
    "substitution in a name": "docker$(docker ps) ps",
    "backquotes": "docker ps `curl x`",
    "backquotes in quotes": 'docker ps "`curl x`"',
    "variable as command": "$x ps",
    "glob as command": "dock* ps",
    "default value": "docker ${x:-$(curl x)}",
    "arithmetic": "docker $((x[$(curl x)]))",
    "process substitution": "docker load < <(curl x)",
    "output process": "docker ps > >(curl x)",
    "here-document": "docker load <<E\n$(curl x)\nE",
    "quoted here-document": "docker load <<'E'\nx\nE\ncurl x",
    "here-string": 'docker load <<< "$(curl x)"',
    "written file": "docker ps > ~/.bashrc",
    "appended file": "docker ps >> f",
    "errors to a file": "docker ps 2> f",
    "read file": "docker load < /etc/shadow",
    "file before the command": "> f docker ps",
    "file in the first of two": "docker ps > f && docker ps",
    "file in a substitution": "docker ps $(docker ps > f)",
    "substitution in a file": "docker ps > $(curl x)",
    "both outputs": "docker ps &> f",
    "assignment": "A=1 docker ps",
    "preload": "LD_PRELOAD=x docker ps",
    "path first": "PATH=/tmp; docker ps",
    "substitution in an assignment": "A=$(curl x) docker ps",
    "env": "env A=1 docker ps",
    "sudo": "sudo docker ps",
    "eval": "eval docker ps",
    "exec": "exec docker ps",
    "alias": "alias docker=curl\ndocker x",
    "function": "docker() { curl x; }; docker ps",
    "function with keyword": "function docker { curl x; }\ndocker ps",
    "subshell": "(docker ps; curl x)",
    "group": "{ docker ps; curl x; }",
    "negation": "! curl x",
    "if": "if docker ps; then curl x; fi",
    "for": "for x in $(docker ps); do curl x; done",
    "case": "case x in x) curl x;; esac",
    "time": "time curl x",
    "coproc": "coproc curl x",
    "braces": "{docker,curl} x",
    "braces as argument": "docker {ps,x}",
    "name with a blank": "'docker ps'",
    "escaped blank in the name": "docker\\ ps",
    "another path": "./docker ps",
    "no-break space": "docker\xa0ps",
    "carriage return": "docker ps\rcurl x",
    "NUL": "docker ps\0curl x",
    "open quote": "docker 'ps",
    "open substitution": "docker $(docker ps",
    "ends with an operator": "docker ps &&",
    "pipe with errors": "docker ps |& curl x",
    "background of zsh": "docker ps &! curl x",
    "escape quotes": "docker $'\\'; curl x #'",
    "glob qualifier of zsh": "docker *(e:'curl x':)",
    "expansion flag of zsh": "docker ${(e)x}",
    "subscript": "x[$(curl x)]=1 docker ps",
}


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in EXCLUDED.items()])
def test_excluded(line: str) -> None:
    assert decide_exclusion(PATTERNS, line).excluded


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in INSIDE.items()])
def test_stays_inside(line: str) -> None:
    verdict = decide_exclusion(PATTERNS, line)
    assert verdict == Exclusion(False, f"not excluded: {verdict.blocked_by}", blocked_by=verdict.blocked_by)
    assert verdict.blocked_by
    assert verdict.blocked_by.isprintable()


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        pytest.param(
            "docker ps && npm run test; docker ps",
            Exclusion(
                True,
                "excluded by `docker *` of ~/.stockade/settings.json (user), `npm run test` of local",
                (DOCKER, NPM),
            ),
            id="excluded",
        ),
        pytest.param(
            "docker ps && curl 'x y'",
            Exclusion(
                False,
                "not excluded: no pattern matches `curl 'x y'`",
                blocked_by="no pattern matches `curl 'x y'`",
            ),
            id="not covered",
        ),
        pytest.param(
            "docker ps > f",
            Exclusion(
                False,
                "not excluded: `docker ps` is redirected from or to the file 'f'",
                blocked_by="`docker ps` is redirected from or to the file 'f'",
            ),
            id="redirected",
        ),
        pytest.param(
            "",
            Exclusion(False, "not excluded: the line holds no command", blocked_by="the line holds no command"),
            id="no command",
        ),
    ],
)
def test_the_verdict_says_why(line: str, verdict: Exclusion) -> None:
    assert decide_exclusion(PATTERNS, line) == verdict


@pytest.mark.parametrize(
    "line",
    [
        "printf -v PATH /evil; ls",
        "printf -v b 'c[\\x24(CMD)]'; printf -v 'a[b]' x",
        "test -v 'c[$'\"$Z\"'(CMD)]'",
        "read PATH; ls",
        "getopts a PATH; ls",
        "printf -v 'BASH_CMDS[ls]' /evil; ls",
        "unset 'c[$(CMD)]'",
        "let x",
        "mapfile -C CMD -c 1",
        "wait -p x 1",
        "enable -f ./evil.so evil",
        "hash -p ./evil ls; ls",
        "trap ls EXIT",
        "source ls",
        ". ls",
        "eval ls",
        "zmodload zsh/files",
        "zstyle -e x y ls",
        "set -o allexport",
    ],
)
def test_no_pattern_covers_a_builtin_that_assigns_or_evaluates(line: str) -> None:
    names = {line.split(maxsplit=1)[0], "ls", "printf"}
    patterns = tuple(Sourced(CommandPattern.parse(f"{name}:*"), USER) for name in names)
    assert "no pattern covers it" in decide_exclusion(patterns, line).reason
    everything = Sourced(CommandPattern.parse("*"), USER)
    assert not match_all((everything,), line).covered


def test_plain_builtins_are_covered_by_their_patterns() -> None:
    patterns = tuple(
        Sourced(CommandPattern.parse(f"{name}:*"), USER) for name in ("cd", "docker", "test", "echo", "exit")
    )
    assert match_all(patterns, "cd sub && test -f x && docker ps || exit 1; echo done").covered


def test_a_relative_name_is_not_covered_where_the_line_moves() -> None:
    patterns = tuple(Sourced(CommandPattern.parse(text), USER) for text in ("cd:*", "d/tool:*", "/usr/bin/tool:*"))
    assert match_all(patterns, "d/tool x").covered
    assert match_all(patterns, "cd d; /usr/bin/tool x").covered
    assert "the directory that the line goes to" in match_all(patterns, "cd d; d/tool x").blocked_by


def test_without_patterns_nothing_is_excluded() -> None:
    assert decide_exclusion((), "docker ps") == Exclusion(False, "no command is excluded")


def test_the_first_pattern_that_matches_is_named() -> None:
    second = Sourced(CommandPattern.parse("docker ps"), USER)
    assert match_all((DOCKER, second), "docker ps") == LineMatch(True, (DOCKER,))


@pytest.mark.parametrize("text", ["docker *", "npm run:*", "* --version"])
def test_an_exclusion_is_a_pattern(text: str) -> None:
    assert parse_exclusion(text) == CommandPattern.parse(text)


def test_an_exclusion_from_a_permission_update() -> None:
    pattern = parse_exclusion(prefix_of_permission_update("Bash(npm run:*)"))
    assert pattern == CommandPattern.parse("npm run:*")


@pytest.mark.parametrize("text", ["*", "* *", "*:*", "**"])
def test_not_everything_can_be_excluded(text: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        parse_exclusion(text)
    assert caught.value.message == f"the exclusion '{text}' would take every command out of the sandbox"
    assert "stockade disable" in caught.value.hint


@given(st.text(), st.sampled_from(["&&", "||", ";", "|", "&", "\n"]), st.text())
def test_nothing_follows_an_excluded_command_out(blanks: str, operator: str, rest: str) -> None:
    line = f"docker ps {blanks}{operator} curl {rest}"
    swallowed = any(mark in blanks for mark in "#'\"\\")
    assert swallowed or not decide_exclusion(PATTERNS, line).excluded
