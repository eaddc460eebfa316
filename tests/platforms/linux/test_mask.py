"""Masks answer no to everything but the way to what is shown again, and know what they refused."""

from __future__ import annotations

import stat
from errno import EACCES, ENOSYS

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import fuse
from stockade.platforms.linux.fuse import Attributes, Request
from stockade.platforms.linux.mask import Masks, Node, name_of

TIME = 9
FOREVER = 1 << 30
PASS = stat.S_IFDIR | 0o111


def masks() -> Masks:
    """A hidden directory with two ways in it, and a hidden place without."""
    return Masks.over(
        [(0, b"/h"), (3, b"/k")],
        [(0, b"/h/a/open"), (0, b"/h/a/file")],
        b"/h/a/open".__eq__,
        TIME,
    )


def node(masks: Masks, path: bytes, *, directory: bool = True) -> Node:
    """Return the node of a path."""
    kind = stat.S_ISDIR if directory else stat.S_ISREG
    return next(node for node in masks.nodes.values() if node.path == path and kind(node.mode))


MODES = {
    (b"", True): PASS,
    (b"/h", True): PASS,
    (b"/h", False): stat.S_IFREG | 0o111,
    (b"/h/a", True): PASS,
    (b"/h/a/open", True): PASS,
    (b"/h/a/file", False): stat.S_IFREG,
    (b"/k", True): stat.S_IFDIR,
    (b"/k", False): stat.S_IFREG | 0o111,
}


def test_a_mask_has_what_leads_through_it_and_nothing_else() -> None:
    made = masks()
    assert {(node.path, stat.S_ISDIR(node.mode)): node.mode for node in made.nodes.values()} == MODES
    assert set(made.root.children) == {name_of(index, directory=kind) for index in (0, 3) for kind in (False, True)}


FOUND = {
    "a mask": (b"", b"d0", (b"/h", True)),
    "a mask of a file": (b"", b"f3", (b"/k", False)),
    "a way": (b"/h", b"a", (b"/h/a", True)),
    "a place that is shown": (b"/h/a", b"open", (b"/h/a/open", True)),
    "a file that is shown": (b"/h/a", b"file", (b"/h/a/file", False)),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_way_is_found_and_is_no_refusal(name: str) -> None:
    made = masks()
    parent, child, (path, kind) = FOUND[name]
    found = node(made, path, directory=kind)
    answer = made.answer(Request(fuse.LOOKUP, 7, node(made, parent).number, 1, child + b"\0"))
    attributes = Attributes(found.number, MODES[path, kind], TIME)
    assert (answer.reply, answer.refused) == (fuse.entry(7, attributes, FOREVER), b"")


REFUSED = {
    "a name in a mask": (fuse.LOOKUP, b"/k", b"secret\0", b"/k/secret"),
    "a name beside a way": (fuse.LOOKUP, b"/h", b"b\0", b"/h/b"),
    "an odd name": (fuse.LOOKUP, b"/k", b"\n\xff</x>\0", b"/k/\n\xff</x>"),
    "listing": (fuse.OPENDIR, b"/k", bytes(8), b"/k"),
    "listing a way": (fuse.OPENDIR, b"/h/a", bytes(8), b"/h/a"),
    "opening": (fuse.OPEN, b"/k", bytes(8), b"/k"),
    "asking for leave": (fuse.ACCESS, b"/k", bytes(8), b"/k"),
    "what nobody has heard of": (4095, b"/k", b"", b"/k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_everything_else_is_refused_and_known(name: str) -> None:
    made = masks()
    opcode, path, body, refused = REFUSED[name]
    answer = made.answer(Request(opcode, 7, node(made, path).number, 1, body))
    assert (answer.reply, answer.refused) == (fuse.error(7, EACCES), refused)


HARMLESS = {
    "attributes": (fuse.GETATTR, fuse.status(7, Attributes(1, PASS, TIME), FOREVER)),
    "room": (fuse.STATFS, fuse.space(7)),
    "extended attributes": (fuse.GETXATTR, fuse.error(7, ENOSYS)),
    "birth": (fuse.STATX, fuse.error(7, ENOSYS)),
    "the end": (fuse.DESTROY, fuse.error(7, 0)),
    "forgetting": (fuse.FORGET, None),
    "forgetting many": (fuse.BATCH_FORGET, None),
    "an interruption": (fuse.INTERRUPT, None),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_shows_nothing_is_answered_and_is_no_refusal(name: str) -> None:
    opcode, reply = HARMLESS[name]
    answer = masks().answer(Request(opcode, 7, fuse.ROOT, 1))
    assert (answer.reply, answer.refused) == (reply, b"")


@given(st.integers(0, 2**32 - 1), st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1)), st.binary(max_size=60))
def test_no_request_gets_more_than_a_way(opcode: int, number: int, body: bytes) -> None:
    made = masks()
    answer = made.answer(Request(opcode, 7, number, 1, body))
    if opcode in fuse.UNANSWERED:
        assert answer.reply is None
        return
    assert answer.reply is not None
    granted = int.from_bytes(answer.reply[4:8], "little", signed=True) == 0
    assert not granted or opcode in {fuse.LOOKUP, fuse.GETATTR, fuse.STATFS, fuse.INIT, fuse.DESTROY}
    assert not (granted and answer.refused)
