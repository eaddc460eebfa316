"""A connection that has just been accepted, until it is known what it wants: no task is made for it before that.

Its first bytes are looked at as soon as they are there, which often is at once. If they ask for a tunnel that can be
made on the spot (``shortcut``), and its server stands at once, the two are joined without a task, a future or a timer.
Whatever is different is handed over, with the bytes, to a task that serves it from the beginning; so is who says
nothing until its time is up, and hears from there what there is to be said about that.

Rules: one timer for all that wait. A fault ends the one connection.
"""

from __future__ import annotations

import asyncio

from stockade.annotation import TYPE_CHECKING, Protocol
from stockade.network.dial import begin, stands
from stockade.network.failure import Failure
from stockade.network.transport import SocketTransport

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from stockade.network.limits import Ticket
    from stockade.network.relay import Relays
    from stockade.network.shortcut import Shortcut


class Host(Protocol):
    """Where a connection arrives."""

    relays: Relays
    arrivals: Arrivals

    def find(self, data: bytes, ticket: Ticket) -> Shortcut | None:
        """Return the tunnel that first bytes ask for, if it is one that can be made on the spot."""
        ...

    def take_over(self, arrival: Arrival, deadline: float, data: bytes, *, ended: bool) -> None:
        """Serve a connection of which this much was read."""
        ...

    def finish(self, arrival: Arrival, deadline: float, shortcut: Shortcut, begun: socket.socket | Failure) -> None:
        """Go on with a tunnel whose server does not stand yet, or never will."""
        ...


class Arrival(asyncio.Protocol):
    """One connection, which must not block."""

    __slots__ = ("_host", "connection", "ticket", "transport")

    def __init__(self, host: Host, connection: socket.socket, ticket: Ticket) -> None:
        """Belong to where it arrived."""
        self._host = host
        self.connection = connection
        self.ticket = ticket
        self.transport = SocketTransport(connection, self, reading=False)

    def start(self) -> None:
        """Look at what is there; if that is nothing, wait for it."""
        data = self.transport.take()
        if data:
            self._look(data, self._host.arrivals.deadline())
        else:
            self._host.arrivals.add(self)
            self.transport.resume_reading()

    # What the transport tells

    def data_received(self, data: bytes) -> None:
        """Look at the first bytes."""
        self._look(data, self._host.arrivals.take(self))

    def eof_received(self) -> bool:
        """Let somebody else deal with who has nothing to say."""
        self._host.take_over(self, self._host.arrivals.take(self), b"", ended=True)
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        """Give its place up."""
        self._host.arrivals.take(self)
        self.ticket.release()

    # What becomes of it

    def expire(self, deadline: float) -> None:
        """Let somebody else tell the client that it took too long."""
        self._host.take_over(self, deadline, b"", ended=False)

    def _look(self, data: bytes, deadline: float) -> None:
        try:
            shortcut = self._host.find(data, self.ticket)
            if shortcut is None:
                self._host.take_over(self, deadline, data, ended=False)
                return
            begun = begin(shortcut.route.addresses[0], shortcut.route.port)
            if isinstance(begun, Failure) or not stands(begun):
                self._host.finish(self, deadline, shortcut, begun)
            else:
                self._join(shortcut, begun)
        except Exception as error:  # noqa: BLE001 - a fault in one connection must not end the others
            context = {"message": "a connection was dropped", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            self.transport.abort()

    def _join(self, shortcut: Shortcut, server: socket.socket) -> None:
        pair = self._host.relays.new(self.ticket.release)
        pair.client.adopt(self.transport)
        SocketTransport(server, pair.server, reading=False)
        pair.screen = shortcut.screen
        self.transport.write(shortcut.answer)
        if shortcut.rest:
            pair.client.data_received(shortcut.rest)
        pair.join()


class Arrivals:
    """All that have said nothing yet, each with the point in time by which it must have said what it wants."""

    def __init__(self, seconds: float) -> None:
        """Give each so many seconds."""
        self._seconds = seconds
        self._waiting: dict[Arrival, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._now: Callable[[], float] = _unknown

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._waiting)

    def open(self) -> None:
        """Begin, in the event loop that runs."""
        self._now = asyncio.get_running_loop().time

    def deadline(self) -> float:
        """Return by when one that comes now must have said what it wants."""
        return self._now() + self._seconds

    def add(self, arrival: Arrival) -> None:
        """Wait for one more."""
        deadline = self._waiting[arrival] = self.deadline()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._expire)

    def take(self, arrival: Arrival) -> float:
        """Wait for one no longer; return its point in time."""
        return self._waiting.pop(arrival, 0.0)

    def close(self) -> None:
        """End all at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for arrival in tuple(self._waiting):
            arrival.transport.abort()

    def _expire(self) -> None:
        # They stand in the order of their coming, and all have the same time: the first is the first to be late.
        self._timer = None
        now = self._now()
        for arrival, deadline in tuple(self._waiting.items()):
            if deadline > now:
                self._timer = asyncio.get_running_loop().call_at(deadline, self._expire)
                return
            del self._waiting[arrival]
            arrival.expire(deadline)


def _unknown() -> float:
    message = "nothing arrives before there is an event loop"
    raise RuntimeError(message)
