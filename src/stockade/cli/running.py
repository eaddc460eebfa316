"""What `run` and `shell` have in common: a sandbox from the settings here, and signals passed on.

A signal that reaches us before the command is launched ends us as soon as nothing is half made; later it goes to the
command, and what the command makes of it is our exit status.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # signal makes enumerations, which costs a millisecond
import os
import sys
import time

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.cli import flags
from stockade.cli.context import context
from stockade.cli.terminal import coloured
from stockade.errors import InvalidTextError, StockadeError, UnavailableError
from stockade.platforms.walls import OBSERVE, already_inside, require_outside
from stockade.suppress import suppress
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stockade.cli.context import Context
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.platforms.backend import Observe
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.limits import Limits
    from stockade.sandbox.published import Published
    from stockade.sandbox.result import Result
    from stockade.sandbox.session import Running
    from stockade.settings.sources import Locations
    from stockade.violations.store import Violations

_PASSED_ON: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
_ENDING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_MANY: Final = 4096
_STOPPING: Final = 0.05
#: Seconds that who makes walls has to come to an end with it, after somebody wants us to end.
_PATIENCE: Final = 2.0
_UNRUNNABLE: Final = (126, 127)
VIOLATIONS: Final = ("summary", "full", "json", "off")


class RunOptions(flags.PolicyOptions):
    """What every command takes that runs something."""

    directory: str | None
    timeout: float | None
    memory: str | None
    processes: int | None
    open_files: int | None
    cpu_seconds: int | None
    debug: bool
    publish: list[str]
    violations: str | None
    observe: Observe | None


class Interrupted(Exception):  # noqa: N818 - not an error: somebody wants us to end
    """A signal came while nothing ran yet."""

    def __init__(self, number: int) -> None:
        """Remember which."""
        super().__init__(number)
        self.number = number


def configure(parser: Parser) -> None:
    """Add the flags of commands that run something."""
    parser.add_argument("-C", "--directory", metavar="DIR", help="work there instead of here")
    parser.add_argument("-d", "--debug", action="store_true", help="say on standard error what is done, and how fast")
    parser.add_argument(
        "--publish",
        action="append",
        default=[],
        metavar="HOST:SANDBOX",
        help="let this machine reach a port inside by a port of its own, 0 for any; sets allowLocalBinding",
    )
    parser.add_argument(
        "--violations", choices=VIOLATIONS, help="what to say of refusals at the end: summary (on a terminal) or off"
    )
    parser.add_argument(
        "--observe", choices=OBSERVE, help="watch for refused changes of files: auto, on (all of them, slower) or off"
    )
    limits = parser.add_argument_group("limits for the command")
    limits.add_argument("--timeout", type=float, metavar="SECONDS", help="end it after that time")
    limits.add_argument("--memory", metavar="SIZE", help="bytes of memory, such as 512M")
    limits.add_argument("--processes", type=int, metavar="N", help="processes and threads at once")
    limits.add_argument("--open-files", type=int, metavar="N", help="open files of each process")
    limits.add_argument("--cpu-seconds", type=int, metavar="N", help="processor time of each process")
    flags.configure(parser)


def limits(options: RunOptions) -> Limits | None:
    """Return the limits that the flags ask for, if they ask for any."""
    given = (options.memory, options.processes, options.open_files, options.cpu_seconds)
    if given == (None,) * len(given):
        return None
    from stockade.sandbox.limits import Limits, parse_size

    return Limits(
        memory=None if options.memory is None else parse_size(options.memory),
        processes=options.processes,
        open_files=options.open_files,
        cpu_seconds=options.cpu_seconds,
    )


class Source:
    """Where the policy of a run comes from: read once, and again when its files change."""

    def __init__(self, options: RunOptions, shown: Terminal, locations: Locations | None) -> None:
        """Read nothing yet."""
        self._given = options, shown, locations
        self._read: Context | None = None

    def policy(self) -> SandboxPolicy:
        """Read the settings; helpers come up meanwhile."""
        self._read = _context(*self._given)
        return self._read.policy

    def hint(self, error: StockadeError, command: Command | None) -> str:
        """Return what to do about a failure under this policy."""
        if self._read is None:
            return error.hint
        from stockade.cli.hindrance import hint

        return hint(error, self._read.policy, command)

    def live(self) -> LivePolicy:
        """Begin to follow the files."""
        from stockade.policy.effective import Effective
        from stockade.policy.live import LivePolicy

        read = self._read or _context(*self._given)
        return LivePolicy(
            read.locations, flags=flags.document(self._given[0]), since=Effective(read.loaded, read.policy)
        )


def _context(options: RunOptions, shown: Terminal, locations: Locations | None) -> Context:
    """Return what holds here, or in the directory that was named."""
    if options.directory is not None:
        name = os.path.join(os.environ.get("PWD") or os.getcwd(), options.directory)
        try:
            os.chdir(options.directory)
            os.environ["PWD"] = name  # as a shell's cd has it: settings are looked for by both names
        except OSError as error:
            message = f"cannot work in {options.directory!a}: {error.strerror}"
            raise StockadeError(message, "give --directory a directory that exists") from error
        if locations is not None:
            locations = locations.but(cwd=os.path.realpath(options.directory))
    return context(options, shown, locations)


class Forwarding:
    """Signals to this process go to the command while it runs."""

    def __init__(self) -> None:
        """Begin before anything is started, so that no signal can leave something behind."""
        #: What is to be done when somebody stops us, and when somebody lets us go on.
        #: The first tells whether we are to stop at once.
        self.pause: Callable[[], bool] | None = None
        self.resume: Callable[[], None] | None = None
        #: Whether somebody wants the command to end.
        self.is_urged = False
        self._target: tuple[BlockingSandbox, Running] | None = None
        self._came: int | None = None
        self._held = False
        self._waiting: list[int] = []
        self._sending = False
        # A signal that comes just before we begin to wait would not be looked at before something else happens.
        self.wake, self._waking = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._waking, False)
        self._woken_before = signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        self._told_before = sys.unraisablehook
        sys.unraisablehook = self._dropped
        self._before = {number: signal.signal(number, self._take) for number in _PASSED_ON}
        self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)

    def hold(self) -> None:
        """Keep what comes from now on for the command, which is about to be launched; the same signal twice ends us.

        Nothing is half made here: if somebody wants us to end, we do.
        """
        self._end_if_wanted()
        self._held = True

    def to(self, sandbox: BlockingSandbox) -> Callable[[Running], None]:
        """Return what is to be told of the command once it runs."""

        def started(running: Running) -> None:
            self._target = sandbox, running
            self._end_if_wanted()
            self._send()

        return started

    def end(self) -> None:
        """Give the signals back."""
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._told_before
        signal.set_wakeup_fd(self._woken_before)
        os.close(self.wake)
        os.close(self._waking)

    def drain(self) -> bool:
        """Note that we are awake: Python has called what the signals are for."""
        with suppress(BlockingIOError):
            os.read(self.wake, _MANY)
        self._send()
        return True

    def unrunnable(self) -> int | None:
        """Return what a shell returns for a program that cannot be run, 126 or 127, if that is what happened."""
        outcome = self._target[1].outcome if self._target is not None else None
        status = outcome.status >> 8 if outcome is not None and outcome.failure else None
        return status if status in _UNRUNNABLE else None

    def _take(self, number: int, _frame: object) -> None:
        self.is_urged = self.is_urged or number in _ENDING
        if self._target is not None or (self._held and number not in self._waiting):
            self._waiting.append(number)
            self._send()
            if number == signal.SIGCONT and self.resume is not None:
                self.resume()
        elif number != signal.SIGCONT:
            # What is half made is finished first, and then taken down in order; who insists, ends it where it is.
            insists, self._came = number == self._came or number in self._waiting, number
            if insists:
                raise Interrupted(number)
            if signal.SIGALRM not in self._before:
                self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._lose_patience)
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)

    def _end_if_wanted(self) -> None:
        if self._came is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)  # what is taken down now is not to be interrupted
            raise Interrupted(self._came)

    def _lose_patience(self, _number: int, _frame: object) -> None:
        if self._target is None and self._came is not None:
            raise Interrupted(self._came)

    def _dropped(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Say nothing of a signal that came while Python cleaned an object up: it is remembered, and ends us soon."""
        if not isinstance(unraisable.exc_value, Interrupted):
            self._told_before(unraisable)

    def _stop(self, _number: int, _frame: object) -> None:
        """Stop the command, then ourselves; whoever continues us continues both."""
        if self.pause is not None:
            if not self.pause():
                return
        elif self._target is not None:
            # The command is alone in its session, where the kernel ignores SIGTSTP.
            self._waiting.append(signal.SIGSTOP)
            self._send()
            # The shell that gets the terminal back must not share its first keys with a command still to be stopped.
            time.sleep(_STOPPING)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _send(self) -> None:
        """Send what waits, in order. A signal that comes in the midst of it only joins the others."""
        if self._target is None or self._sending:
            return
        sandbox, running = self._target
        self._sending = True
        try:
            while self._waiting:
                with suppress(StockadeError):  # everything is coming down already
                    sandbox.session.signal(running, self._waiting.pop(0))
        finally:
            self._sending = False


