"""The owner's side of wrapped commands: the orders, and the socket where visitors come in.

The socket lies in a private directory of its own beside the session's temporary directory: no command sees it, only
this user can reach it, and if the owner is killed it is removed like any directory that nobody holds any more.
Whichever jail is the session's current one receives the visitors; see ``reception`` and ``visitor``.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SOCK_SEQPACKET, socket

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.platforms.linux.keeper_process import package_root
from stockade.platforms.linux.visitor import SOCKET
from stockade.platforms.temporary import TemporaryDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.platforms.linux.jail import Jail, Request

_START: Final = "import sys;sys.path.append(sys.argv[1]);from stockade.platforms.linux.visitor import main;main()"
_BACKLOG: Final = 128


class Door:
    """One listening socket, and what visitors may have run."""

    def __init__(self, leavings: str) -> None:
        """Open it, in a directory of its own in the one that holds sessions' temporary directories."""
        self._directory = TemporaryDirectory.make({"TMPDIR": os.path.dirname(leavings)})
        self._socket = socket(AF_UNIX, SOCK_SEQPACKET, 0)
        try:
            self._listen()
        except OSError as error:
            self.close()
            message = f"other programs cannot be let in: {error.strerror}"
            raise UnavailableError(message, "see whether the temporary directory can hold a socket") from error
        self._orders: dict[tuple[object, ...], tuple[int, Request]] = {}
        self._environments: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def _listen(self) -> None:
        """Bind through the directory's descriptor, for its path may be too long for an address."""
        place = os.open(self._directory.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        path = f"/proc/self/fd/{place}/{SOCKET}"
        try:
            self._socket.bind(path)
            os.chmod(path, 0o600)
        finally:
            os.close(place)
        self._socket.listen(_BACKLOG)

    def order(self, request: Request, jail: Jail) -> tuple[str, ...]:
        """Let visitors run this in the jail, and in those that follow; return the words that do."""
        environment = tuple(request.environment.items())
        key = (request.argv, request.directory, request.limits, environment)
        if key not in self._orders:
            shared = self._environments.setdefault(environment, request.environment)
            self._orders[key] = len(self._orders) + 1, request.but(environment=shared)
            jail.order(*self._orders[key])
        number, _ = self._orders[key]
        return sys.executable, "-I", "-S", "-c", _START, package_root(), self._directory.path, str(number)

    def lead_to(self, jail: Jail) -> None:
        """Have a jail receive all visitors from now on; the one before is to be told that it no longer does."""
        for number, request in self._orders.values():
            jail.order(number, request)
        jail.receive_visitors(self._socket.fileno())

    def close(self) -> None:
        """Let nobody in any more."""
        self._socket.close()
        self._directory.remove()
