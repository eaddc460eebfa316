from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError, StockadeError
from stockade.policy.path_pattern import PathPattern, is_at_or_below, names_of, spelled

CWD, HOME = "/srv/repo", "/home/ann"


def parse(text: str, base: str | None = None) -> PathPattern:
    return PathPattern.parse(text, cwd=CWD, home=HOME, base=base)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(".", "/srv/repo", id="dot"),
        pytest.param("a", "/srv/repo/a", id="relative"),
        pytest.param("./a/", "/srv/repo/a", id="trailing-slash"),
        pytest.param("a//b/./c", "/srv/repo/a/b/c", id="empty-and-dot-names-vanish"),
        pytest.param("a/../b", "/srv/repo/b", id="dot-dot-as-text"),
        pytest.param("../b", "/srv/b", id="above-cwd"),
        pytest.param("../../../../b", "/b", id="above-the-root-is-the-root"),
        pytest.param("/", "/", id="root"),
        pytest.param("/etc", "/etc", id="absolute"),
        pytest.param("//etc", "/etc", id="two-slashes"),
        pytest.param("/..", "/", id="above-the-root"),
        pytest.param("~", "/home/ann", id="home"),
        pytest.param("~/", "/home/ann", id="home-slash"),
        pytest.param("~/x", "/home/ann/x", id="in-home"),
        pytest.param("./~x", "/srv/repo/~x", id="a-name-with-a-tilde"),
        pytest.param("a~", "/srv/repo/a~", id="tilde-at-the-end"),
        pytest.param("dir/**", "/srv/repo/dir", id="trailing-deep-is-the-directory"),
        pytest.param("dir/**/**/", "/srv/repo/dir", id="trailing-deeps"),
        pytest.param("**", "/srv/repo", id="deep-alone"),
        pytest.param("/**", "/", id="everything"),
        pytest.param(r"a\*b", "/srv/repo/a*b", id="escaped-star"),
        pytest.param(r"a\\b", "/srv/repo/a\\b", id="escaped-backslash"),
        pytest.param(r"\[x\]", "/srv/repo/[x]", id="escaped-brackets"),
        pytest.param(r"\{a,b}", "/srv/repo/{a,b}", id="escaped-brace"),
        pytest.param("{{name}}", "/srv/repo/{{name}}", id="braces-without-alternatives"),
        pytest.param("a]b", "/srv/repo/a]b", id="closing-bracket-alone"),
        pytest.param("a b\nc", "/srv/repo/a b\nc", id="spaces-and-newlines"),
        pytest.param("\udcff", "/srv/repo/\udcff", id="not-utf-8"),
        pytest.param("\udcc3\udca9", "/srv/repo/é", id="one-name-one-spelling"),
    ],
)
def test_a_literal_pattern_is_one_place(text: str, path: str) -> None:
    pattern = parse(text)
    assert (pattern.path, pattern.is_glob, pattern.static_prefix, pattern.glob_parts) == (path, False, path, ())
    assert pattern.parts == tuple(names_of(path))


