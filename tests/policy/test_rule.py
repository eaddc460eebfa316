from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.rule import Rule, prefix_of_permission_update


@pytest.mark.parametrize(
    ("text", "tool", "content"),
    [
        pytest.param("Bash", "Bash", None, id="whole tool"),
        pytest.param("Bash(npm run:*)", "Bash", "npm run:*", id="parentheses"),
        pytest.param("Bash:npm run:*", "Bash", "npm run:*", id="colon"),
        pytest.param("Edit(~/x y/**)", "Edit", "~/x y/**", id="path"),
        pytest.param("Edit:app/(group)/page", "Edit", "app/(group)/page", id="parentheses after a colon"),
        pytest.param("Edit(app/(group)/page)", "Edit", "app/(group)/page", id="parentheses in parentheses"),
        pytest.param('Bash(git commit -m "x (y)")', "Bash", 'git commit -m "x (y)"', id="parentheses in quotes"),
        pytest.param("Bash(echo $(date))", "Bash", "echo $(date)", id="a substitution at the end"),
        pytest.param("Bash(x))", "Bash", "x)", id="closed twice"),
        pytest.param("Bash((x)", "Bash", "(x", id="opened twice"),
        pytest.param("Bash(a\n\tb)", "Bash", "a\n\tb", id="several lines"),
        pytest.param("Read(./.env)", "Read", "./.env", id="read"),
        pytest.param("WebFetch(domain:example.com)", "WebFetch", "domain:example.com", id="domain"),
        pytest.param("WebFetch:domain:example.com", "WebFetch", "domain:example.com", id="domain after a colon"),
        pytest.param("mcp__git-hub__get2", "mcp__git-hub__get2", None, id="other tool"),
        pytest.param("Other(anything: at all)", "Other", "anything: at all", id="other tool with content"),
    ],
)
def test_parses(text: str, tool: str, content: str | None) -> None:
    rule = Rule.parse(text)
    assert rule == Rule(tool, content, text)
    assert str(rule) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "the rule '' is no tool name", id="empty"),
        pytest.param("Ba sh", "the rule 'Ba sh' is no tool name", id="blank in the name"),
        pytest.param(" Bash", "the rule ' Bash' is no tool name", id="blank before"),
        pytest.param("Bäsh", "the rule 'B\\xe4sh' is no tool name", id="beyond ASCII"),
        pytest.param("(x)", "the rule '(x)' has no valid tool name before (", id="no name"),
        pytest.param("1x:y", "the rule '1x:y' has no valid tool name before :", id="digit first"),
        pytest.param("Bash()", "the rule 'Bash()' has an empty content", id="empty parentheses"),
        pytest.param("Bash:", "the rule 'Bash:' has an empty content", id="nothing after the colon"),
        pytest.param("Bash(x", "the rule 'Bash(x' does not end with )", id="not closed"),
        pytest.param("Bash(", "the rule 'Bash(' does not end with )", id="only opened"),
        pytest.param("Bash(x) y", "the rule 'Bash(x) y' does not end with )", id="text after"),
        pytest.param("Bash)x(", "the rule 'Bash)x(' has no valid tool name before (", id="reversed"),
        pytest.param("Bash( x)", "the rule 'Bash( x)' has a content that begins or ends with a blank", id="blank"),
        pytest.param("Bash(a\x1b)", "the rule 'Bash(a\\x1b)' holds a control character", id="control character"),
        pytest.param("Edit(a\nb)", "the rule 'Edit(a\\nb)' holds a control character", id="line end in a path"),
        pytest.param("Bash(a) b)c", "the rule 'Bash(a) b)c' does not end with )", id="text after the last"),
        pytest.param("WebFetch(domain:)", "the rule 'WebFetch(domain:)' names no domain", id="no domain"),
        pytest.param(
            "WebFetch(example.com)",
            "the rule 'WebFetch(example.com)' has a content that does not begin with domain:",
            id="not a domain",
        ),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Rule.parse(text)
    assert caught.value.message == message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        pytest.param("WebFetch(domain:x.org)", "x.org", id="parentheses"),
        pytest.param("WebFetch:domain:x.org:80", "x.org:80", id="colon and port"),
        pytest.param("WebFetch", None, id="whole tool"),
        pytest.param("Bash(domain:x.org)", None, id="other tool"),
        pytest.param("Bash", None, id="other whole tool"),
    ],
)
def test_domains(text: str, domain: str | None) -> None:
    assert Rule.parse(text).domain == domain


@pytest.mark.parametrize("text", ["Bash(npm run:*)", "Bash:npm run:*"])
def test_the_prefix_of_a_permission_update(text: str) -> None:
    assert prefix_of_permission_update(text) == "npm run:*"


@pytest.mark.parametrize("text", ["Bash", "Edit(x)", "npm run", "Bash()"])
def test_a_permission_update_without_a_command_is_refused(text: str) -> None:
    with pytest.raises(InvalidTextError):
        prefix_of_permission_update(text)


@given(st.text() | st.text("Bash(WebFetch:domain) "))
def test_no_text_raises_anything_but_our_own_error(text: str) -> None:
    try:
        rule = Rule.parse(text)
    except InvalidTextError:
        return
    assert rule.text == text
