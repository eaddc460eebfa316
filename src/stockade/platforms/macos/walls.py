"""The walls of a session on macOS: a Seatbelt profile for each state of rules and disk, and a keeper for the commands.

There is nothing to build and nothing to hold: a profile is a text, given to ``sandbox-exec`` with each command, so that
every command has the rules as they are when it starts. The proxies listen on ports of the machine's own localhost, the
only address that a command can reach; a connection without the command's credential gets nothing there.
"""

from __future__ import annotations

import os
import select
import socket

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.errors import UnavailableError
from stockade.filesystem.scan import plan_now
from stockade.filesystem.terrain import Land
from stockade.platforms.backend import Entrance, Outcome
from stockade.platforms.macos.keeper_process import KeeperProcess, package_path
from stockade.platforms.macos.monitor import LOG, Monitor
from stockade.platforms.macos.seatbelt import Own, make_profile
from stockade.platforms.macos.start import SANDBOX_EXEC
from stockade.platforms.macos.stored_name import stored_rules, stored_sockets
from stockade.platforms.macos.strays import MARK
from stockade.platforms.macos.tag import encode, new_suffix
from stockade.platforms.macos.watch import Watch
from stockade.policy.files import survey
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.platforms.backend import Launch, Observe, Report
    from stockade.platforms.macos.seatbelt import Profile
    from stockade.policy.model import SandboxPolicy

_BACKLOG: Final = 128
_UNROUTED: Final = "macOS cannot lead programs that know no proxy to one"
_GONE: Final = "the sandbox's keeper was killed, and nobody knows how the command ended"
_KINDS: Final = ("http", "socks")


