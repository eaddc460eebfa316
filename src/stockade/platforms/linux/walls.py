"""The walls of a session on Linux: a jail for the plan as it is now, older jails while commands live in them.

A new plan (another policy, a protected file that appeared) gets a jail of its own beside the old one; the old one
goes when its last command has ended. Tickets are numbers of this class, so that callers see one set of walls.
"""

from __future__ import annotations

import os
import select

from stockade.annotation import TYPE_CHECKING, Final, Literal
from stockade.errors import StockadeError, UnavailableError
from stockade.escape import escape
from stockade.network.host_port import host_ports
from stockade.platforms.backend import Outcome, Report
from stockade.platforms.linux import entrance, placeholders
from stockade.platforms.linux import jail as jails
from stockade.platforms.linux.cell import Cell
from stockade.platforms.linux.cleanup import clean_up
from stockade.platforms.linux.commons import Commons
from stockade.platforms.linux.jail import Jail, Request
from stockade.platforms.linux.lookout import Lookout
from stockade.platforms.linux.placeholders import journal_directory
from stockade.platforms.linux.spec import names_file, placed, specify
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade.filesystem.plan import Plan
    from stockade.platforms.backend import Entrance, Launch, Observe
    from stockade.platforms.linux.door import Door
    from stockade.platforms.linux.footing import Footing
    from stockade.platforms.linux.placeholders import Lease
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.path_pattern import PathPattern

_ATTEMPTS: Final = 5
_LINKED: Final = "the command was ended, for the host put something in a protected place that no wall can cover:"
_GONE: Final = "the sandbox's helpers were killed, and the command with them"
_NOWHERE: Final = (None, 0)
#: How a jail says that it found nothing to lay a mount on.
_VANISHED: Final = ": No such file or directory"
#: Jails without a command that are kept while commands of other jails run, see ``_drop_idle``.
_MOST_RETIRED: Final = 16


