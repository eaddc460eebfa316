"""What a session keeps while its jails come and go: the namespaces they share, the entrances in them, its ``/tmp``.

The first jail makes them; they are the session's from then on. Later jails join, and open what is missing: ports of the
host that new rules name. Through bubblewrap no jail can join another, so each brings a set of its own.
"""

from __future__ import annotations

import os
import select

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.plan import Operation
from stockade.platforms.backend import Entrance
from stockade.policy.files import PRIVATE_PLACE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.plan import Plan
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.porter import Porter
    from stockade.platforms.temporary import TemporaryDirectory

#: What the kernel leaves of a private place in which nothing was written (``stockade.platforms.linux.private_place``).
_UNWRITTEN: Final = (
    "upper0/",
    "work0/work/incompat/volatile/dirty",
    "work0/work/incompat/volatile/",
    "work0/work/incompat/",
    "work0/work/",
    "work0/",
)
_DO: Final = "see `stockade doctor`, or set sandbox.filesystem.privateTmp to false"


class Commons:
    """Namespaces, entrances, and whoever makes sockets inside."""

    def __init__(self) -> None:
        """Begin with nothing."""
        #: Why programs that know no proxy are not carried; empty if they are.
        self.unrouted = ""
        self.shared: tuple[int, ...] = ()
        self._entrances: list[Entrance] = []
        self._host_ports: set[tuple[str, int]] = set()
        self._layers: TemporaryDirectory | None = None
        self.private: tuple[int, ...] = ()
        self._porter: Porter | None = None
        self._way_in = -1

    def missing(self, wanted: Iterable[tuple[str, int]], jail: Jail) -> list[tuple[str, int]]:
        """Return those of the host's ports that have no entrance yet where a jail will be."""
        opened = self._host_ports if self.shared and jail.joins else set()
        return [port for port in wanted if port not in opened]

    def take(self, jail: Jail) -> tuple[str, ...]:
        """Take over what a jail has made for all; return notes about what could not be had."""
        if jail.shared:
            self._close_shared()
            self.shared, jail.shared = jail.shared, ()
        if jail.private:
            self.forget_private()
            self.private, jail.private = jail.private, ()
        made, jail.entrances = jail.entrances, ()
        refused = f"commands can write in $TMPDIR but not in {PRIVATE_PLACE}, for {escape(jail.common)}; {_DO}"
        notes = [refused] if jail.common else []
        for label, descriptor in made:
            kind, _, rest = label.partition(" ")
            address, _, port = rest.rpartition(" ")
            if kind == "unrouted":
                self.unrouted = rest
            elif kind == "taken":
                notes.append(f"port {port} of the host cannot be reached: a command in here listens on it")
            else:
                self._entrances.append(Entrance(kind, descriptor, address, int(port or 0)))
                if address:
                    self._host_ports.add((address, int(port)))
        return tuple(notes)

    def layers(self, plan: Plan) -> str:
        """Return the directory for what commands write in a private place, if the plan has one."""
        if all(mount.operation is not Operation.PRIVATE for mount in plan.mounts):
            return ""
        if self._layers is None:
            from stockade.platforms.runtime_directory import runtime_directory
            from stockade.platforms.temporary import TemporaryDirectory

            self._layers = TemporaryDirectory.make_in(runtime_directory())
        return self._layers.path

    def forget_private(self) -> None:
        """Let go of the copy of the private place: it serves one jail only, even one that could not be built."""
        while self.private:
            os.close(self.private[0])
            self.private = self.private[1:]

    def take_entrances(self) -> tuple[Entrance, ...]:
        """Return those that nobody has taken yet; they are the caller's from then on."""
        taken, self._entrances = tuple(self._entrances), []
        return taken

    def open_way_in(self) -> int:
        """Return a way to the process that makes sockets inside: the caller's from then on, and one for each caller.

        The process is started when first asked for, and again if it was killed.
        """
        if self._way_in < 0 or _is_cut(self._way_in):
            from stockade.platforms.linux.porter import Porter

            self._close_way_in()
            porter = Porter.start(self.shared)
            self._way_in = porter.take()
            self._porter = porter
        return os.dup(self._way_in)

    def close(self) -> None:
        """Let go of everything."""
        self._close_way_in()
        self._close_shared()
        self.forget_private()
        if self._layers is not None:
            self._layers.remove(_UNWRITTEN)
            self._layers = None
        for entrance in self.take_entrances():
            os.close(entrance.descriptor)

    def _close_way_in(self) -> None:
        if self._way_in >= 0:
            os.close(self._way_in)
            self._way_in = -1
        if self._porter is not None:
            self._porter.close()
            self._porter = None

    def _close_shared(self) -> None:
        while self.shared:
            os.close(self.shared[0])
            self.shared = self.shared[1:]


def _is_cut(descriptor: int) -> bool:
    """Say whether nobody is left at the other end of a socket."""
    poller = select.poll()
    poller.register(descriptor, 0)
    return bool(poller.poll(0))
