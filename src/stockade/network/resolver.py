"""Names become addresses here, once per connection, and off the event loop.

The system's own resolver does it, so that a name means what it means to every other program of this host: hosts
file, search domains and all. It blocks, so it runs in a few threads; a name server that answers slowly holds one
of them and not the loop, and whoever waits is let go after a time limit. The threads are daemons: one that hangs
in a name server's silence does not keep the process from ending.

Rules: what is being looked up already is not looked up twice; answers are kept for a few seconds, for the system
does not say how long they hold; so many look-ups may wait, and more are refused; failures are not kept. Only
addresses come out, in canonical form: one that has a zone belongs to a link and is left out.
An answer here is not yet one that may be dialled: ``guard.check`` comes next, for each connection anew.

Source of truth: getaddrinfo(3).
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from stockade.annotation import Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.network.failure import ConnectError, Failure
from stockade.policy.host import Host, HostKind
from stockade.value import Value

_NO_SUCH_NAME: Final = frozenset(
    code for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if (code := getattr(socket, name, None)) is not None
)

#: Blocks until the addresses of a name are known; raises ``OSError`` if they cannot be.
Lookup: TypeAlias = Callable[[str], Iterable[str]]


class ResolverLimits(Value):
    """How many look-ups run and wait, how long one may take, how long and how many answers are kept."""

    threads: int = 8
    waiting: int = 256
    seconds: float = 15.0
    kept_seconds: float = 5.0
    kept: int = 512
    addresses: int = 32


def system_lookup(name: str) -> list[str]:
    """Ask the system's resolver."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Resolver:
    """Resolves names for one event loop."""

    def __init__(
        self,
        lookup: Lookup = system_lookup,
        *,
        limits: ResolverLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what to ask; no thread is started before the first question."""
        self._lookup = lookup
        self._limits = limits or ResolverLimits()
        self._clock = clock
        self._running: dict[Host, asyncio.Future[tuple[Host, ...]]] = {}
        self._kept: dict[Host, tuple[float, tuple[Host, ...]]] = {}
        self._jobs = _Jobs(self._limits.threads)

    async def resolve(self, host: Host) -> tuple[Host, ...]:
        """Return the addresses of a host, at least one, or raise ``ConnectError``; an address is its own."""
        known = self.known(host)
        if known is not None:
            return known
        running = self._running.get(host) or self._start(host)
        await asyncio.wait((running,), timeout=self._limits.seconds)
        if not running.done():
            raise ConnectError(Failure.NAME_FAILED, str(host), "no answer in time")
        return running.result()

    def known(self, host: Host) -> tuple[Host, ...] | None:
        """Return the addresses of a host if nobody needs to be asked for them now."""
        if host.kind is not HostKind.NAME:
            return (host,)
        kept = self._kept.get(host)
        return kept[1] if kept is not None and kept[0] > self._clock() else None

    def close(self) -> None:
        """Let the threads end when they are done."""
        self._jobs.close()

    def _start(self, host: Host) -> asyncio.Future[tuple[Host, ...]]:
        if len(self._running) >= self._limits.waiting:
            raise ConnectError(Failure.BUSY, str(host), "too many names are being resolved")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Host, ...]] = loop.create_future()
        future.add_done_callback(_retrieve)
        self._running[host] = future
        self._jobs.put(lambda: self._answer(loop, host, future))
        return future

    def _answer(self, loop: asyncio.AbstractEventLoop, host: Host, future: asyncio.Future[tuple[Host, ...]]) -> None:
        """Look up, in a thread, and tell the loop."""
        outcome = self._looked_up(host)
        try:
            loop.call_soon_threadsafe(self._finish, host, future, outcome)
        except RuntimeError:
            return  # the loop was closed meanwhile: nobody waits

    def _looked_up(self, host: Host) -> tuple[Host, ...] | ConnectError:
        try:
            found = _canonical(self._lookup(host.text))
        except socket.gaierror as error:
            missing = error.errno in _NO_SUCH_NAME
            return ConnectError(Failure.NO_SUCH_NAME if missing else Failure.NAME_FAILED, str(host))
        except Exception:  # noqa: BLE001 - a resolver that breaks must not take the thread with it
            return ConnectError(Failure.NAME_FAILED, str(host))
        return found[: self._limits.addresses] or ConnectError(Failure.NO_SUCH_NAME, str(host), "it has no address")

    def _finish(
        self, host: Host, future: asyncio.Future[tuple[Host, ...]], outcome: tuple[Host, ...] | ConnectError
    ) -> None:
        self._running.pop(host, None)
        if isinstance(outcome, ConnectError):
            future.set_exception(outcome)
            return
        self._keep(host, outcome)
        future.set_result(outcome)

    def _keep(self, host: Host, addresses: tuple[Host, ...]) -> None:
        self._kept.pop(host, None)
        while len(self._kept) >= max(self._limits.kept, 1):
            del self._kept[next(iter(self._kept))]
        self._kept[host] = (self._clock() + self._limits.kept_seconds, addresses)


def _canonical(texts: Iterable[str]) -> tuple[Host, ...]:
    found: dict[Host, None] = {}
    for text in texts:
        try:
            host = Host.parse(text)
        except InvalidTextError:
            continue
        if host.kind is not HostKind.NAME:
            found[host] = None
    return tuple(found)


def _retrieve(future: asyncio.Future[tuple[Host, ...]]) -> None:
    """Look at a failure that nobody waited for to the end, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()


class _Jobs:
    """A few daemon threads, started as they are needed. ``concurrent.futures`` waits for its own at exit."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()

    def put(self, job: Callable[[], None]) -> None:
        with self._changed:
            self._waiting.append(job)
            if self._idle < len(self._waiting) and self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="stockade-resolver", daemon=True).start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._waiting and not self._closed:
                    self._changed.wait()
                self._idle -= 1
                if not self._waiting:
                    self._threads -= 1
                    return
                job = self._waiting.popleft()
            job()
