from __future__ import annotations

from stockade.platforms.backend import Launch, Outcome, Walls
from stockade.platforms.linux.walls import LinuxWalls


def test_values_have_sensible_defaults() -> None:
    launch = Launch(("true",), {}, "/")
    assert (launch.limits, launch.terminal, launch.groups) == ((), False, ())
    assert Outcome(1).status == 0


def test_linux_offers_all_that_a_session_asks_for() -> None:
    asked = {name for name in vars(Walls) if not name.startswith("_")}
    assert asked <= set(dir(LinuxWalls))
