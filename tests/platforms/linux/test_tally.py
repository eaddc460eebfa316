"""Refusals are counted until they are told, and a flood of them stays small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.tally import KEPT, Tally, packed, unpacked


def test_the_same_again_is_one_more_time() -> None:
    tally = Tally()
    for path in (b"/b", b"/a", b"/b"):
        tally.add(5, path)
    tally.add(6, b"/b", 3)
    assert tally.who() == [5, 6]
    assert (tally.take(5), tally.take(5), bool(tally)) == ([(b"/b", 2), (b"/a", 1)], [], True)
    assert (tally.take(6), bool(tally)) == ([(b"/b", 3)], False)


def test_what_has_no_room_is_counted_without_a_name() -> None:
    tally = Tally()
    for number in range(KEPT + 7):
        tally.add(1, b"/%d" % number)
    tally.add(1, b"/0")
    tally.add(2, b"/other")
    told = tally.take(1)
    assert (len(told), told[0], told[-1]) == (KEPT + 1, (b"/0", 2), (b"", 7))
    tally.add(1, b"/again")
    assert (tally.take(1), tally.take(2)) == ([(b"/again", 1)], [(b"", 1)])


@given(st.lists(st.tuples(st.binary(), st.integers(0, 2**64 - 1))))
def test_refusals_travel_whole(refusals: list[tuple[bytes, int]]) -> None:
    assert unpacked(packed(refusals)) == refusals


def test_half_a_refusal_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        unpacked([b"/path"])
