from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here


@pytest.fixture
def place(here: Here) -> Here:
    here.user({"sandbox": {"filesystem": {"denyWrite": ["./keep"], "denyRead": ["~/secret"]}}})
    (here.project / "keep").mkdir()
    return here


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        pytest.param("src/x", [True, True, True, True], id="open"),
        pytest.param("keep/x", [True, False, False, False], id="denied"),
        pytest.param("~/secret/x", [False, False, False, False], id="hidden"),
        pytest.param("/etc/passwd", [True, False, False, False], id="outside"),
        pytest.param(".", [True, True, True, False], id="the-root"),
        pytest.param("deep/.git/hooks/x", [True, False, False, False], id="protected"),
    ],
)
def test_paths(place: Here, text: str, allowed: list[bool]) -> None:
    facts = place("explain", "--platform", "macos", "--json", "--path", text).facts
    ways = ("read", "write", "make", "remove or rename")
    assert [facts[way]["allowed"] for way in ways] == allowed
    assert (facts["platform"], facts["subject"]) == ("macos", "path")


def test_words_name_the_filter(place: Here) -> None:
    lines = place("explain", "--platform", "macos", "keep/x").out.splitlines()
    assert lines[0] == f'on macOS may read "{place.project}/keep/x": by (allow file-read*)'
    assert lines[1].startswith(f'on macOS may not write "{place.project}/keep/x": by (subpath ')


def test_destinations_are_the_proxies_matter(place: Here) -> None:
    lines = place("explain", "--platform", "macos", "--allow-domain", "example.com", "https://example.com/x").out
    assert lines.startswith('on macOS may not connect directly to "example.com:443": by (deny default')
    assert "the proxies decide: " in lines
    words = ("explain", "--platform", "macos", "--json", "--allow-domain", "example.com")
    assert place(*words, "example.com").facts["proxies"] == "allow"
    assert place(*words, "other.example").facts["proxies"] == "deny"


def test_the_profile_is_shown(place: Here) -> None:
    text = place("explain", "--platform", "macos", "--plan").out
    assert text.startswith("(version 1)\n")
    assert f'(subpath "{place.project}")' in text.partition("; Writing is allowed\n")[2]
    assert place("explain", "--platform", "macos", "--plan", "--json").facts["profile"].strip() == text.strip()


def test_commands_are_placed_alike_everywhere(place: Here) -> None:
    shown = place("explain", "--platform", "macos", "docker ps").out
    assert shown == "docker ps: where a command runs does not depend on the platform\n"


def test_what_cannot_be_enforced_is_refused(place: Here) -> None:
    result = place("explain", "--platform", "macos", "--plan", "--deny-read", "/**/secret")
    assert result.status == 125
    assert "cannot be enforced" in result.err
