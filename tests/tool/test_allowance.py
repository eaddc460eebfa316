from __future__ import annotations

import pytest

from stockade.policy.command_pattern import CommandPattern
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.allowance import SKIP_CHECK, allowed_by, skips_check

USER = Origin(Layer.USER, "settings.json")
RULES = tuple(Sourced(CommandPattern.parse(text), USER) for text in ("npm:*", "git status", "echo *"))

ALLOWED = {
    "plain": "npm run test",
    "compound": "npm ci && git status; echo done",
    "quoted": "echo '$(curl x)' \"a;b\"",
    "a variable": 'npm run "$TASK"',
    "nothing kept": "npm ci >/dev/null 2>&1",
}

HIDDEN = {
    "a part without a rule": "npm ci && curl x",
    "substitution": "npm ci $(curl x)",
    "substitution of what is allowed": "echo $(git status)",
    "substitution in quotes": 'echo "$(curl x)"',
    "substitution in an assignment": "A=$(curl x) npm ci",
    "backquotes": "npm ci `curl x`",
    "an expansion that runs code": "echo ${x:-$(curl y)}",
    "an expansion of a prompt": "echo ${x@P}",
    "arithmetic that runs code": "echo $((a[$(curl x)]))",
    "a redirection to a file": "echo x > ~/.bashrc",
    "a redirection from a file": "npm ci < secrets",
    "process substitution": "npm ci <(curl x)",
    "a here-document": "npm ci <<E\n$(curl x)\nE",
    "an assignment": "PATH=/tmp npm ci",
    "a new line": "npm ci\ncurl x",
    "not closed": "npm 'x",
    "a control character": "npm ci\rcurl x",
    "a subscript that a builtin runs": "echo 'a[$(curl x)]'",
    "a subscript with backquotes": "echo 'a[`curl x`]'",
    "nothing": "",
}


@pytest.mark.parametrize("line", ALLOWED.values(), ids=ALLOWED)
def test_plain_words_are_allowed(line: str) -> None:
    assert allowed_by(RULES, line).covered


@pytest.mark.parametrize("line", HIDDEN.values(), ids=HIDDEN)
def test_what_hides_something_is_not_matched(line: str) -> None:
    match = allowed_by(RULES, line)
    assert not match.covered
    assert match.blocked_by


def test_without_the_check_the_first_words_decide() -> None:
    assert allowed_by(RULES, "npm ci $(curl x) > f; rm y", check=False).covered
    assert not allowed_by(RULES, "curl x; npm ci", check=False).covered


@pytest.mark.parametrize(("value", "skips"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_check_is_switched_off_by_one_variable(value: str, *, skips: bool) -> None:
    assert skips_check({SKIP_CHECK: value}) is skips
    assert not skips_check({})
