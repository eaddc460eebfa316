"""What the rules say to one file; what becomes of connections is in ``tests/enforcement/test_denied_sockets.py``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import denied_sockets
from stockade.platforms.linux.denied_sockets import DeniedSockets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREAD = os.getpid()


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    # As a supervisor stands there: in a /proc in which its callers have numbers.
    monkeypatch.chdir("/proc")
    descriptor = os.open("/", os.O_PATH)
    yield descriptor
    os.close(descriptor)


def _denied(root: int, *texts: object, writable: object = "") -> DeniedSockets:
    return DeniedSockets(
        [os.fsencode(str(text)) for text in texts], [os.fsencode(str(writable))] if writable else [], root
    )


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        (b"/run/s", True),
        (b"/run/s/below", True),
        (b"//run/s", True),
        (b"///run//./s/", True),
        (b"/x/../run/s", True),
        (b"/run/sx", False),
        (b"/run/a.sock", True),
        (b"/run/a/b.sock", False),
        (b"/run/odd\\[1]", False),
        (b"/run/odd[1]\n\xff", True),
        (b"/", False),
    ],
)
def test_a_path_is_covered_by_its_meaning(root: int, path: bytes, *, covered: bool) -> None:
    denied = DeniedSockets([b"/run/s", b"/run/*.sock", b"/run/odd\\[1]\n\xff"], [], root)
    assert denied.cover(path) == covered


@given(st.binary(min_size=1, max_size=108))
def test_any_path_is_judged(path: bytes) -> None:
    assert not DeniedSockets([b"/run/none/s"], [], -1).cover(b"/p/" + path.replace(b"..", b"__"))


@pytest.mark.parametrize(
    ("text", "writable", "reaches"),
    [
        pytest.param("/w/s", "/w", True, id="in it"),
        pytest.param("/w", "/w/x", True, id="around it"),
        pytest.param("/**/s", "/w", True, id="everywhere"),
        pytest.param("/run/s", "/w", False, id="elsewhere"),
        pytest.param("/wide/s", "/w", False, id="a longer name"),
        pytest.param("/run/s", "", False, id="nothing is writable"),
    ],
)
def test_a_rule_reaches_into_writable_places_or_not(root: int, text: str, writable: str, *, reaches: bool) -> None:
    assert _denied(root, text, writable=writable).reach_writable == reaches


def test_a_file_is_refused_by_path_by_words_and_by_what_a_denied_path_leads_to(root: int, tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "real").mkdir()
    (top / "way").symlink_to("real")
    (top / "real" / "s").touch()
    (top / "other").hardlink_to(top / "real" / "s")
    (top / "free").touch()
    denied = _denied(root, top / "way" / "s", top / "none" / "s")
    other, free = os.fsencode(top / "other"), os.fsencode(top / "free")
    way = os.fsencode(top / "way" / "s")
    about, freely = (top / "other").stat(), (top / "free").stat()
    assert denied.refusal(THREAD, other, way, freely) == way
    assert denied.refusal(THREAD, way, free, freely) == way
    assert denied.refusal(THREAD, other, other, about) == way
    assert denied.refusal(THREAD, free, free, freely) == b""
    assert denied.refusal(THREAD, os.fsencode(top / "x/../way/s"), free, freely) == b""
    assert denied.refusal(THREAD, other, b"", about) == way


def test_where_commands_can_put_links_a_denied_path_is_not_walked(root: int, tmp_path: Path) -> None:
    """One of theirs may lead through thousands of names, while others wait."""
    top = tmp_path.resolve()
    (top / "s").touch()
    (top / "link").symlink_to("s")
    about = (top / "s").stat()
    for writable, found in (("", os.fsencode(top / "link")), (top, b"")):
        denied = _denied(root, top / "link", writable=writable)
        assert denied.refusal(THREAD, b"/s", b"/s", about) == found


def test_a_server_is_known_by_the_name_that_it_was_bound_to(
    root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path.resolve()
    (top / "real").mkdir()
    (top / "way").symlink_to("real")
    place = b"self/fd/%d" % root
    denied = _denied(root, top / "real" / "*.sock", writable=top)
    free, bound = os.fsencode(top / "x"), os.fsencode(top / "real" / "a.sock")
    linked = os.fsencode(top / "way" / "a.sock")
    for still, moved in ((True, b""), (False, free)):
        monkeypatch.setattr(denied_sockets, "_is_still", lambda _, still=still: still)
        assert denied.disguise(THREAD, {bound}, free, place) == bound
        assert denied.disguise(THREAD, {linked}, free, place) == linked
        assert denied.disguise(THREAD, {free}, free, place) == b""
        assert denied.disguise(THREAD, {b"a.sock"}, free, place) == moved
        assert denied.disguise(THREAD, set(), free, place) == moved
    elsewhere = _denied(root, "/nowhere/*.sock", writable=top)
    assert elsewhere.disguise(THREAD, {b"a.sock"}, free, place) == b""


def test_what_cannot_be_looked_at_may_have_been_moved() -> None:
    assert not denied_sockets._is_still(b"/nowhere")
