from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.platforms.backend import Outcome
from stockade.sandbox.limits import Limit, Limits
from stockade.sandbox.session import Running, Session

if TYPE_CHECKING:
    from tests.sandbox.conftest import Ground

    from stockade.platforms.backend import Walls


def running(outcome: Outcome | None = None, **limits: int) -> Running:
    made = Running("command-1", "x", Limits(**limits))
    if outcome is not None:
        made.finish(outcome)
    return made


def test_how_a_status_becomes_a_result() -> None:
    assert running(Outcome(1, 3 << 8)).result().exit_code == 3
    killed = running(Outcome(1, 9)).result()
    assert (killed.exit_code, killed.signal) == (None, 9)
    assert running(Outcome(1, 24), cpu_seconds=1).result().limit is Limit.CPU


def test_a_command_that_runs_has_no_result() -> None:
    with pytest.raises(StockadeError, match="has not ended"):
        running().result()


def test_a_command_that_could_not_start_says_why() -> None:
    with pytest.raises(StockadeError, match="exec: no such thing"):
        running(Outcome(1, 127 << 8, failure="exec: no such thing", error=2)).result()


def test_a_command_that_was_lost_is_not_said_to_have_never_started() -> None:
    with pytest.raises(UnavailableError) as caught:
        running(Outcome(1, failure="the helpers were killed")).result()
    assert (caught.value.message, caught.value.hint) == ("the helpers were killed", "try again")


def test_a_session_that_is_not_open_says_so(ground: Ground) -> None:
    def never(_temporary: str) -> Walls:
        message = "no walls"
        raise UnavailableError(message)

    session = Session(ground.policy(), never)
    with pytest.raises(StockadeError, match="not open"):
        session.fileno()
    with pytest.raises(UnavailableError, match="no walls"):
        session.open()
    with pytest.raises(StockadeError, match="not open"):
        session.start("true", (0, 1, 2))
    session.close()
