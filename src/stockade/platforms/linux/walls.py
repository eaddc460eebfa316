"""The walls of a session on Linux: a jail for the plan as it is now, older jails while commands live in them.

A new plan (another policy, a protected file that appeared) gets a jail of its own beside the old one; the old one
goes when its last command has ended. Tickets are numbers of this class, so that callers see one set of walls.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

from stockade.errors import UnavailableError
from stockade.platforms.backend import Outcome
from stockade.platforms.linux import jail as jails
from stockade.platforms.linux.jail import Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.program import program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.platforms.backend import Launch
    from stockade.policy.model import SandboxPolicy

_GONE: Final = "the sandbox's helpers ended before the command did"


class _Cell:
    """A jail and the commands in it: their numbers there, and their tickets."""

    def __init__(self, jail: Jail, spec: JailSpec) -> None:
        self.jail = jail
        self.spec = spec
        self.tickets: dict[int, int] = {}


class LinuxWalls:
    """See ``stockade.platforms.backend.Walls``."""

    def __init__(self, temporary: str) -> None:
        """Start the helpers at once: they come up while the plan is made."""
        self._temporary = temporary
        self._next: Jail | None = Jail.start()
        self._current: _Cell | None = None
        self._cells: dict[int, _Cell] = {}
        self._places: dict[int, tuple[_Cell, int]] = {}
        self._poll = select.epoll()
        self._ticket = 0

    def renew(self, policy: SandboxPolicy) -> tuple[str, ...]:
        """Build a jail for the plan as it is now, unless the current one fits."""
        spec = self._spec(policy)
        if self._current is None or self._current.spec != spec:
            self._replace(spec)
        return ()

    def launch(self, launch: Launch, streams: Sequence[int]) -> int:
        """Start a command in the current jail."""
        cell = self._current
        if cell is None:
            message = "the walls are not built"
            raise UnavailableError(message, "call renew first")
        request = Request(
            argv=launch.argv,
            environment=launch.environment,
            directory=launch.directory,
            limits=launch.limits,
            terminal=launch.terminal,
        )
        number = cell.jail.run(request, streams)
        self._ticket += 1
        cell.tickets[number] = self._ticket
        self._places[self._ticket] = cell, number
        return self._ticket

    def signal(self, ticket: int, number: int) -> None:
        """Pass a signal on."""
        cell, place = self._places[ticket]
        cell.jail.signal(place, number)

    def end(self, ticket: int) -> None:
        """End a command and everything that it started."""
        cell, place = self._places[ticket]
        cell.jail.end(place)

    def fileno(self) -> int:
        """Return the descriptor that watches every jail."""
        return self._poll.fileno()

    def receive(self) -> tuple[Outcome, ...]:
        """Take the answers that are there."""
        outcomes: list[Outcome] = []
        for descriptor, _ in self._poll.poll(0):
            cell = self._cells.get(descriptor)
            if cell is not None:
                outcomes += self._hear(cell)
        return tuple(outcomes)

    def close(self) -> None:
        """End everything and wait for it."""
        if self._next is not None:
            self._next.close()
            self._next = None
        for cell in tuple(self._cells.values()):
            self._drop(cell)
        self._places.clear()
        self._current = None
        if not self._poll.closed:
            self._poll.close()

    def _spec(self, policy: SandboxPolicy) -> JailSpec:
        mounts = (Mount("writable", policy.cwd), Mount("writable", self._temporary))
        return JailSpec(mounts, (program(),), fresh_processes=not policy.mode.weaker_nested)

    def _replace(self, spec: JailSpec) -> None:
        jail, self._next = self._next or Jail.start(), None
        try:
            jail.build(spec)
            jail.wait_ready()
        except BaseException:
            jail.close()
            raise
        old, self._current = self._current, _Cell(jail, spec)
        self._cells[jail.fileno()] = self._current
        self._poll.register(jail.fileno(), select.EPOLLIN)
        if old is not None and not old.tickets:
            self._drop(old)

    def _hear(self, cell: _Cell) -> list[Outcome]:
        answer = cell.jail.receive()
        if answer is None:
            return self._lost(cell)
        if isinstance(answer, jails.Started):
            return []
        ticket = cell.tickets.pop(answer.number)
        del self._places[ticket]
        if cell is not self._current and not cell.tickets:
            self._drop(cell)
        if isinstance(answer, jails.Failed):
            return [Outcome(ticket, failure=answer.text(), error=answer.error)]
        return [Outcome(ticket, answer.status, answer.user_time, answer.system_time, answer.peak_memory)]

    def _lost(self, cell: _Cell) -> list[Outcome]:
        """Tell that the helpers were killed, and every command with them; the next command gets new ones."""
        outcomes = [Outcome(ticket, failure=_GONE) for ticket in cell.tickets.values()]
        for ticket in cell.tickets.values():
            del self._places[ticket]
        cell.tickets.clear()
        self._drop(cell)
        if cell is self._current:
            self._current = None
        return outcomes

    def _drop(self, cell: _Cell) -> None:
        descriptor = cell.jail.fileno()
        self._poll.unregister(descriptor)
        del self._cells[descriptor]
        cell.jail.close()
