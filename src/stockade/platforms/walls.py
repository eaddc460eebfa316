"""The walls of this platform."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.platforms.backend import Walls


def early_walls(environment: Mapping[str, str]) -> Callable[[str], Walls]:
    """Start the helpers of walls now, and return what makes the walls of them later, once.

    For a program that is started for one command: it reads its settings while the helpers come up.
    """
    if os.uname().sysname != "Linux":
        return make_walls
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.temporary import base_directory

    jail = Jail.start(base_directory(environment))

    def walls(temporary: str) -> Walls:
        from stockade.platforms.linux.walls import LinuxWalls

        return LinuxWalls(temporary, jail, once=True)

    return walls


def make_walls(temporary: str) -> Walls:
    """Return walls that are not built yet, around a session with this temporary directory."""
    system = os.uname().sysname
    if system == "Linux":
        from stockade.platforms.linux.walls import LinuxWalls

        return LinuxWalls(temporary)
    if system == "Darwin":
        from stockade.platforms.macos.walls import MacWalls

        return MacWalls(temporary)
    message = f"there are no walls for this platform yet: {system}"
    raise UnavailableError(message, "use Linux, or WSL2 on Windows")