Command: TypeAlias = "str | Sequence[str]"
Conduct: TypeAlias = "Callable[[BlockingSandbox, Order, Forwarding], Result]"


class Order(Value):
    """What is to be run: ``environment`` is added to that of every command, ``pass_fds`` are pipes of ours."""

    command: Command
    environment: Mapping[str, str] | None = None
    pass_fds: tuple[int, ...] = ()


def attached(
    options: RunOptions,
    shown: Terminal,
    locations: Locations | None,
    command: Command | None,
    pass_fds: tuple[int, ...] = (),
) -> int:
    """Run a command on our own streams, or the user's shell if none is given; return the exit status."""

    def attach(sandbox: BlockingSandbox, order: Order, forwarding: Forwarding) -> Result:
        beside = {forwarding.wake: forwarding.drain}
        put_back = _remembered_modes()
        forwarding.hold()
        try:
            return sandbox.attach(
                order.command,
                timeout=options.timeout,
                env=order.environment,
                on_start=forwarding.to(sandbox),
                beside=beside,
                pass_fds=order.pass_fds,
            )
        finally:
            put_back()

    return conducted(options, shown, locations, command, attach, pass_fds)


def relayed(
    options: RunOptions,
    shown: Terminal,
    locations: Locations | None,
    command: Command | None,
    pass_fds: tuple[int, ...] = (),
    own: tuple[int, ...] = (0, 1, 2),
) -> int:
    """Run a command, or the user's shell, with a terminal of its own as these streams; return the exit status."""

    def carry(sandbox: BlockingSandbox, order: Order, forwarding: Forwarding) -> Result:
        from stockade.cli.relay import relay  # helpers build walls meanwhile

        return relay(sandbox, order, forwarding, options.timeout, own)

    return conducted(options, shown, locations, command, carry, pass_fds)


