"""Connections taken in, each with a task of its own if it needs one, until they are over or the service is closed.

Rules: listening sockets come from outside and are the service's own from then on. Whatever goes wrong with one
connection ends that one alone; if the system has no descriptor left, nothing is taken in for a moment. One timer looks
after all that lies idle. A client that goes away ends the work that was being done for it. Once ``close`` has returned
there is no task, no timer and no socket left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from stockade.annotation import TYPE_CHECKING, Final, Protocol, TypeAlias
from stockade.network.arrival import Arrival, Arrivals
from stockade.network.failure import Failure
from stockade.network.limits import Admissions, ProxyLimits
from stockade.network.relay import Relays
from stockade.network.stream import Stream
from stockade.network.transport import SocketTransport

if TYPE_CHECKING:
    import socket

    from stockade.network.limits import Ticket
    from stockade.network.screen import Screen
    from stockade.network.shortcut import Shortcut, Shortcuts

_AT_ONCE: Final = 16
_REST_SECONDS: Final = 0.1
_MOST_TURNS: Final = 100


class Watched(Protocol):
    """Something that is ended if nothing moves in it; ``seen`` is the watch's own."""

    seen: int

    @property
    def moved(self) -> int:
        """How much has moved."""
        ...

    def expire(self) -> None:
        """End."""
        ...


class Visit:
    """One accepted connection; its first request must be there by ``deadline``."""

    def __init__(self, service: Service, connection: socket.socket, ticket: Ticket, deadline: float) -> None:
        """Keep what belongs to it."""
        self.deadline = deadline
        self.connection = connection
        self.ticket = ticket
        self.limits = service.limits
        self.watch = service.watch
        self.stream = Stream()
        self._relays = service.relays
        self._when_over: list[Callable[[], None]] = [ticket.release]

    def when_over(self, call: Callable[[], None]) -> None:
        """Have something done once the connection is gone, or the tunnel that it became."""
        self._when_over.append(call)

    def join(self, server: Stream, screen: Screen | None = None) -> None:
        """Become a tunnel: from now on both connections live and end on their own, behind a screen if there is one."""
        if self.stream.lost or server.lost:
            message = "the connection was lost"
            raise ConnectionResetError(message)
        pair = self._relays.new(self._over)
        pair.screen = screen
        self.stream.give(pair.client)
        server.give(pair.server)
        pair.join()

    async def finish(self) -> None:
        """Close, such that the client can read what it was sent."""
        await self.stream.finish(self.limits.idle_seconds, self.limits.linger_seconds)

    def end(self) -> None:
        """Close what is still open, once nobody serves it any more."""
        if not self.stream.given:
            self.stream.abort()
            if not self.stream.began:
                self.connection.close()
            self._over()

    def _over(self) -> None:
        while self._when_over:
            self._when_over.pop()()


Serve: TypeAlias = Callable[[Visit], Awaitable[None]]