class LinuxWalls:
    """See ``stockade.platforms.backend.Walls``."""

    def __init__(
        self, temporary: str, started: Jail | None = None, *, once: bool = False, observe: Observe = "auto"
    ) -> None:
        """Start the helpers at once, unless they are: they come up while the plan is made.

        ``once``: the first command follows at once and may be the only one. Watching the disk begins with the second.
        ``observe``: what the walls refuse to change is reported; with ``auto``, but for what descriptors change.
        """
        self._once = once
        self._observe = observe
        self._temporary = temporary
        self._leavings = os.path.dirname(temporary)
        self._lent = "", ""
        self._poll = select.epoll()  # before the helpers: who has no descriptor for it starts none
        self._next: Jail | None = started or self._start_helpers()
        clean_up(self._leavings)
        self._notes: tuple[str, ...] = ()
        #: What is told with the next command only.
        self._news: tuple[str, ...] = ()
        self._current: Cell | None = None
        self._cells: dict[int, Cell] = {}
        self._places: dict[int, tuple[Cell, int]] = {}
        self._ticket = 0
        self._door: Door | None = None
        self._commons = Commons()
        self._reports: list[Report] = []
        self._lookout = Lookout()
        #: Placeholders of a jail that is not there yet: a signal may end the making of it at any moment.
        self._pending: Lease | None = None

    def _start_helpers(self) -> Jail:
        try:
            return Jail.start(self._leavings)
        except BaseException:
            self._poll.close()
            raise

    def lend(self, cache: str, around: str) -> None:
        """Show the cache in jails from the next one on; it changes only with the policy, which builds anew."""
        self._lent = cache, around

    def renew(self, policy: SandboxPolicy) -> tuple[str, ...]:
        """Build a jail for the plan as it is now, unless the current one fits."""
        if self._current is not None and self._current.jail.is_gone():
            self._current = None  # its helpers were killed; what that means for its commands is heard later
        if self._once and self._current is not None and not self._ticket and self._current.policy is policy:
            return self._notes + self._news
        plan = self._lookout.plan(policy.files, once=self._is_first_of_one())
        touched = self._lookout.take_touched()
        current = self._current
        if current is None or not current.fits(policy, plan, touched) or self._lookout.has_lost_stages():
            self._rebuild(policy, plan)
        return self._notes + self._news

    def _rebuild(self, policy: SandboxPolicy, plan: Plan) -> None:
        """Build a jail for the plan; if something in it is gone by the time it is built, plan again."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._replace(policy, plan)
            except UnavailableError as error:
                if not left or _VANISHED not in error.message:
                    raise
                plan = self._lookout.plan(policy.files, once=self._is_first_of_one())
            else:
                return

    def rest(self) -> None:
        """Let go of what the host could stumble over while no command runs; the next command builds anew."""
        cell = self._current
        if cell is not None and cell.plan.placeholders and not cell.busy:
            self._current = None
            self._drop_idle()

    def launch(self, launch: Launch, streams: Sequence[int]) -> int:
        """Start a command in the current jail."""
        cell = self._cell()
        self._begin(cell)
        try:
            number = cell.jail.run(Request.of(launch), streams)
        except UnavailableError:
            # Its helpers were killed since it was looked at; the command has not begun.
            self._current = None
            self.renew(cell.policy)
            cell = self._cell()
            self._begin(cell)
            number = cell.jail.run(Request.of(launch), streams)
        self._news = ()
        self._ticket += 1
        cell.tickets[number] = self._ticket
        self._places[self._ticket] = cell, number
        return self._ticket

    def wrap(self, launch: Launch) -> tuple[str, ...]:
        """Open the door to visitors, and return the words that bring one in."""
        from stockade.platforms.linux.door import Door

        cell = self._cell()
        if self._door is None:
            self._door = Door(self._leavings)
            self._lead(self._door, cell)
        return self._door.order(Request.of(launch), cell.jail)

    def open_terminal(self) -> tuple[int, int]:
        """Make a terminal that is in the current jail's ``/dev/pts``."""
        return self._cell().jail.open_terminal()

    def signal(self, ticket: int, number: int) -> None:
        """Pass a signal on, if the command has not ended meanwhile."""
        cell, place = self._places.get(ticket, _NOWHERE)
        if cell is not None:
            with suppress(UnavailableError):  # its helpers were killed, which is heard later
                cell.jail.signal(place, number)

    def end(self, ticket: int) -> None:
        """End a command and everything that it started, if that has not ended meanwhile."""
        cell, place = self._places.get(ticket, _NOWHERE)
        if cell is not None:
            with suppress(UnavailableError):  # its helpers were killed, which is heard later
                cell.jail.end(place)

    def take_entrances(self) -> tuple[Entrance, ...]:
        """Return the entrances that jails have opened since."""
        return self._commons.take_entrances()

    def unrouted(self) -> str:
        """Return what the kernel lacks for carrying programs that know no proxy."""
        return self._commons.unrouted

    def ports(self) -> tuple[int, int]:
        """Return the ports at which every session's proxies listen: its localhost is its own."""
        return entrance.HTTP_PORT, entrance.SOCKS_PORT

    def open_way_in(self) -> int:
        """Return the way to the process that makes sockets inside."""
        self._cell()
        return self._commons.open_way_in()

    def watch(self, descriptor: int) -> None:
        """Watch another descriptor beside the jails."""
        self._poll.register(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Watch it no more."""
        if not self._poll.closed:
            self._poll.unregister(descriptor)

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
        if outcomes and outcomes[-1].state != "started":
            self._inspect(outcomes[-1].ticket)
        return tuple(outcomes)

    def look(self) -> float | None:
        """Inspect what running commands have left, if it is time to."""
        left = self._lookout.inspector.left()
        if left != 0:
            return left
        self._inspect(next(iter(self._places)) if len(self._places) == 1 else 0)
        return self._lookout.inspector.left()

    def take_reports(self) -> tuple[Report, ...]:
        """Return what was refused since."""
        taken, self._reports = tuple(self._reports), []
        return taken

    def close(self) -> None:
        """End everything and wait for it."""
        if self._next is not None:
            self._next.close()
            self._next = None
        for cell in tuple(self._cells.values()):
            self._drop(cell)
        self._inspect(0)
        if self._pending is not None:
            self._lookout.let_go(self._pending, self._cells.values())
            self._pending = None
        self._places.clear()
        self._current = None
        self._commons.close()
        self._shut()
        self._lookout.close()
        if not self._poll.closed:
            self._poll.close()

    def _replace(self, policy: SandboxPolicy, plan: Plan) -> None:
        """Build a jail for the plan; commands that run stay in the old one, which goes with the last of them."""
        plan, lease = self._keep(policy, plan)
        jail, self._next = self._next or Jail.start(self._leavings, first=not self._commons.shared), None
        try:
            held = placed(plan, lease, self._lookout.stage(plan, lease))
            cache, caches = self._lent
            if not cache and not os.path.isdir(caches):
                caches = ""  # nobody keeps anything there yet, or any more
            private = filter(None, (os.path.dirname(journal_directory()), self._leavings, caches))
            sockets, denied, notes = _sockets(policy)
            spec = specify(
                policy,
                plan,
                temporary=self._temporary,
                cache=cache,
                private=private,
                placed=held.mounts,
                names=names_file(),
                sockets=sockets,
                denied=denied,
                unlisted=held.unlisted,
                observe=self._observe,
                layers=self._commons.layers(plan),
            )
            reuse = not any(cell.busy for cell in self._cells.values())
            spec = spec.but(spare=not self._is_first_of_one(), reuse=reuse)
            footing = self._footing(mount.target for mount in spec.mounts)
            ports = self._commons.missing(host_ports(policy.network), jail)
            locks = (*self._lookout.locks, *lease.descriptors)
            jail.build(spec, locks, self._commons.shared, ports, self._commons.private)
            self._lookout.get_ready()
            jail.wait_ready()
        except BaseException:
            jail.close()
            self._lookout.let_go(lease, self._cells.values())
            self._commons.forget_private()
            raise
        self._notes = plan.notes + held.notes + notes + self._commons.take(jail) + _unsupervised(jail)
        self._news += self._lookout.recovered(plan)
        old, self._current = self._current, Cell(jail, policy, plan, lease, footing, spec.unlisted)
        self._cells[jail.fileno()] = self._current
        self._pending = None
        self._poll.register(jail.fileno(), select.EPOLLIN)
        if self._door is not None:
            self._lead(self._door, self._current, old)
        if old is not None:
            with suppress(UnavailableError):  # its helpers were killed, which is heard later
                old.jail.retire()
        self._drop_idle()

    def _begin(self, cell: Cell, *, awaited: bool = False) -> None:
        """Have the inspector know what commands in this jail cannot change; one starts now, or is ``awaited``."""
        alone = not any(other.active for other in self._cells.values())
        self._lookout.begin(cell, alone=alone, awaited=awaited)

    def _inspect(self, ticket: int) -> None:
        """Set aside what commands have left for programs of the host, and report it."""
        rules = None if self._current is None else self._current.policy.files
        found = self._lookout.look(self._cells.values(), rules)
        if found:
            from stockade.platforms.linux.aside import report

            self._reports += (report(ticket, finding) for finding in found)

    def _is_first_of_one(self) -> bool:
        return self._once and not self._ticket

    def _footing(self, targets: Iterable[str]) -> Footing | None:
        """Return what tells later whether mounts still lie where they were laid; a jail for one command needs none."""
        if self._is_first_of_one():
            return None
        from stockade.platforms.linux.footing import Footing

        return Footing(targets)

    def _cell(self) -> Cell:
        if self._current is None:
            message = "the walls are not built"
            raise UnavailableError(message, "call renew first")
        return self._current

    def _lead(self, door: Door, cell: Cell, old: Cell | None = None) -> None:
        """Lead visitors into another jail; the old one stays until it has said that no more can come there."""
        cell.receiving = True
        self._begin(cell, awaited=True)
        door.lead_to(cell.jail)
        if old is not None:
            with suppress(UnavailableError):  # its helpers were killed, which is heard later
                old.jail.receive_visitors(None)

    def _shut(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            door.close()

    def _keep(self, policy: SandboxPolicy, plan: Plan) -> tuple[Plan, Lease]:
        """Put the placeholders in place; where one is not missing after all, plan again."""
        for _ in range(_ATTEMPTS):
            lease = self._pending = placeholders.Lease()
            shapes = {placeholder.path: placeholder.shape for placeholder in plan.placeholders}
            self._lookout.make(plan.made)
            placeholders.acquire(shapes, lease=lease, shapes=shapes)
            if not lease.changed:
                return plan, lease
            where = lease.changed[0].path
            lease.release()
            plan = self._lookout.plan(policy.files, once=self._is_first_of_one())
        message = f"the files here change too fast to be protected: {escape(where)}"
        raise UnavailableError(message, "try again when they have settled")

    def _hear(self, cell: Cell) -> list[Outcome]:
        answer = cell.jail.receive()
        if answer is None:
            return self._lost(cell)
        if isinstance(answer, jails.Started | jails.Stopped):
            state: Literal["started", "stopped"] = "started" if isinstance(answer, jails.Started) else "stopped"
            return [Outcome(cell.tickets[answer.number], state=state)]
        if not isinstance(answer, jails.Ended | jails.Failed):
            self._heed(cell, answer)
            return []
        ticket = cell.tickets.pop(answer.number)
        del self._places[ticket]
        self._drop_idle()
        if isinstance(answer, jails.Failed):
            return [Outcome(ticket, answer.exit_status() << 8, failure=answer.text(), error=answer.error)]
        if cell.ended_for:
            return [Outcome(ticket, failure=cell.ended_for)]
        return [Outcome(ticket, answer.status, answer.user_time, answer.system_time, answer.peak_memory)]

    def _heed(self, cell: Cell, answer: jails.Guests | jails.Refused | jails.Covered) -> None:
        """Take news that end no command."""
        if isinstance(answer, jails.Guests):
            self._note(cell, answer)
        elif isinstance(answer, jails.Refused):
            ticket = cell.tickets.get(answer.number, 0)
            self._reports.append(Report(ticket, answer.operation, answer.place, answer.times))
        elif isinstance(answer, jails.Covered):
            cell.covered_again = True
            self._lookout.inspector.uncover(answer.uncovered)
            if answer.hopeless:
                cell.ended_for = f"{_LINKED} {escape(answer.hopeless)}"
            self._replace_for_visitors(cell.policy)

    def _note(self, cell: Cell, guests: jails.Guests) -> None:
        """Note who came or went. What a visitor changed on the disk is to bind the next one, as with commands here."""
        fewer, more = guests.count < cell.guests, guests.count > cell.guests
        shut = cell.receiving and not guests.receiving
        cell.guests, cell.receiving = guests.count, guests.receiving
        if more:
            self._begin(cell)
        if fewer or shut:
            self._inspect(0)
        if fewer and self._shut_out():
            return
        if shut and cell is self._current:
            self._current = None
            self._replace_for_visitors(cell.policy)
        elif fewer and cell is self._current:
            with suppress(StockadeError):  # told to whoever runs the next command
                self.renew(cell.policy)
            self._begin(self._current, awaited=True)
        self._drop_idle()

    def _shut_out(self) -> bool:
        """Let no visitor in for a moment, if a repository waits to become the host's; tell whether that is so."""
        cell = self._current
        if cell is None or not cell.receiving or not self._lookout.is_waiting():
            return False
        if any(cell.active for cell in self._cells.values()):
            return False
        with suppress(UnavailableError):  # its helpers were killed, which is heard later
            cell.jail.receive_visitors(None)
        return True

    def _lost(self, cell: Cell) -> list[Outcome]:
        """Tell that the helpers were killed, and every command with them; the next command gets new ones."""
        outcomes = [Outcome(ticket, failure=_GONE) for ticket in cell.tickets.values()]
        for ticket in cell.tickets.values():
            del self._places[ticket]
        cell.tickets.clear()
        self._drop(cell)
        if cell.covered_again:
            self._end_others()
        if cell is self._current:
            self._current = None
            self._replace_for_visitors(cell.policy)
        return outcomes

    def _end_others(self) -> None:
        """End every command: one may hold a descriptor of the jail that was lost, whose new covers fell with it."""
        for cell in self._cells.values():
            if cell.active:
                cell.jail.kill()
                if cell is self._current:
                    self._current = None  # the next command gets another one at once

    def _replace_for_visitors(self, policy: SandboxPolicy) -> None:
        """Have visitors received again at once, for no command of the owner's may ever come; or refuse them."""
        if self._door is not None:
            try:
                self.renew(policy)
            except StockadeError:
                self._shut()

    def _drop_idle(self) -> None:
        """Let old jails go that have no command left, once no command of another jail runs.

        Such a command may hold a descriptor of theirs. As long as their helpers live, what the host replaces is covered
        in their trees, too. Sixteen are kept, the newest.
        """
        idle = [cell for cell in self._cells.values() if cell is not self._current and not cell.busy]
        needed = _MOST_RETIRED if any(cell.active for cell in self._cells.values()) else 0
        for cell in idle[: len(idle) - needed] if needed else idle:
            self._drop(cell)

    def _drop(self, cell: Cell) -> None:
        descriptor = cell.jail.fileno()
        self._poll.unregister(descriptor)
        del self._cells[descriptor]
        try:
            cell.jail.finish()
            if cell.active or self._lookout.has_stages():
                self._inspect(0)
            self._lookout.let_go(cell.lease, self._cells.values())
        finally:
            cell.jail.close()


def _sockets(policy: SandboxPolicy) -> tuple[tuple[PathPattern, ...], tuple[PathPattern, ...], tuple[str, ...]]:
    """Return the places of the unix sockets that the policy lists, and of those that it denies, with notes on these."""
    sockets = policy.sockets
    if not sockets.denied_unix and (sockets.all_unix or not sockets.unix):
        return (), (), ()
    from stockade.filesystem.socket_places import socket_places

    return socket_places(policy)


def _unsupervised(jail: Jail) -> tuple[str, ...]:
    if not jail.unsupervised:
        return ()
    return (f"unix sockets stay closed, and refused writes are not reported: {jail.unsupervised}",)
