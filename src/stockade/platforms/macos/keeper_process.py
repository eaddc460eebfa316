"""The keeper of a session, as its owner has it: started once, told what to start, heard when something ended."""

from __future__ import annotations

import os
import socket
import sys

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.errors import UnavailableError
from stockade.platforms.macos import framing
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Sequence

_START: Final = "import sys; sys.path += sys.argv[1:]; from stockade.platforms.macos.keeper import main; main()"
_LINK: Final = 3
_GONE: Final = "the sandbox's keeper was killed"


class KeeperProcess:
    """One keeper. Belongs to one thread at a time."""

    def __init__(self) -> None:
        """Start it; raise ``UnavailableError`` if it cannot be."""
        self._end, theirs = socket.socketpair()
        try:
            self.pid = _spawn(theirs.fileno())
        except OSError as error:
            self._end.close()
            message = f"cannot start the sandbox's keeper: {error.strerror}"
            raise UnavailableError(message, "check the Python installation and the limit of processes") from error
        finally:
            theirs.close()
        self._running = True

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when it has something to say."""
        return self._end.fileno()

    def tell(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Have it do something; raise ``UnavailableError`` if it is gone."""
        try:
            framing.send(self._end, order, descriptors)
        except OSError as error:
            raise UnavailableError(_GONE, "run the command again") from error

    def receive(self) -> dict[str, Any] | None:
        """Return what it says, waiting for it; ``None`` if it is gone."""
        heard = framing.receive(self._end)
        return None if heard is None else heard[0]

    def close(self) -> None:
        """Let it end everything, and wait until it has; may be called again."""
        if self._running:
            self._running = False
            self._end.close()
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def package_path() -> str:
    """Return where this package is imported from."""
    path = os.path.abspath(__file__)
    for _ in __name__.split("."):
        path = os.path.dirname(path)
    return path


def _spawn(link: int) -> int:
    """Start the interpreter with the link as descriptor 3, streams that lead nowhere, and nothing else."""
    import fcntl

    words = [sys.executable, "-I", "-S", "-c", _START, package_path()]
    kept = [fcntl.fcntl(link, fcntl.F_DUPFD_CLOEXEC, _LINK + 1)]
    try:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        kept.append(nothing)
        # Above 3, whatever is free: no step below may overwrite what a later one needs.
        kept.append(fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, _LINK + 1))
        streams = [(os.POSIX_SPAWN_DUP2, kept[2], number) for number in range(_LINK)]
        actions = [*streams, (os.POSIX_SPAWN_DUP2, kept[0], _LINK)]
        return os.posix_spawn(words[0], words, {}, file_actions=actions, setpgroup=0, setsigmask=())
    finally:
        for descriptor in kept:
            os.close(descriptor)