class Service:
    """Takes connections in and has each of them served."""

    def __init__(
        self,
        serve: Serve,
        limits: ProxyLimits | None = None,
        admissions: Admissions | None = None,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        """Take who serves a connection; several services may share their admissions.

        With ``shortcuts``, a connection that asks for a tunnel which those find is joined without being served.
        """
        self.limits = limits or ProxyLimits()
        self.relays = Relays(self.limits.handshake_seconds)
        self.arrivals = Arrivals(self.limits.handshake_seconds)
        self._shortcuts = shortcuts
        self._batch = 1
        self._serve = serve
        self._admissions = admissions or Admissions(self.limits)
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[Watched] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._closed = False

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._tasks) + len(self.relays) + len(self.arrivals)

    def listen(self, listener: socket.socket) -> None:
        """Take in what connects to a listening socket, from now on."""
        listener.setblocking(False)
        self._listeners.append(listener)
        if len(self._listeners) == 1:
            self.arrivals.open()
            self._plan_sweep()
        self._resume(listener)

    async def close(self) -> None:
        """End everything."""
        self._closed = True
        loop = asyncio.get_running_loop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for listener in self._listeners:
            loop.remove_reader(listener.fileno())
            listener.close()
        self._listeners.clear()
        self.arrivals.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.relays.close()
        for _ in range(_MOST_TURNS):
            # What was aborted is gone a few turns of the loop later.
            await asyncio.sleep(0)
            if not len(self):
                break
        await asyncio.sleep(0)

    def watch(self, watched: Watched) -> Callable[[], None]:
        """End something if nothing moves in it; return how to stop watching."""
        watched.seen = -1
        self._watched.add(watched)
        return lambda: self._watched.discard(watched)

    def _resume(self, listener: socket.socket) -> None:
        self._timers.pop(id(listener), None)
        asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener)

    def _pause(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener.fileno())
        self._timers[id(listener)] = loop.call_later(_REST_SECONDS, self._resume, listener)

    def _accept(self, listener: socket.socket) -> None:
        # To find that nobody else waits costs as much as a turn of the loop: more are taken the more there are.
        batch, self._batch = self._batch, 1
        for _ in range(batch):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._pause(listener)
                return
            ticket = self._admissions.admit()
            if ticket is None:
                connection.close()
            else:
                self._start(connection, ticket)
        self._batch = min(2 * batch, _AT_ONCE)

    def _start(self, connection: socket.socket, ticket: Ticket) -> None:
        connection.setblocking(False)
        if self._shortcuts is not None:
            arrival = Arrival(self, connection, ticket)
            ticket.cut_off = arrival.transport.abort
            arrival.start()
            return
        visit = Visit(self, connection, ticket, self.arrivals.deadline())
        ticket.cut_off = SocketTransport(connection, visit.stream).abort
        self._spawn(visit, self._serve)

    # What an arrival asks for

    def find(self, data: bytes, ticket: Ticket) -> Shortcut | None:
        """Return the tunnel that first bytes ask for, if it is one that can be made on the spot."""
        return None if self._shortcuts is None else self._shortcuts.find(data, ticket)

    def take_over(self, arrival: Arrival, deadline: float, data: bytes, *, ended: bool) -> None:
        """Serve a connection of which this much was read."""
        visit = self._visit(arrival, deadline)
        if data:
            visit.stream.data_received(data)
        if ended:
            visit.stream.eof_received()
        self._spawn(visit, self._serve)

    def finish(self, arrival: Arrival, deadline: float, shortcut: Shortcut, begun: socket.socket | Failure) -> None:
        """Go on with a tunnel whose server does not stand yet, or never will."""
        shortcuts = self._shortcuts
        assert shortcuts is not None  # noqa: S101 - it comes from there
        visit = self._visit(arrival, deadline)
        if not isinstance(begun, Failure):
            visit.when_over(begun.close)
        self._spawn(visit, lambda visit: shortcuts.finish(visit, shortcut, begun))

    def _visit(self, arrival: Arrival, deadline: float) -> Visit:
        visit = Visit(self, arrival.connection, arrival.ticket, deadline)
        visit.stream.connection_made(arrival.transport)
        arrival.transport.set_protocol(visit.stream)
        arrival.transport.resume_reading()
        return visit

    def _spawn(self, visit: Visit, work: Serve) -> None:
        task = asyncio.create_task(self._run(visit, work))
        visit.stream.when_lost(task.cancel)
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            visit.end()

        task.add_done_callback(done)

    async def _run(self, visit: Visit, work: Serve) -> None:
        loop = asyncio.get_running_loop()
        try:
            await work(visit)
        except OSError:
            return  # the client is gone, or took too long
        except Exception as error:  # noqa: BLE001 - a fault in one connection must not end the others
            loop.call_exception_handler({"message": "a connection was dropped", "exception": error})

    def _plan_sweep(self) -> None:
        timer = asyncio.get_running_loop().call_later(self.limits.idle_seconds, self._sweep)
        self._timers[id(self)] = timer

    def _sweep(self) -> None:
        self._plan_sweep()
        self.relays.sweep()
        for watched in tuple(self._watched):
            idle = watched.moved == watched.seen
            watched.seen = watched.moved
            if idle:
                watched.expire()