@pytest.mark.parametrize(
    ("text", "base", "path"),
    [
        pytest.param("/x", "/srv/app", "/srv/app/x", id="one-slash-is-the-base"),
        pytest.param("/x/../..", "/srv/app", "/srv", id="above-the-base"),
        pytest.param("//x", "/srv/app", "/x", id="two-slashes-are-absolute"),
        pytest.param("x", "/srv/app", "/srv/repo/x", id="relative-is-not"),
        pytest.param("~/x", "/srv/app", "/home/ann/x", id="home-is-not"),
        pytest.param("/x", "/srv/a*", "/srv/a*/x", id="the-base-is-names"),
    ],
)
def test_a_base_gives_the_single_slash_its_meaning(text: str, base: str, path: str) -> None:
    assert parse(text, base).path == path


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("a\0b", "contains a NUL character", id="nul"),
        pytest.param("\ud800", "contains half a surrogate pair", id="surrogate"),
        pytest.param("~bob/x", "names the home of another user", id="other-home"),
        pytest.param("a[b", "has a [ that is never closed", id="open-set"),
        pytest.param("a[b/c]", "has a [ that is never closed", id="set-over-a-slash"),
        pytest.param("[]", "has a [ that is never closed", id="empty-set"),
        pytest.param("[!]", "has a [ that is never closed", id="empty-negated-set"),
        pytest.param("[a-", "has a [ that is never closed", id="open-range"),
        pytest.param("[z-a]", "has a range that runs backwards", id="backward-range"),
        pytest.param("[[:alpha:]]", "has a named class of characters", id="named-class"),
        pytest.param("*/../x", "has .. after a wildcard", id="dot-dot-after-star"),
        pytest.param("**/a/../x", "has .. after a wildcard", id="dot-dot-after-deep"),
        pytest.param("a\\", "has a backslash with nothing to escape", id="backslash-at-the-end"),
        pytest.param("a\\/b", "has a backslash with nothing to escape", id="backslash-before-a-slash"),
        pytest.param(r"\.\.", "escapes the dots of . or ..", id="escaped-dots"),
        pytest.param("*.{pem,key}", "has braces with alternatives", id="alternatives"),
        pytest.param("a" * 4097, "is longer than 4096 characters", id="too-long"),
    ],
)
def test_what_is_no_pattern_is_refused_with_its_text(text: str, what: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        parse(text)
    assert caught.value.message.startswith('path pattern "')
    assert caught.value.message.endswith(what)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("cwd", "home", "base", "text"),
    [
        pytest.param("rel", "/h", None, "x", id="cwd"),
        pytest.param("/w", "", None, "~", id="no-home"),
        pytest.param("/w", "/h", "rel", "/x", id="base"),
    ],
)
def test_a_directory_to_start_from_must_be_absolute(cwd: str, home: str, base: str | None, text: str) -> None:
    with pytest.raises(InvalidTextError, match="is not absolute"):
        PathPattern.parse(text, cwd=cwd, home=home, base=base)


@pytest.mark.parametrize(
    ("text", "path", "depth"),
    [
        pytest.param("/a/b", "/a/b", 2, id="itself"),
        pytest.param("/a/b", "/a/b/c/d", 2, id="below"),
        pytest.param("/a/b", "/a", None, id="above"),
        pytest.param("/a/b", "/a/bc", None, id="a-longer-name"),
        pytest.param("/", "/a", 0, id="the-root"),
        pytest.param("/", "/", 0, id="the-root-itself"),
        pytest.param("/A", "/a", None, id="case-counts"),
        pytest.param("/a/*", "/a", None, id="star-needs-a-name"),
        pytest.param("/a/*", "/a/b/c", 2, id="star-covers-below"),
        pytest.param("/a/*", "/a/.b", 2, id="a-leading-dot-is-not-special"),
        pytest.param("/a/*.py", "/a/b.py", 2, id="suffix"),
        pytest.param("/a/*.py", "/a/b.pyc", None, id="suffix-no-more"),
        pytest.param("/a/*.py", "/a/b/c.py", None, id="star-stays-in-one-name"),
        pytest.param("/a/**/x", "/a/x", 2, id="deep-may-be-nothing"),
        pytest.param("/a/**/x", "/a/b/c/x/y", 4, id="deep"),
        pytest.param("/a/**/x", "/a/x/b/x/c", 4, id="the-deepest-match-counts"),
        pytest.param("/a/**/b/**/c", "/a/b/b/c", 4, id="two-deeps"),
        pytest.param("/**/b/**/b/c", "/b/x/b/y/b/c", 6, id="deeps-that-must-go-back"),
        pytest.param("/a/**/**/x", "/a/x", 2, id="deeps-in-a-row-are-one"),
        pytest.param("/a**z", "/abz", 1, id="two-stars-in-a-name-are-one"),
        pytest.param("/a?c", "/abc", 1, id="question-mark"),
        pytest.param("/a?c", "/ac", None, id="question-mark-is-one"),
        pytest.param("/a?", "/a\udcff", 1, id="question-mark-takes-a-byte"),
        pytest.param("/[a-c]", "/b", 1, id="range"),
        pytest.param("/[a-c]", "/d", None, id="out-of-range"),
        pytest.param("/[!a-c]", "/d", 1, id="negated"),
        pytest.param("/[^a-c]", "/b", None, id="negated-by-caret"),
        pytest.param("/[]x]", "/]", 1, id="bracket-first-in-a-set"),
        pytest.param("/[a-]", "/-", 1, id="dash-last-in-a-set"),
        pytest.param(r"/[\]]", "/]", 1, id="escape-in-a-set"),
        pytest.param(r"/\**", "/*x", 1, id="escaped-star-then-star"),
        pytest.param(r"/\**", "/x", None, id="escaped-star-is-a-star"),
        pytest.param("/*a*b*c", "/xaxbxbxc", 1, id="stars-that-must-go-back"),
        pytest.param("/*aab", "/aaab", 1, id="a-star-that-must-give-back-what-it-passed"),
        pytest.param("/a/*/**", "/a/b/c", 2, id="trailing-deep-after-a-star"),
    ],
)
def test_depth_on_a_path(text: str, path: str, depth: int | None) -> None:
    pattern = parse(text)
    assert pattern.depth_on(path) == depth
    assert pattern.matches_exactly(path) == (depth == len(names_of(path)))


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        pytest.param("a/b*/c", "/srv/repo/a", id="up-to-the-first-wildcard"),
        pytest.param("*", "/srv/repo", id="cwd"),
        pytest.param("/**/x", "/", id="root"),
        pytest.param(r"a\*/b?", "/srv/repo/a*", id="escapes-are-names"),
    ],
)
def test_static_prefix(text: str, prefix: str) -> None:
    assert (parse(text).static_prefix, parse(text).is_glob) == (prefix, True)


