"""``stockade.platforms.linux.aside``: the words that go with what was set aside."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.filesystem.finding import Finding
from stockade.platforms.linux.aside import report, shell_word


def test_what_was_set_aside_is_told_with_the_way_back() -> None:
    told = report(7, Finding("/p/sub/.git/config", "/p/sub/.git/config.stockade-1", "git obeys it"))

    assert (told.ticket, told.operation, told.path) == (7, "leave", "/p/sub/.git/config")
    assert told.why == 'it was set aside as "config.stockade-1", for git obeys it'
    assert told.remedy == (
        'add "/p/sub/.git/config" to sandbox.filesystem.allowProtected, or run with '
        "--allow-protected /p/sub/.git/config; to take it back, run: "
        "mv -nT -- /p/sub/.git/config.stockade-1 /p/sub/.git/config"
    )


def test_what_could_not_be_set_aside_is_told() -> None:
    told = report(0, Finding("/p/.mcp.json", "", "an agent obeys it", "Permission denied"))

    assert told.why == "it could not be set aside (Permission denied), and an agent obeys it"
    assert "remove it" in told.remedy


def test_a_look_that_failed_is_told() -> None:
    assert "could not be looked at" in report(0, Finding("", "", "it could not be looked at", "OSError")).why


@pytest.mark.parametrize("text", ["/a/b", "/it's", '/a "b" $c `d`', "/a\nb\x1b[1m", "/\udcff", "/ü", "/-x", "/a\\b"])
def test_a_word_is_the_same_to_a_shell(text: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf %s {shell_word(text)}"], check=True, capture_output=True).stdout

    assert said == text.encode(errors="surrogateescape")


@given(st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_a_word_is_one_line_of_visible_characters(text: str) -> None:
    assert shell_word(text).isprintable()
