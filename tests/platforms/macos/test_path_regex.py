from __future__ import annotations

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stockade.platforms.macos.path_regex import FOLDED, below, folded, regex_of, rests
from stockade.platforms.macos.seatbelt_regex import compile_regex
from stockade.platforms.macos.sexpr import bytes_of
from stockade.policy.name_glob import DEEP, escaped
from stockade.policy.path_pattern import PathPattern, names_of
from stockade.policy.protected_names import INNER, NAMES

ANY = "([^/\udc80-\udcff]|[\udcc0-\udcff][\udc80-\udcbf]+)"


def _pattern(text: str) -> PathPattern:
    return PathPattern.parse(text, cwd="/w", home="/h")


@pytest.mark.parametrize(
    ("text", "regex"),
    [
        pytest.param("/", "^/", id="everything"),
        pytest.param("/a.b/c+d", r"^/a\.b/c\+d(/|$)", id="names"),
        pytest.param("/a/*.log", r"^/a/[^/]*\.log(/|$)", id="star"),
        pytest.param("/a/*", "^/a/[^/]+(/|$)", id="any-name"),
        pytest.param("/a/**/b", "^/a(/[^/]+)*/b(/|$)", id="deep"),
        pytest.param("/a/b?", f"^/a/b{ANY}(/|$)", id="one-character"),
        pytest.param("/[a-c]", "^/([a-c])(/|$)", id="set"),
        pytest.param("/[abc]", "^/([a-c])(/|$)", id="set-of-neighbours"),
        pytest.param(r"/[\]\-x]", r"^/(-|\]|[x])(/|$)", id="special-in-set"),
        pytest.param("/[--0]", "^/(-|[.0])(/|$)", id="around-the-slash"),
        pytest.param("/[!b]", None, id="negated"),
        pytest.param("/[\u00e0-\u00ff]", "^/(\udcc3[\udca0-\udcbf])(/|$)", id="beyond-ascii"),
        pytest.param(r"/\*\[\\", r"^/\*\[\\(/|$)", id="escaped"),
        pytest.param("/$^|(){}", r"^/\$\^\|\(\)\{\}(/|$)", id="special-for-regular-expressions"),
    ],
)
def test_regexes(text: str, regex: str | None) -> None:
    found = regex_of(_pattern(text))
    if regex is not None:
        assert found == regex
    compile_regex(found)


characters = st.sampled_from("ab.*[]^-\\$|(){}+?\n\"'!/z~ \u00e9\u017f\u20ac\U0001f600") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\0"
)
names = (
    st.text(characters, min_size=1, max_size=4)
    .map(lambda name: name.replace("/", ""))
    .filter(lambda name: name not in ("", ".", ".."))
)
paths = st.lists(names, max_size=4).map(lambda some: "/" + "/".join(some))
sets = st.builds(
    lambda negated, members: f"[{negated}{''.join(chr(92) + member for member in members)}]",
    st.sampled_from(["", "!"]),
    st.lists(characters, min_size=1, max_size=3),
)
ranges = st.builds(lambda ends: "[\\{}-\\{}]".format(*sorted(ends)), st.lists(characters, min_size=2, max_size=2))
pieces = st.lists(names.map(escaped) | st.sampled_from(["*", "?"]) | sets | ranges, min_size=1, max_size=3).map("".join)
globs = st.lists(pieces | st.just("**"), max_size=4).map(lambda some: "/" + "/".join(some))


def _agree(pattern: PathPattern, path: str) -> None:
    found = compile_regex(regex_of(pattern)).search(bytes_of(path)) is not None
    assert found == (pattern.depth_on(path) is not None), (regex_of(pattern), path)


@given(globs, paths)
@example("/a/**/b", "/a/b")
@example("/[!/]", "/a")
@example("/a?", "/a\u20ac")
@example("/??", "/\u00e9")
@example("/*?", "/\u00e9")
@settings(max_examples=300, deadline=None)
def test_a_regex_matches_what_its_pattern_covers(text: str, path: str) -> None:
    try:
        pattern = _pattern(text)
    except Exception:  # noqa: BLE001 - what is no pattern is not the matter here
        return
    _agree(pattern, path)
    # A path that is likely to match: the pattern's own text.
    _agree(pattern, "/" + "/".join(name for name in names_of(text) if name not in (".", "..")))


few = st.lists(st.sampled_from(["a", "b", "*", "**", "?a"]), max_size=4).map(lambda some: "/" + "/".join(some))
short = st.lists(st.sampled_from(["a", "b", "ba"]), max_size=4)


@given(few, short, short)
def test_rests_are_what_is_left(text: str, above: list[str], under: list[str]) -> None:
    pattern = _pattern(text)
    left = [below(above, rest) for rest in rests(pattern, above)]
    path = "/" + "/".join([*above, *under])
    deep = (pattern.depth_on(path) or 0) >= len(above) and pattern.depth_on(path) is not None
    assert any(each.depth_on(path) is not None for each in left) == deep


@pytest.mark.parametrize("name", [*NAMES, *INNER, *INNER[".git"], *INNER[".claude"], "node_modules", "modules"])
def test_names_in_any_case(name: str) -> None:
    found = compile_regex(f"^{folded(name)}$")
    others = [name.upper(), name.title(), *(name.replace(few, one) for few, ones in FOLDED.items() for one in ones)]
    for other in (name, *others):
        assert other.casefold() == name
        assert found.search(bytes_of(other)), other
    assert not found.search(bytes_of(f"{name}x"))
    assert not found.search(bytes_of(name[:-1]))


def test_no_fold_is_forgotten() -> None:
    single = {chr(code).casefold(): chr(code) for code in range(0x80, sys.maxunicode + 1)}
    whole = {few for few in single if few.isascii() and few.isalpha() and len(few) < 3}
    assert set(FOLDED) == whole
    found = {
        few: tuple(chr(code) for code in range(0x80, sys.maxunicode + 1) if chr(code).casefold() == few)
        for few in whole
    }
    assert found == FOLDED
    assert all(few not in name for name in (*NAMES, *INNER[".git"]) for few in ("ffi", "ffl"))


def test_what_is_left_may_be_a_plain_place() -> None:
    assert below(["w", "x"], ("a", "b")) == PathPattern.literal("/w/x/a/b")
    assert below(["w"], (DEEP, "a")).is_glob