def test_the_directory_that_a_glob_starts_from_is_names() -> None:
    pattern = PathPattern.parse("*.py", cwd="/w/a*[b", home=HOME)
    assert pattern.path == r"/w/a\*\[b/*.py"
    assert pattern.matches_exactly("/w/a*[b/x.py")
    assert not pattern.matches_exactly("/w/axx[b/x.py")


def test_a_glob_can_be_moved() -> None:
    moved = parse("link/*.py").moved_to("/real[1]")
    assert (moved.text, moved.path) == ("link/*.py", r"/real\[1\]/*.py")
    assert moved.matches_exactly("/real[1]/x.py")


def test_hostile_wildcards_end() -> None:
    name = parse("/" + "*a" * 1000 + "b")
    assert not name.matches_exactly("/" + "a" * 4000)
    deep = parse("/" + "**/a/" * 500 + "b")
    assert not deep.matches_exactly("/a" * 1000)


def test_a_pattern_prints_as_written() -> None:
    assert str(parse("~/x/**")) == "~/x/**"


names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]) | st.sampled_from("*?[]\\{},~!.\udcff")
)
paths = st.lists(names.filter(lambda name: name not in ("", ".", "..")), max_size=4).map(
    lambda some: spelled("/" + "/".join(some))
)


@given(st.text(st.characters() | st.sampled_from("*?[]\\{},~!-./")), st.none() | st.just("/base"), paths)
def test_no_text_raises_anything_but_our_own_error(text: str, base: str | None, path: str) -> None:
    try:
        pattern = parse(text, base)
    except StockadeError:
        return
    pattern.depth_on(path)
    again = PathPattern.parse(
        pattern.path if pattern.is_glob else PathPattern.literal(pattern.path).text, cwd=CWD, home=HOME
    )
    assert again.parts == pattern.parts


@given(paths, paths)
def test_a_literal_means_that_path_whatever_its_characters(path: str, other: str) -> None:
    pattern = PathPattern.literal(path)
    assert pattern.path == path
    assert pattern.matches_exactly(path)
    assert (pattern.depth_on(other) is not None) == is_at_or_below(other, path)
    assert parse(pattern.text) == pattern
