"""What a supervisor must know of a jail, and what it needs of the host, which is opened before there are walls."""

from __future__ import annotations

import os

from stockade.platforms.linux.unix_diag import Listeners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.denied_sockets import DeniedSockets
    from stockade.platforms.linux.listings import Listings


class HostView:
    """What a supervisor needs of the host: its root and the way to its listening sockets. Opened on the host."""

    __slots__ = ("listeners", "root")

    def __init__(self) -> None:
        """Open both, as long as this is the host."""
        self.root = os.open(b"/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.listeners = Listeners()

    def close(self) -> None:
        """Give up what only a supervisor needs."""
        os.close(self.root)
        self.listeners.close()


class Supervision:
    """What a supervisor must know of a jail, with what it needs of the host."""

    __slots__ = ("absent", "capabilities", "denied", "is_listed", "listings", "private", "view")

    def __init__(  # noqa: PLR0913 - what a supervisor must know, all named
        self,
        view: HostView,
        absent: list[bytes],
        is_listed: Callable[[bytes], bool],
        capabilities: int,
        denied: DeniedSockets | None = None,
        listings: Listings | None = None,
        *,
        private: bytes = b"",
    ) -> None:
        """Own the view. In the ``private`` place commands see copies of the host's sockets, which lead nowhere."""
        self.view = view
        self.absent = absent
        self.is_listed = is_listed
        self.capabilities = capabilities
        self.denied = denied
        self.listings = listings
        self.private = private

    def close(self) -> None:
        """Give up what only a supervisor needs."""
        self.view.close()
