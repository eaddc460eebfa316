"""The sandbox for programs without asyncio: the same calls, and they wait.

The command line uses it too: importing asyncio would cost more than starting the command.
"""

from __future__ import annotations

import select
import time

from stockade.annotation import TYPE_CHECKING, Self
from stockade.sandbox.limits import Limit
from stockade.sandbox.plumbing import PIPE, Plumbing
from stockade.sandbox.session import NO_LIMITS, Running, Session, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from stockade.network.gate import Answer
    from stockade.platforms.backend import Observe, Walls
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.blocking_process import BlockingProcess
    from stockade.sandbox.capture import Capture
    from stockade.sandbox.limits import Limits
    from stockade.sandbox.result import Result
    from stockade.sandbox.wrapped import Wrapped
    from stockade.violations.store import Violations


class BlockingSandbox:
    """One sandbox, used by one thread at a time."""

    def __init__(  # noqa: PLR0913 - options of one sandbox, all named
        self,
        policy: SandboxPolicy | LivePolicy | Callable[[], SandboxPolicy],
        *,
        ask: Callable[[str, int, str], Answer] | None = None,
        limits: Limits = NO_LIMITS,
        environment: Mapping[str, str] | None = None,
        name_servers: Sequence[str] = (),
        observe: Observe = "auto",
        walls: Callable[[str], Walls] | None = None,
    ) -> None:
        """Take what ``stockade.Sandbox`` takes, and the policy also as a function, see ``Session``.

        ``ask`` is called in threads of its own, while a command runs. Settings files are looked at when a command is
        started, and while this waits for one.
        """
        from stockade.platforms.walls import walls_of

        asker = None
        if ask is not None:
            from stockade.sandbox.asker import ThreadedAsker

            asker = ThreadedAsker(ask)
        self.session = Session(
            policy,
            walls or walls_of(observe),
            host=environment,
            limits=limits,
            asker=asker,
            name_servers=tuple(name_servers),
        )

    @property
    def policy(self) -> SandboxPolicy:
        """The policy that the next command gets."""
        return self.session.policy

    @property
    def temporary(self) -> str:
        """The session's own temporary directory, which every command finds as TMPDIR."""
        return self.session.temporary

    @property
    def violations(self) -> Violations:
        """What was refused to the commands of this session."""
        return self.session.violations

    def __enter__(self) -> Self:
        """Open."""
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, whatever happened."""
        self.close()

    def open(self) -> None:
        """Build the walls; a failed attempt leaves nothing and may be repeated."""
        self.session.open()

    def update(self, policy: SandboxPolicy) -> None:
        """Use another policy: its network rules from the next request, the rest from the next command on."""
        self.session.update(policy)

    def publish(self, host_port: int, port: int) -> int:
        """Let programs of this machine reach a server inside by ``host_port`` of their localhost, 0 for any.

        Returns the host's port. The policy must have ``allowLocalBinding``.
        """
        return self.session.publish(host_port, port)

    def close(self) -> None:
        """End every command and leave nothing behind."""
        self.session.close()

    def run(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limits: Limits = NO_LIMITS,
        on_output: Callable[[bytes], None] | None = None,
        command_id: str = "",
    ) -> Result:
        """Run a command and wait until it and all that it started are gone."""
        from stockade.sandbox.streams import Streams

        streams = Streams(stdin, on_output)
        try:
            running = self.session.start(
                command, streams.numbers, cwd=cwd, env=env, limits=limits, command_id=command_id
            )
            streams.hand_over()
            self._until_ended(running, streams.captures, timeout)
        finally:
            texts = streams.finish()
        return running.result(*texts)

    def spawn(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits = NO_LIMITS,
        stdin: int | None = None,
        stdout: int | None = PIPE,
        stderr: int | None = PIPE,
        pty: bool = False,
        command_id: str = "",
    ) -> BlockingProcess:
        """Start a command and talk to it while it runs: ``with sandbox.spawn(...) as process``.

        A stream is ``PIPE``, an open descriptor, or ``None`` for nothing; ``stderr`` may be ``STDOUT``. With ``pty``
        the command gets a terminal of its own instead, ``process.stdin`` and ``process.stdout`` are its other end,
        and the streams asked for do not matter. If the command cannot be started, ``wait`` raises.
        """
        from stockade.sandbox.blocking_process import BlockingProcess

        streams = Plumbing.terminal(*self.session.open_terminal()) if pty else Plumbing.lay(stdin, stdout, stderr)
        try:
            running = self.session.start(
                command, streams.inside, cwd=cwd, env=env, limits=limits, terminal=pty, command_id=command_id
            )
        except BaseException:
            streams.close()
            raise
        streams.give_up_inside()
        return BlockingProcess(self.session, running, streams)

    def wrap(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Wrapped:
        """Return words, and a line, that any other program of this user may run to run a command in this session.

        The environment is as for ``run``, whoever runs it; ``env`` is added. Good until the sandbox is closed.
        """
        return self.session.wrap(command, cwd=cwd, env=env)

    def attach(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        streams: Sequence[int] = (0, 1, 2),
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits = NO_LIMITS,
        terminal: bool = False,
        on_start: Callable[[Running], None] | None = None,
        beside: Mapping[int, Callable[[], bool]] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Result:
        """Run a command on given streams, such as this process's own, and wait for its end.

        ``on_start`` is told the running command, for passing signals on. ``beside`` maps further descriptors to
        what is to be called when they are readable; ``False`` from it ends the watch on that descriptor. ``pass_fds``
        are pipes that the command finds open at the same numbers.
        """
        running = self.session.start(
            command, streams, cwd=cwd, env=env, limits=limits, terminal=terminal, pass_fds=pass_fds
        )
        if on_start is not None:
            on_start(running)
        self._until_ended(running, (), timeout, beside)
        return running.result()

    def _until_ended(
        self,
        running: Running,
        captures: tuple[Capture, ...],
        timeout: float | None,
        beside: Mapping[int, Callable[[], bool]] | None = None,
    ) -> None:
        """Serve the descriptors until the command has ended; an exception of any kind ends it first."""
        readers = dict(beside or {}) | {capture.reader: capture.read for capture in captures}
        try:
            self._serve(running, captures, readers, timeout)
        except BaseException:
            self.session.end(running)
            self._serve(running, (), {}, None)
            raise

    def _serve(
        self,
        running: Running,
        captures: tuple[Capture, ...],
        readers: dict[int, Callable[[], bool]],
        timeout: float | None,
    ) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        own = self.session.fileno()
        for descriptor in (own, *readers):
            poller.register(descriptor, select.POLLIN)
        while running.outcome is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = poller.poll(milliseconds(left, self.session.look()))
            if not ready and deadline is not None and time.monotonic() >= deadline:
                deadline = None
                self.session.end(running, Limit.TIME)
            for descriptor, _ in ready:
                if descriptor == own:
                    self.session.pump()
                elif not readers[descriptor]():
                    poller.unregister(descriptor)
            if captures and _have_too_much(captures, running.limits):
                self.session.end(running, Limit.OUTPUT)


def _have_too_much(captures: tuple[Capture, ...], limits: Limits) -> bool:
    from stockade.sandbox.capture import exceeded

    return exceeded(captures, limits)