def _remembered_modes() -> Callable[[], None]:
    """Return what puts the modes of the user's terminal back, if the command gets it."""
    if not (os.isatty(0) and os.isatty(1)):
        return lambda: None
    from stockade.cli.terminal_modes import remembered

    return remembered()


def conducted(
    options: RunOptions,
    shown: Terminal,
    locations: Locations | None,
    command: Command | None,
    conduct: Conduct,
    pass_fds: tuple[int, ...] = (),
) -> int:
    """Have a command, or the user's shell, run in a sandbox of its own; return the exit status.

    A program that does not exist or cannot be run is the command's failure, as in a shell: 127 or 126.
    """
    from stockade.platforms.walls import early_walls

    _require_time(options.timeout)
    require_outside()
    held = limits(options)
    doors = published(options)
    forwarding = Forwarding()
    source = Source(options, shown, locations)
    try:
        walls = early_walls(os.environ, options.observe or "auto")
        from stockade.sandbox.blocking import BlockingSandbox
        from stockade.sandbox.following import Following
        from stockade.sandbox.session import NO_LIMITS

        sandbox = BlockingSandbox(source.policy, limits=held or NO_LIMITS, walls=walls)
        sandbox.session.follow(Following(source.live))
        with sandbox:
            for door in doors:
                _publish(sandbox, door, shown)
            order = Order(command, None, pass_fds) if command is not None else _user_shell(sandbox)
            result = conduct(sandbox, order, forwarding)
    except Interrupted as interrupted:
        return 128 + interrupted.number
    except StockadeError as error:
        error.hint = source.hint(error, command)
        status = forwarding.unrunnable()
        if status is None:
            raise _nested(error) from error
        shown.fail(error)
        return status
    finally:
        forwarding.end()
    status = _report(result, shown, debug=options.debug, told=sandbox.session.policy.files.closed)
    _report_refusals(sandbox.session.refused, options.violations, shown, sandbox.session.policy.home)
    return status


