"""Connects to addresses that were checked, the fastest first to answer wins.

Rules: the two families take turns, beginning with the one that the resolver put first; the next address is tried
when one fails or after a quarter of a second; the first connection wins and the others are closed. Only addresses
are dialled, never names, so nothing can be resolved a second time. All of it ends at a time limit.

Source of truth: RFC 8305 sections 4 and 5.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from itertools import zip_longest

from stockade.annotation import TYPE_CHECKING, Final
from stockade.network.failure import ConnectError, Failure
from stockade.policy.host import HostKind
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade.policy.host import Host
    from stockade.policy.port import Port

_NONBLOCK: Final = getattr(socket, "SOCK_NONBLOCK", 0)  # macOS has none
_BEGUN: Final = frozenset({0, errno.EINPROGRESS, errno.EINTR})
_FAMILIES: Final = {HostKind.IPV4: socket.AF_INET, HostKind.IPV6: socket.AF_INET6}
_FAILURES: Final = {
    errno.ECONNREFUSED: Failure.REFUSED,
    errno.ECONNRESET: Failure.REFUSED,
    errno.ETIMEDOUT: Failure.TIMED_OUT,
    errno.EMFILE: Failure.BUSY,
    errno.ENFILE: Failure.BUSY,
    errno.ENOBUFS: Failure.BUSY,
    errno.EAGAIN: Failure.BUSY,  # no local port is left
    errno.ENETUNREACH: Failure.UNREACHABLE,
    errno.EHOSTUNREACH: Failure.UNREACHABLE,
    errno.ENETDOWN: Failure.UNREACHABLE,
    errno.EHOSTDOWN: Failure.UNREACHABLE,
    errno.EADDRNOTAVAIL: Failure.UNREACHABLE,
    errno.EAFNOSUPPORT: Failure.UNREACHABLE,
    errno.EACCES: Failure.UNREACHABLE,
    errno.EPERM: Failure.UNREACHABLE,
}
# Of several failures the one that says most is told: a host that refused is there, a silent one may be.
_TELLING: Final = (Failure.REFUSED, Failure.TIMED_OUT, Failure.BUSY, Failure.UNREACHABLE)


class Pace(Value):
    """How long to wait before the next address is tried as well, how long in all, and how many are tried."""

    stagger: float = 0.25
    seconds: float = 30.0
    most: int = 8


def interleave(addresses: Iterable[Host]) -> tuple[Host, ...]:
    """Order addresses so that the families take turns, the first address staying first."""
    unique = tuple(dict.fromkeys(addresses))
    if len(unique) <= 1:
        return unique
    first = [address for address in unique if address.kind is unique[0].kind]
    second = [address for address in unique if address.kind is not unique[0].kind]
    return tuple(address for pair in zip_longest(first, second) for address in pair if address is not None)


async def dial(
    addresses: Sequence[Host], port: Port, pace: Pace | None = None, begun: socket.socket | Failure | None = None
) -> socket.socket:
    """Return a connected, non-blocking socket to one of the addresses, or raise ``ConnectError``.

    ``begun`` is what ``begin`` has returned for the one address that there is, if that was called already.
    """
    pace = pace or Pace()
    order = interleave(addresses)[: pace.most]
    where = f"{order[0]}:{port}" if order else f"port {port}"
    try:
        if len(order) == 1:
            outcome = await _attempt(order[0], port, pace.seconds, begun)
        else:
            async with asyncio.timeout(pace.seconds):
                outcome = await _race(order, port, pace.stagger)
    except TimeoutError:
        raise ConnectError(Failure.TIMED_OUT, where) from None
    if isinstance(outcome, Failure):
        raise ConnectError(outcome, where)
    return outcome


def failure_of(error: OSError) -> Failure:
    """Say what an error of the system means."""
    return _FAILURES.get(error.errno or 0, Failure.OTHER)


def begin(address: Host, port: Port) -> socket.socket | Failure:
    """Begin to connect, without waiting for anything; whether that was all, ``stands`` says."""
    try:
        connection = socket.socket(_FAMILIES[address.kind], socket.SOCK_STREAM | _NONBLOCK)
    except OSError as error:
        return failure_of(error)
    try:
        if not _NONBLOCK:
            connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        code = connection.connect_ex((address.text, port.number))
    except OSError as error:
        connection.close()
        return failure_of(error)
    except BaseException:
        connection.close()
        raise
    if code in _BEGUN:
        return connection
    connection.close()
    return _FAILURES.get(code, Failure.OTHER)


def stands(connection: socket.socket) -> bool:
    """Say whether a connection that was only begun is complete: on one machine it is at once."""
    try:
        connection.getpeername()
    except OSError:
        return False
    return True


async def _attempt(
    address: Host, port: Port, seconds: float | None = None, begun: socket.socket | Failure | None = None
) -> socket.socket | Failure:
    connection = begin(address, port) if begun is None else begun
    if isinstance(connection, Failure):
        return connection
    try:
        if not stands(connection):
            async with asyncio.timeout(seconds):
                await _connected(connection, (address.text, port.number))
    except TimeoutError as error:
        connection.close()
        if error.errno is None:
            raise
        return failure_of(error)
    except OSError as error:
        connection.close()
        return failure_of(error)
    except BaseException:
        connection.close()
        raise
    return connection


async def _connected(connection: socket.socket, place: tuple[str, int]) -> None:
    """Wait for a connection that was begun; to begin it again only asks how it stands."""
    try:
        await asyncio.get_running_loop().sock_connect(connection, place)
    except OSError as error:
        if error.errno != errno.EISCONN:
            raise


async def _race(order: Sequence[Host], port: Port, stagger: float) -> socket.socket | Failure:
    waiting = deque(order)
    running: set[asyncio.Task[socket.socket | Failure]] = set()
    failures: list[Failure] = []
    winner: socket.socket | None = None
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.create_task(_attempt(waiting.popleft(), port)))
            done, _ = await asyncio.wait(
                running, timeout=stagger if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                outcome = task.result()
                if isinstance(outcome, Failure):
                    running.discard(task)
                    failures.append(outcome)
                elif winner is None:
                    running.discard(task)
                    winner = outcome
            if winner is not None:
                return winner
        return next((telling for telling in _TELLING if telling in failures), Failure.OTHER)
    finally:
        try:
            await _abandon(running)
        except BaseException:
            if winner is not None:
                winner.close()
            raise


async def _abandon(running: set[asyncio.Task[socket.socket | Failure]]) -> None:
    """End the attempts that lost, and close what they may have won meanwhile."""
    for task in running:
        task.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()
