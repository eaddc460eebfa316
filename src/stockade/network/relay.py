"""Two connections joined: what comes from one goes to the other, no faster than it is taken.

Back-pressure both ways: a side whose peer cannot take more is not read. Half-close: the end of one direction is passed
on and leaves the other open. A side that is lost takes the other with it, once that has what it was sent. A pair on
which nothing has moved for too long is ended by ``Relays.sweep``, which one timer calls for all of them.

What both say first may have to pass a screen (``screen``), and is poured only behind it. If the screen refuses, the
client's connection is reset and the server's ended. What the screen holds back must be whole in time.
"""

from __future__ import annotations

import asyncio

from stockade.annotation import TYPE_CHECKING, Final, TypeGuard
from stockade.network.transport import SocketTransport, reset

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.screen import Screen

#: Bytes that may wait for a slow reader before its peer is no longer read.
HIGH_WATER: Final = 1 << 18
_ENDLESS: Final = 1 << 62


class Side(asyncio.Protocol):
    """One end of a pair. Until it is joined, what comes is kept and reading stops soon."""

    def __init__(self, pair: Pair) -> None:
        """Belong to a pair."""
        self.pair = pair
        self.transport: asyncio.Transport | None = None
        self.peer: Side | None = None
        self._early: list[bytes] = []
        self._ended = False
        self._full = False

    def adopt(self, transport: asyncio.Transport) -> None:
        """Take over a connection that another protocol has served so far."""
        self.transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        transport.set_protocol(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start on a new connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - only streams are joined
        self.adopt(transport)

    def join(self, peer: Side) -> None:
        """Pass on to this peer from now on, beginning with what came early."""
        self.peer = peer
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def start(self) -> None:
        """Pass on the end if it came early, else all that is still to come."""
        if self._ended:
            self.eof_received()
        transport, peer = self.transport, self.peer
        if transport is None or peer is None or transport.is_closing():
            return
        self.pour()
        # What came early may have filled the peer already, and a transport says so only once.
        if not peer._full:  # noqa: SLF001 - its other half
            transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Pass on what is not poured: TLS to an upstream proxy, what came early, and what is looked at first."""
        self.pair.count(len(data))
        if self.peer is None or self.peer.transport is None:
            self._early.append(data)
            if self.transport is not None:
                self.transport.pause_reading()
            return
        if self.pair.screen is None:
            self.peer.transport.write(data)
        else:
            self.pair.pass_screen(self, self.peer.transport, data)

    def eof_received(self) -> bool:
        """Pass the end of this direction on; the other one stays open."""
        self._ended = True
        if self.peer is not None and self is self.pair.client:
            self.pair.end_screen()
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            if self.peer._ended:  # noqa: SLF001 - its other half
                self.pair.close()
            elif self.peer.transport.can_write_eof():
                self.peer.transport.write_eof()
        # TLS knows no half-closed connection: asyncio closes it, and warns of whoever wants otherwise.
        return self.transport is None or self.transport.get_extra_info("ssl_object") is None

    def pause_writing(self) -> None:
        """Read no more from the peer: this side cannot take it."""
        self._full = True
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read from the peer again."""
        self._full = False
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        """End the other side too, after what it was sent."""
        self.transport = None
        self.pair.lost(self)

    def pour(self) -> None:
        """Let what comes go on without us, once it need not be looked at."""
        peer = None if self.peer is None else self.peer.transport
        if self.pair.screen is None and type(self.transport) is SocketTransport and type(peer) is SocketTransport:
            self.transport.pour(peer, _ENDLESS, self.pair.count)


class Pair:
    """Two sides."""

    def __init__(self, ended: Callable[[Pair], None], hello_seconds: float) -> None:
        """Tell ``ended`` once both sides are gone; what a screen holds back must be whole after ``hello_seconds``."""
        self.client = Side(self)
        self.server = Side(self)
        self.moved = 0
        self.seen = -1
        #: Looks at what both say first, where that is not to be passed on unseen.
        self.screen: Screen | None = None
        self._ended = ended
        self._hello_seconds = hello_seconds
        self._timer: asyncio.TimerHandle | None = None

    def join(self) -> None:
        """Let the two talk."""
        self.client.join(self.server)
        self.server.join(self.client)
        # Only now: an end that both have come to before would else cut off what one of them has said.
        self.client.start()
        self.server.start()

    def count(self, size: int) -> None:
        """Note that something has moved."""
        self.moved += size

    def pass_screen(self, side: Side, peer: asyncio.Transport, data: bytes) -> None:
        """Pass on what may go on of what a side said."""
        screen = self.screen
        assert screen is not None  # noqa: S101 - only then there is something to pass
        if side is self.client:
            passed = screen.receive(data)
            if passed is None:
                self._refuse()
                return
        else:
            screen.hear(data)
            passed = data
        if passed:
            peer.write(passed)
        if screen.done:
            self._drop_screen(screen)
        elif self._timer is None and screen.holds:
            self._timer = asyncio.get_running_loop().call_later(self._hello_seconds, self._late)

    def end_screen(self) -> None:
        """Look at no more, because the client says no more."""
        screen = self.screen
        if screen is not None:
            if screen.end():
                self._drop_screen(screen)
            else:
                self._refuse()

    def close(self) -> None:
        """End both, after what they were sent: at once, if they have it."""
        client, server = self.client.transport, self.server.transport
        if _is_done(client) and _is_done(server):
            self.client.transport = self.server.transport = None
            client.discard()
            server.discard()
            self._over()
            return
        for transport in (client, server):
            if transport is not None:
                transport.close()

    def abort(self) -> None:
        """End both at once."""
        for side in (self.client, self.server):
            if side.transport is not None:
                side.transport.abort()

    def lost(self, side: Side) -> None:
        """Note that one side is gone."""
        other = self.server if side is self.client else self.client
        if other.transport is not None:
            other.transport.close()
        if other.transport is None:
            self._over()

    def _drop_screen(self, screen: Screen) -> None:
        """Pass on what it holds back, which nobody takes for a hello any more, and pour the rest."""
        self.screen = None
        self._stop_timer()
        held = screen.rest()
        if held and self.server.transport is not None:
            self.server.transport.write(held)
        self.client.pour()
        self.server.pour()

    def _refuse(self) -> None:
        if self.client.transport is not None:
            reset(self.client.transport)
        self.abort()

    def _late(self) -> None:
        self._timer = None
        if self.screen is not None and self.screen.holds:
            self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._stop_timer()
        self._ended(self)


def _is_done(transport: asyncio.Transport | None) -> TypeGuard[SocketTransport]:
    """Say whether nobody has anything left to do with a connection but to close it."""
    return type(transport) is SocketTransport and not transport.is_closing() and not transport.get_write_buffer_size()


class Relays:
    """All pairs of a proxy."""

    def __init__(self, hello_seconds: float = 30.0) -> None:
        """Begin without a pair; a hello must be whole after ``hello_seconds``."""
        self._hello_seconds = hello_seconds
        self._pairs: set[Pair] = set()

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return len(self._pairs)

    def new(self, ended: Callable[[], None] | None = None) -> Pair:
        """Return a pair that is not joined yet; ``ended`` is told once both of its sides are gone."""

        def forget(pair: Pair) -> None:
            if pair in self._pairs:
                self._pairs.discard(pair)
                if ended is not None:
                    ended()

        pair = Pair(forget, self._hello_seconds)
        self._pairs.add(pair)
        return pair

    def sweep(self) -> int:
        """End the pairs on which nothing has moved since the last sweep; return how many those were."""
        idle = [pair for pair in self._pairs if pair.seen == pair.moved]
        for pair in self._pairs:
            pair.seen = pair.moved
        for pair in idle:
            pair.abort()
        return len(idle)

    def close(self) -> None:
        """End all at once."""
        for pair in tuple(self._pairs):
            pair.abort()
