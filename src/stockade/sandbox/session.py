"""One sandbox session without any loop: walls, a temporary directory, and the commands that run.

The faces (``sandbox.asynchronous``, ``sandbox.blocking``, the command line) do the waiting: they watch
``fileno``, call ``pump`` when it is readable, and learn from it which commands have ended.

Rules: if the walls cannot be built, nothing runs and nothing stays; a failed ``open`` can be tried again;
``close`` may be called in any state, from any state, more than once. Not for use by two threads at once.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Any, Final, TypeVar
from stockade.errors import StockadeError, UnavailableError, shortage
from stockade.platforms.backend import Launch
from stockade.platforms.temporary import TemporaryDirectory
from stockade.platforms.walls import require_outside
from stockade.sandbox import shell
from stockade.sandbox.environment import Environment
from stockade.sandbox.following import Following, live_policy
from stockade.sandbox.limits import Limit, Limits
from stockade.sandbox.network import Network
from stockade.sandbox.plumbing import require_pipe, require_streams
from stockade.sandbox.result import Result
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stockade.network.environment import Credential
    from stockade.network.proxy_process import News
    from stockade.platforms.backend import Outcome, Walls
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.asker import Asker
    from stockade.sandbox.group import Group
    from stockade.sandbox.record import Record
    from stockade.sandbox.wrapped import Wrapped
    from stockade.violations.store import Violations
    from stockade.violations.violation import Violation

T = TypeVar("T")
NO_LIMITS: Final = Limits()
_HINTS: Final = {
    2: "check the name of the program and the working directory",
    13: "check that the program can be run and the directory can be entered, under this policy",
}


class Running:
    """A command that was started. ``outcome`` is set once it has ended."""

    def __init__(
        self, command_id: str, command: str, limits: Limits, group: Group | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        """Begin with a command that is being sent."""
        self.ticket = 0
        self.command_id = command_id
        self.command = command
        self.limits = limits
        self.group = group
        self.notes = notes
        self.credential: Credential | None = None
        self.began = time.monotonic()
        self.seconds = 0.0
        self.outcome: Outcome | None = None
        self.violations: tuple[Violation, ...] = ()
        #: What became of a command on a terminal, in order: it has ``started``, it was ``stopped``.
        self.news: list[str] = []
        self.ended_for: Limit | None = None
        self.cancelled = False

    def finish(self, outcome: Outcome) -> None:
        """Note how it ended."""
        self.seconds = time.monotonic() - self.began
        self.outcome = outcome

    def result(self, stdout: bytes = b"", stderr: bytes = b"") -> Result:
        """Return how it ended, with what it said. Raises if it could not be started at all."""
        if self.outcome is None:
            message = f"the command has not ended: {self.command!a}"
            raise StockadeError(message)
        if self.outcome.failure:
            raise _not_started(self.outcome)
        code = os.waitstatus_to_exitcode(self.outcome.status)
        signal = -code if code < 0 else None
        return Result(
            command=self.command,
            exit_code=code if code >= 0 else None,
            signal=signal,
            stdout=stdout,
            stderr=stderr,
            seconds=self.seconds,
            user_time=self.outcome.user_time,
            system_time=self.outcome.system_time,
            peak_memory=self.outcome.peak_memory,
            limit=self._limit(signal),
            cancelled=self.cancelled,
            notes=self.notes,
            violations=self.violations,
        )

    def _limit(self, signal: int | None) -> Limit | None:
        outcome = self.outcome
        cpu_time = outcome.user_time + outcome.system_time if outcome else 0.0
        by_group = self.group.verdict if self.group else None
        return self.ended_for or by_group or self.limits.hit_by(signal, cpu_time)


class Session:
    """Everything that one sandbox owns."""

    def __init__(
        self,
        policy: SandboxPolicy | LivePolicy | Callable[[], SandboxPolicy],
        make_walls: Callable[[str], Walls],
        *,
        host: Mapping[str, str] | None = None,
        limits: Limits = NO_LIMITS,
        asker: Asker | None = None,
        name_servers: tuple[str, ...] = (),
    ) -> None:
        """Take ``make_walls`` as what builds walls around a session's temporary directory.

        A policy may also be given as a function: it is called when the helpers of the walls are already coming up,
        so that a program that is started for one command reads its settings meanwhile. Such a program may never use
        the network: nothing is started for it before it does. Without an ``asker`` nobody can be asked. A live
        policy is followed, see ``look``.
        """
        live = live_policy(policy)
        self._following = None if live is None else Following(live)
        self._given: Any = policy if live is None else live.policy
        self._policy: SandboxPolicy | None = None
        self.limits = limits
        self._make_walls = make_walls
        self._host = dict(os.environ if host is None else host)
        self._environment = Environment(self._host)
        self._temporary: TemporaryDirectory | None = None
        self._walls: Walls | None = None
        self._network: Network | None = None
        self._asker = asker
        self._name_servers = name_servers
        #: What the next result is to tell people.
        self._notes: tuple[str, ...] = ()
        self._record: Record | None = None
        self._commands = 0
        self._running: dict[int, Running] = {}
        #: The proxy variables of wrapped commands: the same command is the same order, whoever asks for it again.
        self._wrapped: dict[tuple[object, ...], dict[str, str]] = {}

    @property
    def policy(self) -> SandboxPolicy:
        """The policy that the next command gets."""
        if self._policy is None:
            made: SandboxPolicy = self._given() if callable(self._given) else self._given
            self._policy = made
        return self._policy

    @property
    def temporary(self) -> str:
        """The session's own temporary directory."""
        return self._opened(self._temporary).path

    @property
    def violations(self) -> Violations:
        """What was refused to the commands of this session."""
        return self._kept_record().violations

    @property
    def refused(self) -> Violations | None:
        """The same, or nothing if nothing ever was: to ask for this imports nothing."""
        return None if self._record is None else self._record.violations

    @property
    def running(self) -> tuple[Running, ...]:
        """The commands that have not ended."""
        return tuple(self._running.values())

    def open(self) -> None:
        """Make the temporary directory and build the walls; on failure leave nothing."""
        if self._walls is not None:
            return
        require_outside()
        try:
            self._temporary = TemporaryDirectory.make(self._host)
            walls = self._make_walls(self._temporary.path)
            self._walls = walls
            self._network = Network(
                walls,
                self._host,
                inherited=self._environment.inherited,
                can_ask=self._asker is not None,
                name_servers=self._name_servers,
                hasty=callable(self._given),
            )
            if self._asker is not None and self._asker.fileno() >= 0:
                walls.watch(self._asker.fileno())
            self._renew()
        except BaseException as error:
            self.close()
            _raise_for_shortage(error)
            raise

    def update(self, policy: SandboxPolicy) -> None:
        """Use another policy: its network rules from the next request, the rest from the next command on."""
        before, self._policy = self._policy, policy
        if self._walls is None or self._network is None:
            return
        self._network.follow(policy)
        if self._wrapped:
            self._renew()  # a wrapped command does not pass by here
        elif self._running and before is not None and before.network != policy.network:
            with suppress(StockadeError):  # told to whoever runs the next command
                self._open_ports(before)

    def follow(self, following: Following) -> None:
        """Keep the policy up to date, where it was given as a function."""
        self._following = following

    def look(self) -> float | None:
        """Follow the settings files, and inspect what commands leave, if it is time to.

        Return the seconds until it is again, if it will be.

        The faces call it at least that often while they wait. What is wrong with a file is a note of the next result.
        """
        inspected = None if self._walls is None else self._walls.look()
        if self._walls is not None:
            self._hear_walls()
        followed = self._follow()
        return min((left for left in (inspected, followed) if left is not None), default=None)

    def _follow(self) -> float | None:
        if self._following is None or self._walls is None or self._following.left() != 0:
            return None if self._following is None else self._following.left()
        heard = self._following.look()
        self._notes += heard.warnings
        if heard.policy is not None:
            try:
                self.update(heard.policy)
            except StockadeError as error:
                self._notes += (error.message,)
        return self._following.left()

    def start(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        streams: Sequence[int],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits = NO_LIMITS,
        terminal: bool = False,
        command_id: str = "",
        line: str = "",
        pass_fds: Sequence[int] = (),
    ) -> Running:
        """Start a command with its three streams. Raises if it cannot even be sent.

        ``line`` is what violations and results call it, where that is not what is run. ``pass_fds`` are pipes that it
        finds open at the same numbers.
        """
        walls = self._opened(self._walls)
        require_streams(streams)
        for descriptor in pass_fds:
            require_pipe(descriptor)
        self.look()
        notes = self._renew()
        command_id = command_id or self._mint()
        credential, proxies = self._opened(self._network).admit(command_id)
        variables = self._environment.variables(self.temporary, proxies, env)
        held = limits.over(self.limits)
        group = None
        if held.memory is not None or held.processes is not None:
            from stockade.sandbox.group import Group

            group = Group.make(held)
        launch = Launch(
            argv=shell.argv(command, variables),
            environment=variables,
            directory=self._directory(cwd),
            limits=held.rlimits(grouped=group is not None),
            terminal=terminal,
            groups=() if group is None else tuple(group.descriptors),
            passed=tuple(pass_fds),
        )
        text = line or (command if isinstance(command, str) else " ".join(command))
        running = Running(command_id, text, held, group, notes)
        running.credential = credential
        try:
            running.ticket = walls.launch(launch, streams)
        except BaseException:
            self._forget(running)
            raise
        self._running[running.ticket] = running
        if self._following is not None:
            self._following.begin()
        return running

    def open_terminal(self) -> tuple[int, int]:
        """Make a terminal for the next command; return our end and the command's."""
        walls = self._opened(self._walls)
        self._renew()
        return walls.open_terminal()

    def wrap(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Wrapped:
        """Return what any program of this user may run to run a command here. Control groups do not count it."""
        walls = self._opened(self._walls)
        self._renew()
        key = (command if isinstance(command, str) else tuple(command), cwd, *sorted((env or {}).items()))
        if key not in self._wrapped:
            self._wrapped[key] = self._opened(self._network).admit(self._mint())[1]
        variables = self._environment.variables(self.temporary, self._wrapped[key], env)
        launch = Launch(
            argv=shell.argv(command, variables),
            environment=variables,
            directory=self._directory(cwd),
            limits=self.limits.rlimits(grouped=False),
        )
        from stockade.sandbox.wrapped import Wrapped

        return Wrapped(walls.wrap(launch))

    def pump(self) -> tuple[Running, ...]:
        """Take what walls and network have to say; return the commands that have ended since."""
        ended = []
        outcomes = self._opened(self._walls).receive()
        network = self._opened(self._network)
        self._hear_walls()
        # What was refused to a command was said before the command heard of it, and so before it ended.
        self._hear(network.pump())
        for answer in self._asker.take() if self._asker is not None else ():
            network.answer(*answer)
        for outcome in outcomes:
            if outcome.state != "ended":
                self._running[outcome.ticket].news.append(outcome.state)
                continue
            running = self._running.pop(outcome.ticket, None)
            if running is None:
                continue
            running.finish(outcome)
            if network.note and network.note not in running.notes:
                running.notes = (*running.notes, network.note)
            running.notes, self._notes = running.notes + self._notes, ()
            if self._record is not None:
                running.violations = self._record.violations.of(running.command_id)
            self._forget(running)
            ended.append(running)
        return tuple(ended)

    def answer(self, number: int, choice: str, reason: str = "") -> None:
        """Answer a question, if the session is still open; a choice that is none denies."""
        if self._network is not None:
            self._network.answer(number, choice, reason)

    def publish(self, host_port: int, port: int) -> int:
        """Let the host reach a port inside by a port of its own, 0 for any; return which one it is."""
        network = self._opened(self._network)
        if not self.policy.sockets.local_binding:
            message = "the policy does not let the host reach ports inside"
            raise StockadeError(message, "set sandbox.network.allowLocalBinding to true")
        from stockade.sandbox.published import Published, listen

        listener, chosen = listen(Published(host_port, port))
        network.publish(listener, port)
        return chosen

    def end(self, running: Running, limit: Limit | None = None) -> None:
        """End a command with all that it started, because of a limit or because the caller wants it."""
        if running.ticket not in self._running:
            return
        running.ended_for = limit
        running.cancelled = limit is None
        self._opened(self._walls).end(running.ticket)

    def signal(self, running: Running, number: int) -> None:
        """Pass a signal on to a command and what it runs in front."""
        if running.ticket in self._running:
            self._opened(self._walls).signal(running.ticket, number)

    def rest(self) -> None:
        """Let go of what the host could stumble over, if no command runs."""
        if self._walls is not None and not self._running:
            self._walls.rest()

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        return self._opened(self._walls).fileno()

    def close(self) -> None:
        """End every command, take the walls down, remove the temporary directory."""
        walls, self._walls = self._walls, None
        network, self._network = self._network, None
        temporary, self._temporary = self._temporary, None
        try:
            if network is not None:
                self._hear(network.close())
            if self._asker is not None:
                self._asker.close()
            if walls is not None:
                walls.close()
                self._hear_reports(walls)
        finally:
            for running in self._running.values():
                self._forget(running)
            self._running.clear()
            self._wrapped.clear()
            self._environment.release()
            if temporary is not None:
                temporary.remove()

    def _renew(self) -> tuple[str, ...]:
        """Make walls and network fit the policy and the disk as they are now."""
        network, walls = self._opened(self._network), self._opened(self._walls)
        try:
            self._notes += self._environment.settle(self.policy, walls, self.temporary)
            notes = walls.renew(self.policy)
        except OSError as error:
            _raise_for_shortage(error)
            raise
        network.follow(self.policy)
        return (*notes, network.note) if network.note else notes

    def _open_ports(self, before: SandboxPolicy) -> None:
        """Have ports of the host that are newly named opened at once, also for commands that run."""
        from stockade.network.host_port import host_ports

        if not set(host_ports(self.policy.network)) <= set(host_ports(before.network)):
            self._renew()

    def _mint(self) -> str:
        self._commands += 1
        return f"command-{self._commands}"

    def _hear_walls(self) -> None:
        self._hear_reports(self._opened(self._walls))

    def _hear_reports(self, walls: Walls) -> None:
        for report in walls.take_reports():
            running = self._running.get(report.ticket)
            self._kept_record().note(report, "" if running is None else running.command_id, self.policy)

    def _hear(self, said: tuple[News, ...]) -> None:
        if not said:
            return
        from stockade.network.proxy_process import Question, Refused

        for news in said:
            if isinstance(news, Refused):
                self._kept_record().take(news, self.policy)
            elif isinstance(news, Question) and self._asker is not None:
                self._asker.put(news)

    def _kept_record(self) -> Record:
        if self._record is None:
            from stockade.sandbox.record import Record

            self._record = Record()
        for running in self._running.values():
            self._record.know(running.command_id, running.command)
        return self._record

    def _forget(self, running: Running) -> None:
        """Let go of what a command had."""
        if running.group is not None:
            running.group.close()
        if running.credential is not None and self._network is not None:
            self._network.dismiss(running.credential)

    def _directory(self, cwd: str | None) -> str:
        return self.policy.cwd if cwd is None else os.path.normpath(os.path.join(self.policy.cwd, cwd))

    def _opened(self, part: T | None) -> T:
        if part is None:
            message = "the sandbox is not open"
            raise StockadeError(message, "use it inside `with`, or call open() first")
        return part


def milliseconds(*seconds: float | None) -> float | None:
    """Return how long to wait in a poll, so that all of these are not missed; nothing of them is for ever."""
    given = [one for one in seconds if one is not None]
    return min(given) * 1000 + 1 if given else None


def _raise_for_shortage(error: BaseException) -> None:
    """Raise what says it in words, if a failure means that this process has no descriptor left."""
    words = shortage(error)
    if words is not None:
        raise words from error


def _not_started(outcome: Outcome) -> StockadeError:
    if not outcome.status:
        return UnavailableError(outcome.failure, "try again")  # it was started, and how it ended nobody knows
    return StockadeError(f"the command could not be started: {outcome.failure}", _HINTS.get(outcome.error, ""))
