from __future__ import annotations

from stockade.platforms.linux.slow_callers import FIRST_SPAN, SlowCallers


def _suspected(callers: SlowCallers, caller: int) -> int:
    """Return for how many calls a caller is suspect."""
    calls = 0
    while callers.is_suspect(caller):
        calls += 1
    return calls


def test_nobody_is_suspect_by_itself() -> None:
    assert not SlowCallers().is_suspect(1)


def test_a_suspicion_ends_and_the_next_lasts_twice_as_long() -> None:
    callers = SlowCallers()
    spans = []
    for _ in range(3):
        callers.note(1)
        spans.append(_suspected(callers, 1))
    assert spans == [FIRST_SPAN, 2 * FIRST_SPAN, 4 * FIRST_SPAN]


def test_only_who_was_slow_is_suspect_and_its_successor_is_not() -> None:
    callers = SlowCallers()
    callers.note(1)
    assert not callers.is_suspect(2)
    callers.forget(1)
    assert not callers.is_suspect(1)
    callers.note(1)
    assert _suspected(callers, 1) == FIRST_SPAN
