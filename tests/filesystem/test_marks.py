from __future__ import annotations

import pytest

from stockade.filesystem.marks import Mark, Marks
from stockade.filesystem.plan import Operation

A, B, C = "/a", "/a/b", "/a/b/c"
HIDDEN, WRITABLE, READ_ONLY = Operation.HIDDEN, Operation.WRITABLE, Operation.READ_ONLY


@pytest.mark.parametrize(
    ("marks", "mode"),
    [
        pytest.param([], READ_ONLY, id="nothing"),
        pytest.param([(A, Mark.OPENS)], WRITABLE, id="opened-above"),
        pytest.param([(A, Mark.OPENS), (B, Mark.BARS)], READ_ONLY, id="barred-below"),
        pytest.param([(A, Mark.BARS), (B, Mark.OPENS)], READ_ONLY, id="a-bar-wins-whatever-the-depth"),
        pytest.param([(A, Mark.HIDES), (A, Mark.OPENS)], HIDDEN, id="hidden-though-opened"),
        pytest.param([(A, Mark.HIDES), (B, Mark.SHOWS)], READ_ONLY, id="shown-again"),
        pytest.param([(A, Mark.HIDES), (B, Mark.SHOWS), (C, Mark.OPENS)], WRITABLE, id="shown-and-opened"),
        pytest.param([(A, Mark.HIDES), (A, Mark.SHOWS)], HIDDEN, id="a-tie-hides"),
        pytest.param([(A, Mark.HIDES), (B, Mark.SHOWS), (C, Mark.HIDES)], HIDDEN, id="hidden-again"),
        pytest.param([(A, Mark.HIDES_BY_POLICY), (B, Mark.SHOWS)], HIDDEN, id="only-the-administrator"),
        pytest.param([(A, Mark.HIDES_BY_POLICY), (B, Mark.SHOWS_BY_POLICY)], READ_ONLY, id="the-administrator"),
        pytest.param([(A, Mark.HIDES), (B, Mark.SHOWS_BY_POLICY)], READ_ONLY, id="shows-for-all"),
    ],
)
def test_modes(marks: list[tuple[str, Mark]], mode: Operation) -> None:
    made = Marks()
    for path, mark in marks:
        made.add(path, mark, f"{mark.value} {path}")
    assert made.state_at(C).mode is mode
    assert made.state_at("/").mode is READ_ONLY
    assert set(made) == {path for path, _ in marks}


def test_the_reason_is_that_of_the_mark_that_decides() -> None:
    made = Marks()
    made.add(A, Mark.OPENS, "opened")
    made.add(B, Mark.BARS, "barred")
    made.add(C, Mark.HIDES, "hidden")
    assert [made.state_at(path).reason for path in ("/", A, B, C)] == ["", "opened", "barred", "hidden"]