class MacWalls:
    """See ``stockade.platforms.backend.Walls``."""

    def __init__(
        self, temporary: str, *, sandbox: str = SANDBOX_EXEC, log: str = LOG, observe: Observe = "auto"
    ) -> None:
        """Start the keeper at once; ``sandbox`` is the program that applies a profile, ``log`` the one that tells.

        ``observe``: to follow the log slows no command down, so that everything but ``off`` means to follow it.
        """
        self.suffix = new_suffix()
        self._temporary = temporary
        self._lent = "", ""
        self._sandbox = sandbox
        self._watch = Watch()
        self._keeper: KeeperProcess | None = self._start_keeper()
        self._entrances = _listen()
        self._ports = tuple(each.port for each in self._entrances)
        self._known: tuple[object, ...] = ()
        self._profile: Profile | None = None
        self._notes: tuple[str, ...] = ()
        self._tickets: set[int] = set()
        self._ticket = 0
        self._orders: list[str] = []
        self._monitor = Monitor(self.suffix, log)
        if observe == "off":
            self._monitor.close()
        self._watch_monitor()

    def lend(self, cache: str, around: str) -> None:
        """Open the cache in profiles from the next one on."""
        self._lent = cache, around

    def renew(self, policy: SandboxPolicy) -> tuple[str, ...]:
        """Make the profile for rules and disk as they are now, unless the last one still fits."""
        if self._keeper is None:
            self._keeper = self._start_keeper()
        if not os.access(self._sandbox, os.X_OK):
            message = f"{self._sandbox} is not there, which builds the walls"
            raise UnavailableError(message, "it is part of macOS: repair the system")
        disk = Land()
        rules = stored_rules(policy.files.but(staged=False), disk)
        plan = plan_now(rules)
        if plan.refusals:
            raise UnavailableError(plan.refusals[0], "change the rule, or name the places that it is about")
        ground = survey(rules, disk)
        sockets = stored_sockets(policy.sockets, disk)
        own = Own(self._temporary, os.path.dirname(self._temporary), *self._lent)
        known = (ground, plan, sockets, own)
        if known != self._known:
            self._profile = make_profile(
                ground,
                plan,
                disk,
                sockets=sockets,
                ports=self._ports,
                own=own,
            )
            self._known = known
            self._notes = plan.notes
        return self._notes

    def launch(self, launch: Launch, streams: Sequence[int]) -> int:
        """Have the keeper start a command."""
        if self._keeper is None:
            message = "the walls are not built"
            raise UnavailableError(message, "call renew first")
        if launch.passed:
            message = f"descriptor {launch.passed[0]} cannot be passed to a command on macOS"
            raise UnavailableError(message, "give the command a file, or its standard input")
        ticket = self._ticket + 1
        self._keeper.tell({"do": "launch", "ticket": ticket, **self._order(launch, ticket)}, streams)
        self._ticket = ticket
        self._tickets.add(ticket)
        return ticket

    def wrap(self, launch: Launch) -> tuple[str, ...]:
        """Write the order where only this user can read it, and return the words that carry it out."""
        import json
        import sys

        self._ticket += 1
        path = f"{os.path.dirname(self._temporary)}/order-{os.urandom(6).hex()}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._order(launch, self._ticket), file)
        self._orders.append(path)
        start = "import sys; sys.path.append(sys.argv[1]); from stockade.platforms.macos.visitor import visit; "
        return (sys.executable, "-I", "-S", "-c", f"{start}sys.exit(visit(sys.argv[2:]))", package_path(), path)

    def open_terminal(self) -> tuple[int, int]:
        """Make a terminal."""
        return os.openpty()

    def rest(self) -> None:
        """Do nothing: a profile is nothing that the host could stumble over."""

    def signal(self, ticket: int, number: int) -> None:
        """Pass a signal on, if the command has not ended meanwhile."""
        self._about(ticket, {"do": "signal", "number": number})

    def end(self, ticket: int) -> None:
        """End a command and everything that it started, if that has not ended meanwhile."""
        self._about(ticket, {"do": "end"})

    def take_entrances(self) -> tuple[Entrance, ...]:
        """Return the listeners of the proxies, once."""
        taken, self._entrances = self._entrances, ()
        return tuple(each.but(port=0) for each in taken)

    def unrouted(self) -> str:
        """Return why programs that know no proxy are not carried."""
        return _UNROUTED

    def ports(self) -> tuple[int, int]:
        """Return where the proxies listen, which differs from session to session."""
        http, socks = self._ports
        return http, socks

    def open_way_in(self) -> int:
        """Refuse: there is no other localhost than the machine's own."""
        message = "on macOS commands share the localhost of this machine, so nothing needs to be published"
        raise UnavailableError(message, "connect to the command's own port")

    def watch(self, descriptor: int) -> None:
        """Watch another descriptor beside the keeper's."""
        self._watch.add(descriptor)

    def unwatch(self, descriptor: int) -> None:
        """Watch it no more."""
        self._watch.remove(descriptor)

    def fileno(self) -> int:
        """Return the descriptor that watches all of them."""
        return self._watch.fileno()

    def receive(self) -> tuple[Outcome, ...]:
        """Take the answers that are there."""
        outcomes: list[Outcome] = []
        while self._keeper is not None and _is_readable(self._keeper.fileno()):
            answer = self._keeper.receive()
            if answer is None:
                outcomes += self._lost()
            elif answer["ticket"] in self._tickets:
                self._tickets.remove(answer["ticket"])
                outcomes.append(Outcome(**answer))
        return tuple(outcomes)

    def look(self) -> float | None:
        """Return nothing: the profile closes protected names at any depth, so that commands leave none."""
        return None

    def take_reports(self) -> tuple[Report, ...]:
        """Return what the log has told since. It is late now and then: what comes after its command belongs to none."""
        before = self._monitor.fileno()
        reports = self._monitor.receive()
        if self._monitor.fileno() != before:
            self._watch.remove(before)
            self._watch_monitor()
        return reports

    def close(self) -> None:
        """End everything and wait for it."""
        self._drop_keeper()
        self._watch.remove(self._monitor.fileno())
        self._monitor.close()
        self._tickets.clear()
        for entrance in self._entrances:
            os.close(entrance.descriptor)
        self._entrances = ()
        while self._orders:
            with suppress(OSError):
                os.unlink(self._orders.pop())
        self._watch.close()

    def _order(self, launch: Launch, ticket: int) -> dict[str, Any]:
        if self._profile is None:
            message = "the walls are not built"
            raise UnavailableError(message, "call renew first")
        line = launch.argv[-1] if launch.argv[1:-1] == ("-c",) else " ".join(launch.argv)
        mark = f"{self.suffix}-{ticket}"
        return {
            "sandbox": self._sandbox,
            "profile": self._profile.tagged(encode(ticket, line, self.suffix)),
            "argv": list(launch.argv),
            "environment": {**launch.environment, MARK: mark},
            "mark": mark,
            "directory": launch.directory,
            "limits": [list(limit) for limit in launch.limits],
            "terminal": launch.terminal,
        }

    def _about(self, ticket: int, order: dict[str, Any]) -> None:
        if self._keeper is not None and ticket in self._tickets:
            with suppress(UnavailableError):  # it was killed, which is heard later
                self._keeper.tell({**order, "ticket": ticket})

    def _start_keeper(self) -> KeeperProcess:
        keeper = KeeperProcess()
        self._watch.add(keeper.fileno())
        return keeper

    def _watch_monitor(self) -> None:
        if self._monitor.fileno() >= 0:
            self._watch.add(self._monitor.fileno())

    def _drop_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            self._watch.remove(keeper.fileno())
            keeper.close()

    def _lost(self) -> list[Outcome]:
        self._drop_keeper()
        lost = [Outcome(ticket, failure=_GONE) for ticket in sorted(self._tickets)]
        self._tickets.clear()
        return lost


def _is_readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


def _listen() -> tuple[Entrance, ...]:
    """Open a port of localhost for each of the proxies."""
    found = []
    for kind in _KINDS:
        listener = socket.socket()
        try:
            listener.bind(("127.0.0.1", 0))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            message = f"cannot listen on localhost for the {kind} proxy: {error.strerror}"
            raise UnavailableError(message, "check the limits of this machine") from error
        port: int = listener.getsockname()[1]
        found.append(Entrance(kind, listener.detach(), port=port))
    return tuple(found)
