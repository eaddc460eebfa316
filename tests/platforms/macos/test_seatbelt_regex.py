from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.macos.seatbelt_regex import compile_regex
from stockade.platforms.macos.sexpr import bytes_of


@pytest.mark.parametrize(
    ("regex", "text", "matches"),
    [
        pytest.param("^/a$", "/a", True, id="whole"),
        pytest.param("^/a$", "/a\n", False, id="the-end-is-no-line-end"),
        pytest.param("/a", "/b/a/c", True, id="anywhere"),
        pytest.param("^/a", "/b\n/a", False, id="the-beginning-is-no-line-start"),
        pytest.param("^/a.c$", "/a\nc", True, id="a-dot-is-any-byte"),
        pytest.param("^/a(/|$)", "/ab", False, id="end-of-a-name"),
        pytest.param(r"^/a\.b$", "/axb", False, id="escaped"),
        pytest.param("^/[a-c]+$", "/abcabc", True, id="set"),
        pytest.param("^/[^/]+$", "/\u00e9", True, id="negated-set"),
        pytest.param("^/[x-z&]$", "/&", True, id="ampersand-in-a-set"),
        pytest.param("^/[-]$", "/-", None, id="hyphen-in-a-set"),
        pytest.param("a{2}", "aa", None, id="counts"),
        pytest.param(r"\d", "1", None, id="classes"),
        pytest.param("(?i)a", "A", None, id="flags"),
        pytest.param(r"[\n]", "\n", None, id="backslash-in-a-set"),
        pytest.param("[[:alpha:]]", "a", None, id="named-class"),
        pytest.param("[]", "", None, id="empty-set"),
        pytest.param("[^]", "", None, id="empty-negated-set"),
        pytest.param("[z-a]", "", None, id="backwards"),
        pytest.param("a]", "", None, id="closing-bracket"),
        pytest.param("(a", "", None, id="parenthesis"),
        pytest.param("*", "", None, id="nothing-to-repeat"),
        pytest.param("a\\", "", None, id="backslash-at-the-end"),
    ],
)
def test_regexes(regex: str, text: str, matches: bool | None) -> None:  # noqa: FBT001 - a column of the table
    if matches is None:
        with pytest.raises(InvalidTextError, match="the regular expression"):
            compile_regex(regex)
    else:
        assert (compile_regex(regex).search(bytes_of(text)) is not None) == matches


@given(st.text() | st.text("[]^-ab()*|$\\."))
def test_nothing_else_is_raised(text: str) -> None:
    with suppress(InvalidTextError):
        compile_regex(text)
