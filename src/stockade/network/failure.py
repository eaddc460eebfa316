"""Why a connection that policy allows could not be made.

A failure is no refusal: it is about the world, not about rules, and is no violation. The kinds are few,
because each must have its answer in SOCKS (a reply code) and in HTTP (a status).
"""

from __future__ import annotations

from enum import Enum

from stockade.annotation import Final
from stockade.errors import StockadeError


class Failure(Enum):
    """What went wrong, in words."""

    NO_SUCH_NAME = "the name does not exist"
    NAME_FAILED = "the name could not be resolved"
    REFUSED = "the connection was refused"
    UNREACHABLE = "the host cannot be reached"
    TIMED_OUT = "the host did not answer in time"
    BUSY = "too many connections are being made"
    UPSTREAM_REFUSED = "the upstream proxy refused"
    UPSTREAM_CREDENTIALS = "the upstream proxy did not accept the credentials"
    UPSTREAM_BROKEN = "the upstream proxy gave no valid answer"
    OTHER = "the connection failed"


_HINTS: Final = {
    Failure.NO_SUCH_NAME: "check the spelling of the host",
    Failure.BUSY: "try again later, with fewer connections at once",
    Failure.UPSTREAM_REFUSED: "ask whoever runs the upstream proxy",
    Failure.UPSTREAM_CREDENTIALS: "put user and password into the proxy's address: http://user:password@host:port",
    Failure.UPSTREAM_BROKEN: "check that the upstream proxy's address and scheme are right",
}
_HINT: Final = "this is no rule of the sandbox: try again, or check the host"


class ConnectError(StockadeError):
    """An allowed connection could not be made; ``failure`` says why."""

    def __init__(self, failure: Failure, where: str, detail: str = "") -> None:
        """Say where it should have led; both texts must be safe to show."""
        more = f": {detail}" if detail else ""
        super().__init__(f"{where}: {failure.value}{more}", _HINTS.get(failure, _HINT))
        self.failure = failure
