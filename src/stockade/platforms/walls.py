"""The walls of this platform."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError, UnavailableError
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.platforms.backend import Observe, Walls


OBSERVE: Final = ("auto", "on", "off")
#: What process 1 is called inside, where nobody else can be it: a fork of the command line, and that of a library.
KEEPER: Final = b"keeper of a sandbox"
_LIBRARYS_KEEPER: Final = b"from stockade.platforms.linux.keeper import main\n"
_LONGEST: Final = 4096
_INSIDE: Final = "already inside a sandbox, where no second one can be built"
_AS_IT_IS: Final = "run the command as it is, without stockade: it is behind the walls already"


def require_outside() -> None:
    """Raise if this process runs inside walls of ours: nothing can be built there, so that nothing is to be made.

    Variables prove nothing, and these words send people past the walls. So only the kernel is asked.
    """
    if _is_inside():
        raise UnavailableError(_INSIDE, _AS_IT_IS)


def already_inside(error: Exception, environment: Mapping[str, str]) -> UnavailableError | None:
    """Return better words for a failure to build walls, if those of another program are around us."""
    if environment.get("SANDBOX_RUNTIME") != "1" or (os.uname().sysname == "Linux" and not is_confined()):
        return None
    return UnavailableError(f"{_INSIDE}: {error}", _AS_IT_IS)


def is_confined() -> bool:
    """Tell whether this process has a filter of system calls and can gain no rights, as every command inside."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        state = file.read()
        return "\nNoNewPrivs:\t1\n" in state and "\nSeccomp:\t2\n" in state
    return False


def _is_inside() -> bool:
    with suppress(OSError):
        first = os.open("/proc/1/cmdline", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _is_keeper(os.read(first, _LONGEST)) and is_confined()
        finally:
            os.close(first)
    if os.uname().sysname != "Darwin":
        return False
    from stockade.platforms.macos.inside import is_inside

    return is_inside(os.environ)


def _is_keeper(words: bytes) -> bool:
    name = words.rstrip(b"\0")  # cut where the owner's own words were shorter
    return (name.startswith(b"keeper") and KEEPER.startswith(name)) or _LIBRARYS_KEEPER in words


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
