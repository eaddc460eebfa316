"""Connections taken in, each with a task of its own, until they are over or the service is closed.

Rules: listening sockets come from outside and are the service's own from then on. Whatever goes wrong with one
connection ends that one alone; if the system has no descriptor left, nothing is taken in for a moment. One timer looks
after all that lies idle. A client that goes away ends the work that was being done for it. Once ``close`` has returned
there is no task, no timer and no socket left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from stockade.annotation import TYPE_CHECKING, Final, Protocol, TypeAlias
from stockade.network.limits import Admissions, ProxyLimits
from stockade.network.relay import Relays
from stockade.network.stream import Stream
from stockade.network.transport import SocketTransport

if TYPE_CHECKING:
    import socket

    from stockade.network.limits import Ticket

_AT_ONCE: Final = 64
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
    """One accepted connection."""

    def __init__(self, service: Service, connection: socket.socket, ticket: Ticket) -> None:
        """Keep what belongs to it."""
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

    def join(self, server: Stream) -> None:
        """Become a tunnel: from now on both connections live and end on their own."""
        if self.stream.lost or server.lost:
            message = "the connection was lost"
            raise ConnectionResetError(message)
        pair = self._relays.new(self._over)
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

    def __init__(self, serve: Serve, limits: ProxyLimits | None = None, admissions: Admissions | None = None) -> None:
        """Take who serves a connection; several services may share their admissions."""
        self.limits = limits or ProxyLimits()
        self.relays = Relays()
        self._serve = serve
        self._admissions = admissions or Admissions(self.limits)
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[Watched] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._closed = False

    def __len__(self) -> int:
        """Return how many connections there are."""
        return len(self._tasks) + len(self.relays)

    def listen(self, listener: socket.socket) -> None:
        """Take in what connects to a listening socket, from now on."""
        listener.setblocking(False)
        self._listeners.append(listener)
        if len(self._listeners) == 1:
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
        for _ in range(_AT_ONCE):
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

    def _start(self, connection: socket.socket, ticket: Ticket) -> None:
        connection.setblocking(False)
        visit = Visit(self, connection, ticket)
        SocketTransport(connection, visit.stream)
        task = asyncio.create_task(self._run(visit))
        visit.stream.when_lost(task.cancel)
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            visit.end()

        task.add_done_callback(done)

    async def _run(self, visit: Visit) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._serve(visit)
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
