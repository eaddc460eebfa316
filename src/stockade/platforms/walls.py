"""The walls of this platform."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from stockade.platforms.backend import Walls


def make_walls(temporary: str) -> Walls:
    """Return walls that are not built yet, around a session with this temporary directory."""
    system = os.uname().sysname
    if system == "Linux":
        from stockade.platforms.linux.walls import LinuxWalls

        return LinuxWalls(temporary)
    message = f"there are no walls for this platform yet: {system}"
    raise UnavailableError(message, "use Linux, or WSL2 on Windows")
