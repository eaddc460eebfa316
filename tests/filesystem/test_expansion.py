from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.filesystem import expansion
from stockade.filesystem.expansion import Expansion, expand
from stockade.policy.path_pattern import PathPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.filesystem.terrain import Terrain

    MakeTree = Callable[[Mapping[str, str | None]], Terrain]

ENTRIES = {
    "/w/.env": None,
    "/w/a/.env": None,
    "/w/a/b/.env": None,
    "/w/n/.env/deep/.env": None,
    "/w/up": "..",
    "/w/to-o": "../o",
    "/w/gone": "nowhere",
    "/w/loop": "loop",
    "/o/.env": None,
    "/o/p/q/.env": None,
    "/proc/1/.env": None,
}


def _pattern(text: str) -> PathPattern:
    return PathPattern.parse(text, cwd="/w", home="/h")


@pytest.mark.parametrize(
    ("text", "places", "links"),
    [
        pytest.param("*/.env", {"/w/a/.env", "/w/n/.env", "/o/.env"}, {"/w/to-o"}, id="one-level"),
        pytest.param(
            "**/.env",
            {"/w/.env", "/w/a/.env", "/w/a/b/.env", "/w/n/.env", "/o/.env", "/o/p/q/.env"},
            {"/w/to-o"},
            id="any-level",
        ),
        pytest.param("to*", {"/o"}, {"/w/to-o"}, id="a-link"),
        pytest.param("gon?", {"/w/nowhere"}, {"/w/gone"}, id="a-link-to-nothing"),
        pytest.param("loo[p]", set(), {"/w/loop"}, id="a-loop"),
        pytest.param("u*/w/a", set(), set(), id="a-link-back"),
        pytest.param("/*/1", set(), set(), id="never-in-proc"),
        pytest.param("*/no", set(), {"/w/to-o"}, id="nothing"),
    ],
)
def test_a_deny_follows_links(tree: MakeTree, text: str, places: set[str], links: set[str]) -> None:
    found = expand(_pattern(text), tree(ENTRIES), through_links=True, nested=False)
    assert (set(found.places), set(found.links)) == (places, links)
    assert found.problem == ""


def test_an_allow_does_not(tree: MakeTree) -> None:
    found = expand(_pattern("*"), tree(ENTRIES), through_links=False, nested=True)
    assert set(found.places) == {"/w/.env", "/w/a", "/w/n"}
    assert set(found.links) == {"/w/up", "/w/to-o", "/w/gone", "/w/loop"}


def test_below_a_match_if_asked(tree: MakeTree) -> None:
    found = expand(_pattern("n/**/.env"), tree(ENTRIES), through_links=True, nested=True)
    assert set(found.places) == {"/w/n/.env", "/w/n/.env/deep/.env"}


def test_a_link_to_what_is_above_is_noted(tree: MakeTree) -> None:
    found = expand(_pattern("u*"), tree(ENTRIES), through_links=True, nested=False)
    note = 'the link "/w/up" matches, but not what it leads to: that is above the rule'
    assert found == Expansion(links=("/w/up",), notes=(note,))


@pytest.mark.parametrize(
    ("bound", "text", "problem"),
    [
        pytest.param("MOST_MATCHES", "**/.env", "it matches more than 1 places", id="matches"),
        pytest.param("MOST_DIRECTORIES", "**/x", "it would need a search of more than 1 directories", id="directories"),
    ],
)
def test_bounds(tree: MakeTree, monkeypatch: pytest.MonkeyPatch, bound: str, text: str, problem: str) -> None:
    monkeypatch.setattr(expansion, "MOST_BEYOND_LINKS", 1)
    monkeypatch.setattr(expansion, bound, 1)
    assert expand(_pattern(text), tree(ENTRIES), through_links=True, nested=False) == Expansion(problem=problem)


def test_too_much_behind_a_link_is_noted(tree: MakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST_BEYOND_LINKS", 1)
    found = expand(_pattern("**/.env"), tree(ENTRIES), through_links=True, nested=False)
    assert found.notes == ('not searched to the end behind the link "/w/to-o": too many directories',)
    assert {"/w/.env", "/w/a/.env", "/w/a/b/.env", "/w/n/.env"} <= set(found.places)


def test_a_link_to_a_large_tree_keeps_no_other_from_being_searched(
    tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MOST_BEYOND_LINKS", 20)
    large = {f"/usr/{number}/": None for number in range(100)}
    links: dict[str, str | None] = {"/w/a": "/usr", "/w/mine": "/o/x", "/w/z": "/usr/1", "/w/zz": "/usr"}
    found = expand(_pattern("**/.env"), tree({**large, **links, "/o/x/y/.env": None}), through_links=True, nested=False)
    assert found.places == ("/o/x/y/.env",)
    assert found.links == ("/w/mine",)
    assert len(found.notes) == 1


def test_the_whole_disk_is_not_searched(tree: MakeTree) -> None:
    found = expand(_pattern("/**/x"), tree(ENTRIES), through_links=True, nested=False)
    assert found.problem == "it would need a search of the whole disk; start it with a directory"
