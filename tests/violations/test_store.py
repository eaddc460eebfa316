from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from stockade.violations.store import Violations
from stockade.violations.violation import Occasion, Operation, Violation


def violation(target: str, command: str = "c", times: int = 1, time: float = 0.0) -> Violation:
    return Violation.refused(Operation.WRITE, target, Occasion(time, command, "", times), why="w", remedy="r")


def targets(store: Violations) -> list[str]:
    return [each.target for each in store]


def test_starts_empty() -> None:
    store = Violations()
    assert (len(store), list(store), store.total, store.dropped, store.failure) == (0, [], 0, 0, "")


def test_keeps_the_last_hundred_and_counts_all() -> None:
    store = Violations()
    for number in range(250):
        store.add(violation(f"/{number}"))
    assert targets(store) == [f"/{number}" for number in range(150, 250)]
    assert (len(store), store.total, store.dropped, store.dropped_of("c")) == (100, 250, 150, 150)


def test_the_same_again_only_counts() -> None:
    store = Violations()
    store.add(violation("/a", time=1.0))
    store.add(violation("/b", time=2.0))
    store.add(violation("/a", time=3.0, times=4))
    assert list(store) == [violation("/a", time=1.0, times=5), violation("/b", time=2.0)]
    assert store.total == 6


def test_the_same_of_another_command_is_another() -> None:
    store = Violations()
    store.add(violation("/a", "c1"))
    store.add(violation("/a", "c2"))
    assert store.of("c1") == (violation("/a", "c1"),)
    assert store.of("c2") == (violation("/a", "c2"),)
    assert store.of("c3") == ()


def test_another_reason_is_another() -> None:
    store = Violations()
    store.add(violation("/a"))
    for changed in ({"why": "x"}, {"rule": "x"}, {"source": "x"}, {"operation": Operation.READ}):
        store.add(violation("/a").but(**changed))
    assert len(store) == 5


def test_a_flood_pushes_out_its_own() -> None:
    store = Violations()
    for number in range(10):
        store.add(violation(f"/{number}", "quiet"))
    for number in range(10_000):
        store.add(violation(f"/{number}", "loud"))
    assert [each.target for each in store.of("quiet")] == [f"/{number}" for number in range(10)]
    assert [each.target for each in store.of("loud")] == [f"/{number}" for number in range(9_910, 10_000)]
    assert (store.total, store.dropped) == (10_010, 9_910)
    assert (store.dropped_of("quiet"), store.dropped_of("loud")) == (0, 9_910)


def test_of_many_commands_the_last_are_kept() -> None:
    store = Violations()
    for number in range(2_500):
        store.add(violation("/a", str(number), times=2))
    assert [each.command for each in store] == [str(number) for number in range(2_400, 2_500)]
    assert (store.total, store.dropped) == (5_000, 4_800)
    assert (store.dropped_of("2399"), store.dropped_of("0")) == (2, 0)  # the oldest counts are in the sum alone
    assert len(store._lost) == 1_000


def test_what_many_left_before_keeps_no_room_from_the_next() -> None:
    store = Violations()
    for number in range(200):
        store.add(violation("/a", str(number)))
    for number in range(5):
        store.add(violation(f"/{number}", "next"))
    assert [each.target for each in store.of("next")] == [f"/{number}" for number in range(5)]
    assert store.dropped_of("next") == 0


def test_what_is_held_stays_bounded() -> None:
    store = Violations()
    for number in range(20_000):
        store.add(violation(f"/{number}", str(number % 7)))
    held = (len(store._entries), sum(map(len, store._held.values())), len(store._held), len(store._lost))
    assert held == (100, 100, 7, 7)


def test_subscribers_are_told_until_they_leave() -> None:
    store = Violations()
    told: list[Violation] = []
    unsubscribe = store.subscribe(told.append)
    store.add(violation("/a"))
    unsubscribe()
    unsubscribe()
    store.add(violation("/b"))
    assert told == [violation("/a")]


def test_a_subscriber_may_come_twice() -> None:
    store = Violations()
    told: list[Violation] = []
    leave = store.subscribe(told.append)
    store.subscribe(told.append)
    store.add(violation("/a"))
    leave()
    store.add(violation("/b"))
    assert [each.target for each in told] == ["/a", "/a", "/b"]


def test_repetitions_are_told_as_their_number_doubles() -> None:
    store = Violations()
    told: list[int] = []
    store.subscribe(lambda each: told.append(each.times))
    for _ in range(1_000):
        store.add(violation("/a"))
    assert told == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_a_failing_subscriber_breaks_nothing() -> None:
    store = Violations()
    told: list[Violation] = []

    def fail(_: Violation) -> None:
        message = "no\n<way>"
        raise RuntimeError(message)

    store.subscribe(fail)
    store.subscribe(told.append)
    store.add(violation("/a"))
    assert told == list(store) == [violation("/a")]
    assert store.failure == "RuntimeError: no\\x0a\\x3cway\\x3e"


def test_a_subscriber_may_use_the_store() -> None:
    store = Violations()

    def listen(each: Violation) -> None:
        assert store.of("c") == (each,)
        store.subscribe(lambda _: None)
        store.clear()

    store.subscribe(listen)
    store.add(violation("/a"))
    assert (store.total, store.failure) == (0, "")


def test_clear_forgets_all_but_the_subscribers() -> None:
    store = Violations(kept=1)
    told: list[Violation] = []
    store.subscribe(told.append)
    store.add(violation("/a"))
    store.add(violation("/b"))
    store.clear()
    assert (list(store), store.of("c"), store.total, store.dropped, store.dropped_of("c")) == ([], (), 0, 0, 0)
    store.add(violation("/a"))
    assert (store.total, len(told)) == (1, 3)


def test_iterating_gives_a_snapshot() -> None:
    store = Violations(kept=2)
    store.add(violation("/a"))
    seen = []
    for each in store:
        store.add(violation("/b"))
        store.clear()
        seen.append(each.target)
    assert seen == ["/a"]


def test_threads_lose_nothing() -> None:
    store = Violations()

    def add(command: str) -> None:
        for number in range(2_000):
            store.add(violation(f"/{number % 300}", command))

    threads = [threading.Thread(target=add, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.total == 8_000 == sum(each.times for each in store) + store.dropped


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8), st.integers(1, 5)), max_size=60),
    st.integers(1, 8),
)
def test_the_sum_is_always_right(added: list[tuple[str, int, int]], kept: int) -> None:
    store = Violations(kept)
    for command, number, times in added:
        store.add(violation(str(number), command, times))
    assert store.total == sum(times for _, _, times in added)
    assert store.total == sum(each.times for each in store) + store.dropped
    assert store.dropped == sum(map(store.dropped_of, "abc"))
    assert len(store) <= kept
    assert sorted(map(hash, store)) == sorted(hash(each) for command in "abc" for each in store.of(command))
