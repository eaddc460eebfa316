from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.refusals import ELSEWHERE, MOST_PLACES, Refusals

WRITE, DELETE = (b"write", b"/x"), (b"delete", b"/x")


def test_the_first_is_news_and_the_rest_a_number() -> None:
    refusals = Refusals()
    assert [refusals.add(1, thread, WRITE) for thread in (7, 7, 8)] == [True, False, False]
    assert refusals.is_unsaid()
    assert refusals.take(1) == [(WRITE, 2)]
    assert not refusals.is_unsaid()
    assert refusals.end(1) == []


def test_another_way_to_the_same_place_is_the_same_attempt() -> None:
    refusals = Refusals()
    assert refusals.add(1, 7, WRITE)
    assert not refusals.add(1, 7, DELETE)
    assert not refusals.is_unsaid()
    assert refusals.add(1, 8, DELETE)


def test_commands_are_apart_and_end() -> None:
    refusals = Refusals()
    assert refusals.add(1, 7, WRITE)
    assert refusals.add(2, 8, WRITE)
    assert refusals.commands() == (1, 2)
    refusals.give_back(2, WRITE, 5)
    assert (refusals.end(1), refusals.end(2), refusals.commands()) == ([], [(WRITE, 5)], ())


def test_the_dead_are_forgotten_unless_something_is_left_to_be_said() -> None:
    refusals = Refusals()
    for command, thread in ((1, 7), (2, 8), (2, 8)):
        refusals.add(command, thread, WRITE)
    for command in (1, 2, 3):
        refusals.forget(command)
    assert (refusals.commands(), refusals.end(2)) == ((2,), [(WRITE, 1)])


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 400)), max_size=800))
def test_all_are_counted_and_few_are_kept(tried: list[tuple[int, int]]) -> None:
    refusals = Refusals()
    news = 0
    for index, (command, place) in enumerate(tried):
        news += refusals.add(command, index, (b"create", b"/%d" % place))
    for command in (1, 2, 3):
        unsaid = refusals.end(command)
        assert len(unsaid) <= MOST_PLACES + 1
        assert all(place == ELSEWHERE or place.startswith(b"/") for (_, place), _ in unsaid)
        news += sum(times for _, times in unsaid)
    assert news == len(tried)
