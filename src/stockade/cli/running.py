"""What `run` and `shell` have in common: a sandbox from the settings here, and signals passed on.

A signal that reaches us before the command has started ends us, cleanly; later it goes to the command, and what
the command makes of it is our exit status.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

from stockade.cli import flags
from stockade.cli.context import context
from stockade.errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.limits import Limits
    from stockade.sandbox.result import Result
    from stockade.sandbox.session import Running
    from stockade.settings.sources import Locations

_PASSED_ON: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)


class RunOptions(flags.PolicyOptions):
    """What every command takes that runs something."""

    directory: str | None
    timeout: float | None
    memory: str | None
    processes: int | None
    open_files: int | None
    cpu_seconds: int | None
    debug: bool


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
    limits = parser.add_argument_group("limits for the command")
    limits.add_argument("--timeout", type=float, metavar="SECONDS", help="end it after that time")
    limits.add_argument("--memory", metavar="SIZE", help="bytes of memory, such as 512M")
    limits.add_argument("--processes", type=int, metavar="N", help="processes and threads at once")
    limits.add_argument("--open-files", type=int, metavar="N", help="open files of each process")
    limits.add_argument("--cpu-seconds", type=int, metavar="N", help="processor time of each process")
    flags.configure(parser)


def limits(options: RunOptions) -> Limits:
    """Return the limits that the flags ask for."""
    from stockade.sandbox.limits import Limits, parse_size

    return Limits(
        memory=parse_size(options.memory) if options.memory else None,
        processes=options.processes,
        open_files=options.open_files,
        cpu_seconds=options.cpu_seconds,
    )


def policy(options: RunOptions, shown: Terminal, locations: Locations | None) -> SandboxPolicy:
    """Return the policy here, or in the directory that was named."""
    if options.directory is not None:
        try:
            os.chdir(options.directory)
        except OSError as error:
            message = f"cannot work in {options.directory!a}: {error.strerror}"
            raise StockadeError(message, "give --directory a directory that exists") from error
        if locations is not None:
            locations = locations.but(cwd=os.path.realpath(options.directory))
    return context(options, shown, locations).policy


class Forwarding:
    """Signals to this process go to the command while it runs."""

    def __init__(self) -> None:
        """Begin before anything is started, so that no signal can leave something behind."""
        self._target: tuple[BlockingSandbox, Running] | None = None
        self._before = {number: signal.signal(number, self._take) for number in _PASSED_ON}
        self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)

    def to(self, sandbox: BlockingSandbox) -> Callable[[Running], None]:
        """Return what is to be told of the command once it runs."""

        def started(running: Running) -> None:
            self._target = sandbox, running

        return started

    def end(self) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _frame: object) -> None:
        if self._target is not None:
            sandbox, running = self._target
            sandbox.session.signal(running, number)
        elif number != signal.SIGCONT:
            raise Interrupted(number)

    def _stop(self, _number: int, _frame: object) -> None:
        """Stop the command, then ourselves; whoever continues us continues both."""
        if self._target is not None:
            sandbox, running = self._target
            sandbox.session.signal(running, signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGSTOP)


def attached(  # noqa: PLR0913 - options of one call, all named
    options: RunOptions,
    shown: Terminal,
    locations: Locations | None,
    command: str | Sequence[str] | None,
    *,
    streams: Sequence[int] = (0, 1, 2),
    terminal: bool = False,
    beside: Mapping[int, Callable[[], bool]] | None = None,
) -> int:
    """Run a command on these streams, or the user's shell if none is given; return the exit status."""
    from stockade.platforms.walls import early_walls

    forwarding = Forwarding()
    try:
        walls = early_walls(os.environ)
        from stockade.sandbox import shell
        from stockade.sandbox.blocking import BlockingSandbox

        sandbox = BlockingSandbox(lambda: policy(options, shown, locations), limits=limits(options), walls=walls)
        with sandbox:
            result = sandbox.attach(
                (shell.choose(os.environ),) if command is None else command,
                streams,
                timeout=options.timeout,
                terminal=terminal,
                on_start=forwarding.to(sandbox),
                beside=beside,
            )
            sandbox.session.close(wait=False)
    except Interrupted as interrupted:
        return 128 + interrupted.number
    finally:
        forwarding.end()
    return _report(result, shown, debug=options.debug)


def _report(result: Result, shown: Terminal, *, debug: bool) -> int:
    for note in result.notes:
        shown.warn(note)
    if result.limit is not None:
        shown.warn(f"the command was ended: it reached the limit of {result.limit.value}")
    if debug:
        shown.warn(f"{result.seconds * 1000:.1f} ms, {result.user_time + result.system_time:.3f} s of processor time")
    return result.status