def _require_time(timeout: float | None) -> None:
    if timeout is None or timeout > 0:  # which no NaN is
        return
    from stockade.cli.parser import UsageError  # which takes argparse

    message = f"--timeout must be more than 0 seconds: {timeout:g}"
    raise UsageError(message, "leave it out for no limit")


def _user_shell(sandbox: BlockingSandbox) -> Order:
    from stockade.cli.prompt import user_shell

    return user_shell(os.environ, sandbox.temporary, prompt=os.isatty(0))


def _nested(error: StockadeError) -> StockadeError:
    """Say what is known better than the failure to build walls: there are some around us."""
    if not isinstance(error, UnavailableError | InvalidTextError):
        return error
    return already_inside(error, os.environ) or error


def published(options: RunOptions) -> tuple[Published, ...]:
    """Return the ports that the flags publish."""
    if not options.publish:
        return ()
    from stockade.sandbox.published import Published

    return tuple(map(Published.parse, options.publish))


def _publish(sandbox: BlockingSandbox, door: Published, shown: Terminal) -> None:
    port = sandbox.publish(door.host, door.inside)
    if not door.host:
        shown.aside(f"stockade: localhost:{port} leads to port {door.inside} inside\n")


def _report_refusals(refused: Violations | None, how: str | None, shown: Terminal, home: str) -> None:
    """Say what was refused: to people who sit there, or to whoever has asked for it; and always what was set aside."""
    asked = how
    how = how or ("summary" if shown.err.isatty() else "off")
    if (how == "off" and (asked or refused is None)) or (refused is None and how != "json"):
        return
    from stockade.violations import summary

    entries = () if refused is None else tuple(refused)
    dropped = 0 if refused is None else refused.dropped
    if how == "off":
        # What was set aside is another matter than a refusal: files are not where the command left them.
        shown.aside(summary.full([one for one in entries if one.operation.value == "leave"]))
        return
    if how == "json":
        shown.aside(summary.as_json(entries, dropped=dropped))
        return
    if asked is None:
        from stockade.violations.habit import is_habit

        entries = tuple(one for one in entries if not is_habit(one, home))
    worded = summary.full if how == "full" else summary.summary
    shown.aside(worded(entries, dropped=dropped, colour=coloured(shown.err)))


def _report(result: Result, shown: Terminal, *, debug: bool, told: str) -> int:
    for note in result.notes:
        if note != told:  # that was said before the command started
            shown.warn(note)
    if result.limit is not None:
        shown.warn(f"the command was ended: it reached the limit of {result.limit.value}")
    if debug:
        shown.warn(f"{result.seconds * 1000:.1f} ms, {result.user_time + result.system_time:.3f} s of processor time")
    return result.status
