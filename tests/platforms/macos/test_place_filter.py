from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos import place_filter
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.filters import compile_filter
from stockade.platforms.macos.sexpr import Quoted
from stockade.policy.path_pattern import PathPattern

if TYPE_CHECKING:
    from stockade.platforms.macos.sexpr import Form


@pytest.mark.parametrize(
    ("path", "others"),
    [
        pytest.param("/Users/ann", (), id="plain"),
        pytest.param("/tmp/a", ("/private/tmp/a",), id="tmp"),
        pytest.param("/private/tmp", ("/tmp",), id="private-tmp"),
        pytest.param("/var/folders", ("/private/var/folders",), id="var"),
        pytest.param("/private/etc/hosts", ("/etc/hosts",), id="etc"),
        pytest.param("/private/other", (), id="not-every-private-one"),
        pytest.param("/tmpfile", (), id="a-longer-name"),
        pytest.param("/caf\u00e9", ("/cafe\u0301",), id="composed"),
        pytest.param("/cafe\u0301", ("/caf\u00e9",), id="decomposed"),
        pytest.param("/tmp/\u00e9", ("/private/tmp/\u00e9", "/tmp/e\u0301", "/private/tmp/e\u0301"), id="both"),
        pytest.param("/\udcff", (), id="no-utf-8"),
    ],
)
def test_spellings(path: str, others: tuple[str, ...]) -> None:
    assert place_filter.spellings(path) == (path, *others)
    assert set(place_filter.spellings(others[-1] if others else path)) == {path, *others}


def _matches(filters: tuple[Form, ...], path: str) -> bool:
    return compile_filter(place_filter.any_of(filters))(Attempt("file-read-data", path))


def test_places_and_what_is_below() -> None:
    assert place_filter.at("/a") == (("literal", Quoted("/a")),)
    assert place_filter.at_or_below("/tmp") == (("subpath", Quoted("/tmp")), ("subpath", Quoted("/private/tmp")))


def test_globs_in_both_spellings() -> None:
    found = place_filter.covered(PathPattern.parse("/tmp/*.log", cwd="/", home="/"))
    assert [_matches(found, path) for path in ("/tmp/a.log", "/private/tmp/a.log/b", "/tmp/a.txt")] == [
        True,
        True,
        False,
    ]
    assert place_filter.covered(PathPattern.literal("/a")) == (("subpath", Quoted("/a")),)


def test_what_must_not_be_made_in_any_case() -> None:
    found = place_filter.made("/w/Notes")
    asked = ("/w/Notes", "/w/NOTES/a", "/w/note\u017f", "/w/Note", "/W/notes")
    assert [_matches(found, path) for path in asked] == [True, True, True, False, False]
    assert place_filter.made("/w/1") == (("subpath", Quoted("/w/1")),)


def test_several_filters_are_one() -> None:
    one, other = place_filter.at("/a") + place_filter.at("/b")
    assert place_filter.any_of((one,)) == one
    assert place_filter.any_of((one, other)) == ("require-any", one, other)


def test_what_is_below_the_root_directory() -> None:
    assert (place_filter.within("/"), place_filter.within("/a.b")) == ("^", r"^/a\.b")
