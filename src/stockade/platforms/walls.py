"""The walls of this platform."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.platforms.backend import Observe, Walls


OBSERVE: Final = ("auto", "on", "off")


def early_walls(environment: Mapping[str, str], observe: Observe = "auto") -> Callable[[str], Walls]:
    """Start the helpers of walls now, and return what makes the walls of them later, once.

    For a program that is started for one command: it reads its settings while the helpers come up.
    """
    if os.uname().sysname != "Linux":
        return walls_of(observe)
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.temporary import base_directory

    jail = Jail.fork(base_directory(environment))

    def walls(temporary: str) -> Walls:
        from stockade.platforms.linux.walls import LinuxWalls

        return LinuxWalls(temporary, jail, once=True, observe=observe)

    return walls


def walls_of(observe: Observe) -> Callable[[str], Walls]:
    """Return what makes walls that tell so much of what they refuse. Raises if there is no such way."""
    if observe not in OBSERVE:
        message = f"observe cannot be {observe!r}"
        raise InvalidTextError(message, "use auto, on or off")

    def walls(temporary: str) -> Walls:
        return make_walls(temporary, observe)

    return walls


def make_walls(temporary: str, observe: Observe = "auto") -> Walls:
    """Return walls that are not built yet, around a session with this temporary directory."""
    system = os.uname().sysname
    if system == "Linux":
        from stockade.platforms.linux.walls import LinuxWalls

        return LinuxWalls(temporary, observe=observe)
    if system == "Darwin":
        from stockade.platforms.macos.walls import MacWalls

        return MacWalls(temporary, observe=observe)
    message = f"there are no walls for this platform yet: {system}"
    raise UnavailableError(message, "use Linux, or WSL2 on Windows")
